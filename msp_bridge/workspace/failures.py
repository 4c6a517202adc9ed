"""Failures: what went wrong in one project of several, kept until the others have done their part."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TypeVar

from attrs import define, field

from msp_bridge.concurrency import merge_streams
from msp_bridge.errors import BridgeError, PartlyFailed, SeveralErrors
from msp_bridge.workspace.router import Part

log = logging.getLogger(__name__)

T = TypeVar("T")


@define
class Failures:
    """Of one request, which had these parts."""

    parts: Sequence[Part]
    _found: dict[Part, BridgeError] = field(factory=dict)

    def together(self, sources: Mapping[Part, AsyncGenerator[T, None]]) -> AsyncGenerator[T, None]:
        """What the parts' sources yield, each until it fails. The failure of the only one is raised at once."""
        if len(self.parts) == 1:  # the usual case, and it takes its time for each result
            return next(iter(sources.values()))
        return merge_streams([self._kept(part, source) for part, source in sources.items()])

    def tell(self) -> None:
        """Raises BridgeError when nobody did his part of those who were asked by name; else PartlyFailed.

        VS Code always asks by name, for all that lies at the top; to an error it forgets everybody's results.
        """
        if not self._found:
            return
        found = sorted(self._found.items(), key=lambda item: item[0].tool.label)
        errors = [error.labelled(part.tool.label) for part, error in found]
        asked = [part for part in self.parts if part.named] or self.parts
        if all(part in self._found for part in asked):
            raise SeveralErrors(errors)
        raise PartlyFailed(errors)

    async def _kept(self, part: Part, source: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        try:
            async with contextlib.aclosing(source):
                async for item in source:
                    yield item
        except Exception as error:  # a fault of one adapter is no reason for another's results to be lost
            self._found[part] = told(error)
            if self._found[part] is not error:
                log.exception("a fault of %s", part.tool.label)


def told(error: Exception) -> BridgeError:
    """What a user is told of a failure in one project of several."""
    if isinstance(error, BridgeError):
        return error
    return BridgeError(f"{error!r}: that is a fault of the adapter; please report it, with the log")

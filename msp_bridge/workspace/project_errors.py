"""Errors of projects: one that fails keeps no other from its results, and where there are several it is named."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TypeVar

from attrs import define, field

from msp_bridge.concurrency import merge_streams
from msp_bridge.errors import BridgeError, SeveralErrors
from msp_bridge.notices import ProjectFailure
from msp_bridge.workspace.projects import Part

log = logging.getLogger(__name__)

T = TypeVar("T")


@define
class ProjectErrors:
    """Errors in the parts of one request, kept until the others have done theirs."""

    parts: Sequence[Part]
    _found: dict[Part, BridgeError] = field(factory=dict)

    def merged(self, sources: Mapping[Part, AsyncGenerator[T, None]]) -> AsyncGenerator[T, None]:
        """Merge the parts' sources, each until it fails. The failure of the only one is raised at once."""
        if len(self.parts) == 1:  # the usual case, and merging takes its time for each result
            ((part, source),) = sources.items()
            return _naming(part, source) if part.tool.folder else source
        return merge_streams([self._collecting(part, source) for part, source in sources.items()])

    def collected(self) -> list[ProjectFailure]:
        """A notice for each part that failed. Raises SeveralErrors when all parts failed that were named.

        VS Code always asks by name, for all that lies at the top; with an error it drops the results of all parts.
        """
        found = sorted(self._found.items(), key=lambda item: item[0].tool.label)
        errors = [error.labelled(part.tool.label) for part, error in found]
        wanted = [part for part in self.parts if part.named] or self.parts
        if errors and all(part in self._found for part in wanted):
            raise SeveralErrors(errors)
        return [ProjectFailure(error) for error in errors]

    async def _collecting(self, part: Part, source: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        try:
            async with contextlib.aclosing(source):
                async for item in source:
                    yield item
        except Exception as error:  # a fault of one adapter is no reason for another's results to be lost
            self._found[part] = _as_bridge_error(error)
            if self._found[part] is not error:
                log.exception("a fault of %s", part.tool.label)


def _as_bridge_error(error: Exception) -> BridgeError:
    if isinstance(error, BridgeError):
        return error
    return BridgeError(f"{error!r}, a fault of the adapter", "please report it, with the log")


def named(error: Exception, part: Part) -> BridgeError:
    """The error with the name of the project, where it is one of several."""
    known = _as_bridge_error(error)
    return known.labelled(part.tool.label) if part.tool.folder else known


async def _naming(part: Part, source: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Yield from `source`; its errors name the project."""
    try:
        async with contextlib.aclosing(source):
            async for item in source:
                yield item
    except BridgeError as error:
        raise named(error, part) from error

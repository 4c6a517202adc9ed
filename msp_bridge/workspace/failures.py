"""Failures: what went wrong in one project of several, kept until the others have done their part."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator, Mapping
from typing import TypeVar

from attrs import define, field

from msp_bridge.errors import BridgeError, PartlyFailed
from msp_bridge.workspace.router import Part
from msp_bridge.workspace.side_by_side import side_by_side

log = logging.getLogger(__name__)

T = TypeVar("T")


@define
class Failures:
    """Of one request, which had `parts`."""

    parts: int
    _found: dict[str, tuple[BridgeError, bool]] = field(factory=dict)  # by label; and whether it was asked for by name

    def together(self, sources: Mapping[Part, AsyncGenerator[T, None]]) -> AsyncGenerator[T, None]:
        """What the parts' sources yield, each until it fails. The failure of the only one is raised at once."""
        if self.parts == 1:  # the usual case, and it takes its time for each result
            return next(iter(sources.values()))
        return side_by_side([self._kept(part, source) for part, source in sources.items()])

    def tell(self) -> None:
        """Raises PartlyFailed; or BridgeError when nobody did his part, or one who was asked by name didn't."""
        if not self._found:
            return
        text = "; ".join(f"{label}: {error}" for label, (error, _) in sorted(self._found.items()))
        if len(self._found) == self.parts or any(named for _, named in self._found.values()):
            raise BridgeError(text)
        raise PartlyFailed(text)

    async def _kept(self, part: Part, source: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        try:
            async with contextlib.aclosing(source):
                async for item in source:
                    yield item
        except BridgeError as error:
            self._found[part.tool.label] = (error, part.named)
        except Exception as error:  # a fault of one adapter is no reason for another's results to be lost
            log.exception("a fault of %s", part.tool.label)
            fault = BridgeError(f"{error!r}: that is a fault of the adapter; please report it, with the log")
            self._found[part.tool.label] = (fault, part.named)

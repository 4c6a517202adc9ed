"""SandboxPool: the private copies of one project, as many as there are runs at once, each kept for the next run."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from msp_bridge.concurrency import in_thread
from msp_bridge.toolkit.sandbox import Sandbox


class SandboxPool:
    """Each belongs to one run at a time, whichever bridge runs it. They aren't refreshed: that is the run's business.

    Resource handling: those that aren't taken stay claimed until `aclose`.
    """

    def __init__(self, home: Path, source: Path, name: str = "copy") -> None:
        """See `Sandbox.claim`."""
        self._home, self._source, self._name = home, source, name
        self._idle: list[Sandbox] = []

    @contextlib.asynccontextmanager
    async def lease(self) -> AsyncIterator[Sandbox]:
        """One that nobody else uses meanwhile; raises `ToolError` when all are in use, or none can be made."""
        copy = self._idle.pop() if self._idle else await self._claim()
        try:
            yield copy
        finally:
            self._idle.append(copy)

    async def aclose(self) -> None:
        """Let other bridges have them."""
        while self._idle:
            await asyncio.to_thread(self._idle.pop().close)

    async def _claim(self) -> Sandbox:
        claimed: list[Sandbox] = []
        try:
            await in_thread(lambda: claimed.append(Sandbox.claim(self._home, self._source, self._name)))
        except asyncio.CancelledError:
            self._idle += claimed
            raise
        return claimed[0]

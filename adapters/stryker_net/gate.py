"""Gate: runs side by side, and now and then something that has to be alone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable


class Gate:
    """Any number may share it; who wants it alone waits for these to leave, and goes before those that wait.

    Cancelling: whoever is cancelled while it waits leaves no trace.
    """

    def __init__(self) -> None:
        self._sharing = self._wanted = 0
        self._held = False
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """Beside others."""
        await self._until(lambda: not self._held and not self._wanted)
        self._sharing += 1
        try:
            yield
        finally:
            self._sharing -= 1
            self._wake()

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Nobody else is there."""
        self._wanted += 1
        try:
            await self._until(lambda: not self._held and not self._sharing)
            self._held = True
        finally:
            self._wanted -= 1
            self._wake()
        try:
            yield
        finally:
            self._held = False
            self._wake()

    async def _until(self, free: Callable[[], bool]) -> None:
        while not free():
            await self._changed.wait()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

"""Which mutants are tested side by side: one at a time where they would disturb each other or have ended a host."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
from collections.abc import AsyncIterator


class Turns:
    """A lock that goes to the waiter of the newest request.

    A newer request waits for the one mutant that is being tested, and for none that waits. That one is not ended for
    it: its tests would be run again from the beginning, whenever the user asks for something new.
    """

    def __init__(self) -> None:
        self._taken = False
        self._numbers = itertools.count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []  # a heap

    @contextlib.asynccontextmanager
    async def turn(self, request: int) -> AsyncIterator[None]:
        """A block in which nobody else is. The newest request has the highest number."""
        if self._taken:
            await self._wait(request)
        self._taken = True
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, request: int) -> None:
        given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (-request, next(self._numbers), given))
        try:
            await given
        except asyncio.CancelledError:
            if not given.cancelled():  # it was our turn already
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            _, _, given = heapq.heappop(self._waiting)
            if not given.done():
                given.set_result(None)
                return
        self._taken = False


class SharedTurn:
    """A turn for any number of mutants at a time, or for one alone.

    Those that are tested alone go first: they were being tested when the host ended, so a newcomer waits for a few.
    """

    def __init__(self) -> None:
        self._present = self._alone = 0  # alone: waiting or present
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def take(self, *, alone: bool) -> AsyncIterator[None]:
        """A block in which a mutant is tested: `alone`, or beside others."""
        self._alone += alone
        try:
            while self._present if alone else self._alone:
                await self._changed.wait()
            self._present += 1
            try:
                yield
            finally:
                self._present -= 1
        finally:
            self._alone -= alone
            self._changed.set()  # whoever waits looks again
            self._changed = asyncio.Event()

"""Mutants are tested one at a time where they would disturb each other: the newest request goes first."""

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

"""Bench: the one private copy in which tests run, and which request is at it: the newest."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable

from msp_bridge.adapter import Project, Result
from msp_bridge.concurrency import cancel_all

from .claim import Claim
from .copy import PrivateCopy

log = logging.getLogger(__name__)

AHEAD = 64  # results that nobody has taken yet
LOOK = 1.0  # s between two looks at whether the one at the bench is stalled
STALLED = 10.0  # s after which a request whose results nobody takes lets the others go on

Work = Callable[[PrivateCopy], AsyncGenerator[Result, None]]


class Visit:
    """One request's work at the bench. It ends when the work does, or when it has to make way."""

    def __init__(self, order: int, results: AsyncGenerator[Result, None]) -> None:
        self.order = order
        self.task = asyncio.create_task(self._work(results), name="Stryker.NET")
        self.task.add_done_callback(lambda _: self._news.set())
        self._ready: deque[Result] = deque()
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._full_since: float | None = None

    @property
    def stalled(self) -> bool:
        """Whether nobody has taken a result for a long time."""
        return self._full_since is not None and time.monotonic() - self._full_since > STALLED

    @property
    def finished(self) -> bool:
        """Whether its work came to its end."""
        return self.task.done() and not self.task.cancelled()

    def make_way(self) -> None:
        """End the work for the sake of another request. What it has found out already can still be taken."""
        self.task.cancel()

    async def results(self) -> AsyncGenerator[Result, None]:
        """What it found out, also before it made way. Raises what the work raised."""
        while self._ready or not self.task.done():
            if self._ready:
                result = self._ready.popleft()
                self._room.set()
                yield result
            else:
                self._news.clear()
                await self._news.wait()
        if self.finished:
            self.task.result()

    async def end(self) -> None:
        """End the work; returns when its processes are gone."""
        await cancel_all([self.task])

    async def _work(self, results: AsyncGenerator[Result, None]) -> None:
        async with contextlib.aclosing(results):
            async for result in results:
                while len(self._ready) >= AHEAD:
                    self._full_since = self._full_since or time.monotonic()
                    self._room.clear()
                    await self._room.wait()
                self._full_since = None
                self._ready.append(result)
                self._news.set()


class Bench:
    """One at a time, the newest first.

    Stryker.NET can't run twice in one copy, nor pause. So a newer request ends an older one's run, which starts again
    with what is left once the newer one is done. The newest finds a copy that is built, and all cores.
    """

    def __init__(self, project: Project) -> None:
        self._claim = Claim(project, "testing")
        self._busy = False
        self._visit: Visit | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    @contextlib.asynccontextmanager
    async def visit(self, order: int, work: Work) -> AsyncGenerator[Visit, None]:
        """The newest goes first: its `order` is the greatest. On leaving, its processes have ended."""
        await self._turn(order)
        try:
            copy = await self._claim.copy()
        except BaseException:
            self._pass_on()
            raise
        self._visit = visit = Visit(order, work(copy))
        visit.task.add_done_callback(self._left)
        if any(other > order for other, _ in self._waiting):
            visit.make_way()
        try:
            yield visit
        finally:
            await visit.end()

    async def aclose(self) -> None:
        """Let others have the copy."""
        await self._claim.aclose()

    async def _turn(self, order: int) -> None:
        if not self._busy:
            self._busy = True
            return
        if self._visit is not None and self._visit.order < order:
            self._visit.make_way()
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((order, mine))
        try:
            while not mine.done():
                await asyncio.wait([mine], timeout=LOOK)
                if not mine.done() and self._visit is not None and self._visit.stalled:
                    log.info("a request whose results nobody takes makes way for another one")
                    self._visit.make_way()
        except asyncio.CancelledError:
            if mine.done():
                self._pass_on()
            else:
                self._waiting.remove((order, mine))
            raise

    def _left(self, _: asyncio.Task[None]) -> None:
        self._visit = None
        self._pass_on()

    def _pass_on(self) -> None:
        if self._waiting:
            newest = max(self._waiting, key=lambda waiting: waiting[0])
            self._waiting.remove(newest)
            newest[1].set_result(None)
        else:
            self._busy = False

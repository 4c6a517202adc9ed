"""Progress: how far a call is, reported to its client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from msp_bridge.concurrency import at_most, meanwhile
from msp_bridge.notices import PhaseReport

BEAT_S = 1.0  # between two reports of progress

Report = Callable[[float, float | None, str], Awaitable[None]]  # progress, total, message


class CallProgress:
    """Reports how far a call is, once a second, also while nothing is found: clients give up on silent calls.

    MCP wants each report to have a greater number than the one before. Between two results the number comes nearer and
    nearer to the next one.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._beats, self._last = 0, -1.0
        self._done, self.total = 0, 0
        self.message = "looking for mutants"

    @contextlib.asynccontextmanager
    async def reported(self) -> AsyncIterator[None]:
        """While the block runs, and at its end.

        A report that is on its way then is not cancelled: whether the client got it would not be known.
        """
        over = asyncio.Event()
        async with meanwhile(self._beat(over), "progress") as beating:
            yield
            over.set()
            await beating

    def step(self, message: str) -> None:
        """One more is done."""
        self._done, self._beats, self.message = self._done + 1, 0, message

    def show_phase(self, phase: PhaseReport) -> None:
        """Say what is done until the first result."""
        if not self._done:
            self.message = str(phase)

    async def _beat(self, over: asyncio.Event) -> None:
        is_last = False
        while not is_last:
            is_last = over.is_set()
            await self._send()
            self._beats += 1
            async with at_most(BEAT_S):
                await over.wait()

    async def _send(self) -> None:
        complete = self.total and self._done == self.total
        now = self._done if complete else self._done + 1 - 1 / (self._beats + 1)
        if now > self._last:
            self._last = now
            await self._report(now, self.total or None, self.message)

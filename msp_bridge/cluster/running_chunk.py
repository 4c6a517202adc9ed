"""A chunk of mutants that a worker tests: its results, which the client asks for, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager

from attrs import define, field

from msp_bridge.cluster.place import WorkerPlace
from msp_bridge.cluster.wire import LEASE_S, Chunk, ChunkProgress, Row, WireError
from msp_bridge.concurrency import at_most
from msp_bridge.errors import BridgeError
from msp_bridge.notices import Notice, PhaseReport
from msp_bridge.phases import heard_by
from msp_bridge.rows import mutant_of, result_row

log = logging.getLogger(__name__)

AHEAD = 4  # results that are not asked for yet, beyond which no mutant is begun


@define(eq=False)
class RunningChunk:
    """A chunk from the first question for its results on, or from its start, until it is ended."""

    place_of: Callable[[str], AbstractAsyncContextManager[WorkerPlace]]  # by the id of the order; raises BridgeError
    rows: list[Row] = field(factory=list)
    asked: float = field(factory=time.monotonic)
    lease: float = LEASE_S
    begun: bool = False
    ended: bool = False
    _expired: bool = False
    _after: int = 0  # results that the client has
    _unmatched: Sequence[int] = ()
    _failure: WireError | None = None
    _notices: dict[Notice, None] = field(factory=dict)
    _phase: PhaseReport | None = None
    _changed: asyncio.Event = field(factory=asyncio.Event)
    _taken: asyncio.Event = field(factory=asyncio.Event)
    _testing: asyncio.Task[None] | None = None

    async def run(self, chunk: Chunk) -> None:
        """Test it; what goes wrong is part of the progress."""
        if self.ended or self._testing is not None:  # the client has given it up meanwhile
            return
        self.begun, self.lease = True, chunk.lease
        self._testing = asyncio.create_task(self._test(chunk), name=f"chunk {chunk.id}")
        try:
            await asyncio.wait([self._testing])
        finally:
            await self.end()

    async def progress(self, after: int, wait: float) -> ChunkProgress:
        """Serve `worker.progress`."""
        self.asked, self._after = time.monotonic(), max(after, self._after)
        self._taken.set()
        deadline = self.asked + wait
        while len(self.rows) <= after and not self.ended and (left := deadline - time.monotonic()) > 0:
            self._changed.clear()
            async with at_most(left):
                await self._changed.wait()
        rows = self.rows[after:]
        return ChunkProgress(
            rows, self.begun, self.ended, self._expired, self._unmatched, self._failure, [*self._notices], self._phase
        )

    async def expire(self) -> bool:
        """End it, as its lease has run out. Returns whether there was anything left to test."""
        self._expired = not self.ended
        await self.end()
        return self._expired

    async def end(self) -> None:
        """End its tests, if they run. Returns when they have ended."""
        testing = self._testing
        if testing is not None:
            testing.cancel()
            await asyncio.wait([testing])
        self.ended = True
        self._changed.set()

    async def _test(self, chunk: Chunk) -> None:
        with heard_by(self._hear):
            self._failure = await failure_of(self._tested(chunk))

    def _hear(self, phase: PhaseReport) -> None:
        self._phase = phase

    async def _tested(self, chunk: Chunk) -> None:
        async with self.place_of(chunk.order) as place:
            matched, self._unmatched = await place.matched([mutant_of(row) for row in chunk.mutants])
            if not matched:
                return
            assert place.adapter is not None
            async with contextlib.aclosing(place.adapter.test(list(matched))) as results:
                async for result in results:
                    if isinstance(result, Notice):
                        self._notices[result] = None
                        continue
                    number = matched.pop(result.mutant, None)  # one result, whatever the adapter does
                    if number is not None:
                        self.rows.append([number, *result_row(result)])
                        self._changed.set()
                    while len(self.rows) - self._after >= AHEAD:
                        self._taken.clear()
                        await self._taken.wait()


async def failure_of(work: Awaitable[None]) -> WireError | None:
    """The error as the client gets it; None when the work was done."""
    try:
        await work
    except BridgeError as error:
        return WireError.of(error)
    except Exception as error:  # a fault of an adapter, which is no reason for the client to lose its other workers
        log.exception("a fault on a worker")
        return WireError("tool", f"{error!r}, a fault of the adapter", "please report it, with the worker's log")
    return None

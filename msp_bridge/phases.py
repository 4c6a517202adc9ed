"""Phases: what a tool is busy with before its first result, for a person who waits for it.

What does the work calls `report_phase`, also in a thread. `batches` adds each report to the stream of the
request for which the work is done: the context in which the stream runs says which one that is, and tasks and threads
that are started in it have the same context. Outside of a request a report is only logged.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextvars import ContextVar
from typing import TypeVar

from attrs import define, field

from msp_bridge.concurrency import meanwhile
from msp_bridge.notices import Notice, PhaseReport

log = logging.getLogger(__name__)

T = TypeVar("T")
Listener = Callable[[PhaseReport], object]
Tell = Callable[[Notice], Awaitable[None]]

COPYING = "copying the project"
DISCOVERING = "looking for mutants"
GENERATING = "generating the mutated code"
COLLECTING = "collecting the tests"
BASELINE = "running the tests without mutants"
WHOLE_SUITE = "the tests that may run the mutant pass with it; running all"
VERIFYING = "testing mutants again in fresh processes"
BRIEF_S = 0.3  # what is over sooner isn't reported
EVERY_S = 0.2
MAX_BATCH = 250  # results at once: 2 ms of work, so that a flood of results delays nobody

_listener: ContextVar[Listener | None] = ContextVar("listener to phases", default=None)


@define
class Phase:
    """A phase that has just begun. Call `reached` as often as you like: only some of the calls are reported."""

    name: str
    total: int | None = None
    _next: float = field(init=False, factory=lambda: time.monotonic() + BRIEF_S)
    _reported: bool = field(init=False, default=False)

    def reached(self, done: int) -> None:
        """Say that so many steps are done."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + EVERY_S
            report_phase(self.name, done, self.total, begins=not self._reported)
            self._reported = True


def report_phase(
    name: str, done: int | None = None, total: int | None = None, test: str | None = None, *, begins: bool = True
) -> None:
    """Say that a phase begins or, with `begins=False`, how far it has come, and which test keeps it."""
    report = PhaseReport(name, done, total, test)
    log.log(logging.INFO if begins or test else logging.DEBUG, "%s", report)
    listener = _listener.get()
    if listener is not None:
        listener(report)


@contextlib.contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Meanwhile `listener` gets what is reported in this context, in any thread."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


async def batches(
    source: AsyncGenerator[T | Notice, None], tell: Tell, *, limit: int = MAX_BATCH, level: int = logging.INFO
) -> AsyncGenerator[list[T], None]:
    """The items of `source` in lists: all that have arrived since the previous list was taken, at most `limit`.

    `tell` gets its notices, each in its place, and what phases are reported while it works. The log records notices
    with `level`.
    Back-pressure: while `limit` items wait, nothing is taken from `source`.
    Cancelling: closing this closes `source`, and waits for it. What has arrived before a cancel goes out first.
    """
    ready: list[T | Notice] = []
    arrived, room, loop = asyncio.Event(), asyncio.Event(), asyncio.get_running_loop()

    def add(item: T | Notice) -> None:
        ready.append(item)
        arrived.set()

    async def gather() -> None:
        with heard_by(lambda report: loop.call_soon_threadsafe(add, report)):
            async with contextlib.aclosing(source):
                async for item in source:
                    add(item)
                    if len(ready) >= limit:
                        room.clear()
                        await room.wait()

    async with meanwhile(gather(), "gathering results") as gathering:
        gathering.add_done_callback(lambda _: arrived.set())
        while ready or not gathering.done():
            try:
                await arrived.wait()
            except asyncio.CancelledError:
                if not ready:
                    raise
                _cancel_at_next_wait()
            arrived.clear()
            batch = ready.copy()
            ready.clear()
            room.set()
            for notice in batch:
                if isinstance(notice, Notice):
                    if not isinstance(notice, PhaseReport):  # that is logged where it is reported
                        log.log(level, "%s", notice)
                    await tell(notice)
            if items := [item for item in batch if not isinstance(item, Notice)]:
                yield items
        gathering.result()


def _cancel_at_next_wait() -> None:
    """Have this task's cancel, which it has just caught, raised again where it next waits."""
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()  # it counts once, or `asyncio.timeout` would not know its own
    task.cancel()

"""Which mutant is tested next: the newest request first, and never more at once than the job budget allows.

Theory of operation
-------------------
The problem. Several requests test mutants of one project at the same time. Each wants all the cores. The editor's user
waits for the newest one. The budget (`Project.jobs`) changes while they run, since other tools share the machine. An
older request may have a mutant in an endless loop, and must not keep a newer one waiting for it.

The rules.

1. A request starts a job while fewer jobs than the budget run, those of all requests counted.
2. A request that has no job running may always start one. So none waits for another's endless loop; the budget is
   exceeded by at most one job for each request.
3. When a job ends, the newest request that waits goes next.
4. A request starts jobs only while its next result is awaited. That is how the front end pauses an older request.

Each waiting request has a job of its own running (rule 2), whose end wakes it, so no request waits for ever. A budget
that grows counts from the next end of a job, or from a call of `look`.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from attrs import define, field

from msp_bridge.concurrency import cancel_all

T = TypeVar("T")
R = TypeVar("R")


@define(eq=False)
class _Request:
    """One call of `JobScheduler.run`."""

    running: set[asyncio.Task[Any]] = field(factory=set)
    turn: asyncio.Future[None] | None = None  # while it waits for its turn


class JobScheduler:
    """Runs the jobs of all requests of one project. `jobs` is read whenever a job could start."""

    def __init__(self, jobs: Callable[[], int]) -> None:
        self._jobs = jobs
        self._requests: list[_Request] = []  # the oldest first
        self._active = 0

    async def run(self, items: Iterable[T], work: Callable[[T], Coroutine[Any, Any, R]]) -> AsyncGenerator[R, None]:
        """Yield the result of `work` for each of `items`, each as soon as it is known.

        Cancelling: when it is closed, its jobs have been cancelled and have ended.
        Back-pressure: a job starts only while the next result is awaited. Jobs that have begun go on.
        Errors: the first failure of a job is raised, after the results that came with it. The other jobs are cancelled.
        """
        request, pending = _Request(), deque(items)
        self._requests.append(request)
        try:
            while pending or request.running:
                if pending and await self._may_start(request):
                    self._start(request, work(pending.popleft()))
                    continue
                done, _ = await asyncio.wait(request.running, return_when=asyncio.FIRST_COMPLETED)
                request.running -= done
                failures = [failure for task in done if (failure := task.exception()) is not None]
                for task in done:
                    if task.exception() is None:
                        yield task.result()
                if failures:
                    raise failures[0]
        finally:
            self._requests.remove(request)
            await cancel_all(request.running)

    async def _may_start(self, request: _Request) -> bool:
        """True in its turn; False as soon as one of its own jobs is done."""
        while request.running and self._active >= self._jobs():
            request.turn = asyncio.get_running_loop().create_future()
            try:
                await asyncio.wait([request.turn, *request.running], return_when=asyncio.FIRST_COMPLETED)
            finally:
                request.turn = None
            if any(task.done() for task in request.running):
                return False
        return True

    def _start(self, request: _Request, work: Coroutine[Any, Any, Any]) -> None:
        self._active += 1
        task = asyncio.create_task(work, name="job")
        task.add_done_callback(self._ended)  # and not a `finally`: a task may be cancelled before its first step
        request.running.add(task)

    def _ended(self, _: asyncio.Task[Any]) -> None:
        self._active -= 1
        self.look()

    def look(self) -> None:
        """The budget may have grown: the newest request that waits looks at it."""
        for request in reversed(self._requests):
            if request.turn is not None and not request.turn.done():
                request.turn.set_result(None)  # and not its turn: a newer one may have come
                return

"""Pool: the workers of one project, and how a batch of mutations becomes results.

The seam: a batch is a test command and mutations, each of which names its file by the digest of its content; a worker's
copy is named by the digest of the whole tree. Results come out one by one. Nothing in a batch depends on where the copy
is, so workers on other machines can stand behind the same two methods. cosmic-ray's own HTTP distributor can't: its
workers take commands from anyone, lose the jobs of those that die, and need the same paths everywhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from operator import itemgetter
from typing import Any

from attrs import frozen

from msp_bridge.adapter import Mutant, Project, Result, Status
from msp_bridge.concurrency import cancel_all

from .baseline import Baseline
from .command import TestCommand
from .mutation import Mutation
from .script import ScriptEnded
from .worker import Worker

log = logging.getLogger(__name__)

ATTEMPTS = 2  # for a mutant whose worker dies
EDITS = 5  # how often a file may change under a mutant before we give up


@frozen(eq=False)
class Batch:
    """What one request wants tested."""

    command: TestCommand
    modules: tuple[str, ...]  # all that may be mutated
    mutations: Sequence[Mutation]
    resolve: Callable[[Mutant], Awaitable[Mutation | None]]  # the mutation anew, after an edit


class Pool:
    """At most `jobs` workers, warm from one request to the next and shared by all; the newest is served first.

    When other projects come to work beside this one there are less `jobs`: a worker that becomes free then rests.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._free = [Worker(project) for _ in range(max(1, project.jobs))]
        self._all = tuple(self._free)
        self._waiting: list[tuple[int, bool, asyncio.Future[Worker]]] = []  # request, whether it has another worker
        self._requests = 0
        self._baseline = Baseline()

    async def run(self, batch: Batch) -> AsyncGenerator[Result, None]:
        """A result for each mutation that still exists, each as soon as it is known.

        Back-pressure: takes a worker only while somebody awaits the next result; tests that have begun go on.
        Cancelling: when it is closed, its tests have ended and its workers are free.
        Errors: `ToolError` when the tests can't tell anything about mutants.
        """
        self._requests += 1
        request, pending = self._requests, deque(batch.mutations)
        running: set[asyncio.Task[Result | None]] = set()
        try:
            while pending or running:
                worker = await self._worker(request, running) if pending else None
                if worker is not None:
                    task = asyncio.create_task(self._test(worker, pending.popleft(), batch), name="testing a mutant")
                    task.add_done_callback(partial(self._finished, worker))
                    running.add(task)
                    continue
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                failures = [failure for task in done if (failure := task.exception()) is not None]
                for task in done:
                    if task.exception() is None and (result := task.result()) is not None:
                        yield result
                if failures:
                    raise failures[0]
        finally:
            await cancel_all(running)

    async def _worker(self, request: int, running: set[asyncio.Task[Result | None]]) -> Worker | None:
        """A free worker, or None as soon as one of `running` is done."""
        if self._free and (not running or self._busy < self._project.jobs):
            return self._free.pop()
        lent: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
        waiting = (request, bool(running), lent)
        self._waiting.append(waiting)
        try:
            waited: list[asyncio.Future[Any]] = [lent, *running]
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if lent.done():
                self._release(lent.result())
            raise
        finally:
            with suppress(ValueError):
                self._waiting.remove(waiting)
        return lent.result() if lent.done() else None

    def _finished(self, worker: Worker, task: asyncio.Task[Result | None]) -> None:
        self._release(worker)

    def _release(self, worker: Worker) -> None:
        too_many = self._busy > self._project.jobs
        waiting = [place for place in self._waiting if not (too_many and place[1])]
        if waiting:
            newest = max(waiting, key=itemgetter(0))
            self._waiting.remove(newest)
            newest[2].set_result(worker)
        else:
            self._free.append(worker)

    @property
    def _busy(self) -> int:
        return len(self._all) - len(self._free)

    async def _test(self, worker: Worker, mutation: Mutation, batch: Batch) -> Result | None:
        current: Mutation | None = mutation
        for _ in range(EDITS):
            if current is None:
                return None
            if current.known is not None:
                return current.known
            result = await self._attempt(worker, current, batch)
            if result is not None:
                return result
            worker.forget()
            current = await batch.resolve(mutation.mutant)
        return Result(
            mutation.mutant, Status.RUNTIME_ERROR, status_reason=f"{mutation.mutant.path} is not in the private copy"
        )

    async def _attempt(self, worker: Worker, mutation: Mutation, batch: Batch) -> Result | None:
        """The result; None when the file isn't the one that was mutated."""
        reason = ""
        module = mutation.module
        files = {module.path: (module.digest, mutation.content)}
        for attempt in range(ATTEMPTS):
            try:
                await worker.refresh(batch)
                await self._baseline.prove(worker, batch.command, batch.modules)
                run = await worker.run(batch.command, files, observed=self._baseline.observed)
            except ScriptEnded as error:
                log.warning("a worker died while it tested %s: %s", module.path, error)
                reason = str(error)
                continue
            if run.outcome == "stale":
                return None
            if run.was_killed and attempt == 0:
                worker.forget()
                continue
            return run.result(mutation.mutant)
        return Result(mutation.mutant, Status.RUNTIME_ERROR, status_reason=f"the worker died twice: {reason}")

    async def aclose(self) -> None:
        """End the workers and give back their copies."""
        for worker in self._all:
            await worker.aclose()

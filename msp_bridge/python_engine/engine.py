"""The engine: mutants in, results out, over hosts that are kept up to date with the user's files.

Theory of operation: a preparation ahead
----------------------------------------
After an edit, an editor lists the mutants of the file, and asks for their verdicts later. The host is brought up to
date in between, so that the first verdict waits for less: above all where the edit needs a restart. No verdict is
given meanwhile: what the old host would say is about files that are no more.

- It begins only after a request for verdicts: a client that only lists mutants has no test run.
- A request that runs follows the files itself; none is prepared ahead beside it.
- A request that comes at once needs none: it ends one that has not begun. Otherwise it waits for it, and its cancel
  ends both.
- One that runs all tests is given up when it is wanted again and files have changed: it would be waited for in vain.
  A reload is not given up: it takes less time than the restart that would follow.
- What fails in it is raised by the request that meets it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from contextvars import Context
from functools import partial

from attrs import evolve

from msp_bridge.adapter import AskRanAlone, BridgeError, Finding, Project, Reach
from msp_bridge.concurrency import SharedLock, cancel_all, meanwhile, shields
from msp_bridge.model import Mutant, Ran, Result, Status
from msp_bridge.notices import FailingTest, Notice
from msp_bridge.python_engine.host import Host
from msp_bridge.python_engine.host_slot import LOOK_AGAIN_S, HostPool, HostSlot
from msp_bridge.python_engine.plan import TestPlan
from msp_bridge.python_engine.program import time_of_packages
from msp_bridge.python_engine.remedies import remedy_of
from msp_bridge.text import counted
from msp_bridge.toolkit import JobScheduler, ProcessEnded, Sandbox, SandboxPool
from msp_bridge.toolkit.variables import variables

log = logging.getLogger(__name__)

HOSTS_PER_MUTANT = 2  # that one mutant may cost, the last one when it is tested alone
PAUSE_S = 0.1  # an editor that wants verdicts at once has asked for them by then
EXACT = "MSP_BRIDGE_EXACT"  # an environment variable: see `TestPlan.exact`
MADE_BY_TOOLS = frozenset({"mutants"})  # by `mutmut run`; deeper down it may be somebody's package

AskPlan = Callable[[], Awaitable[TestPlan | None]]  # finds out how the tests are run now; None: not by this engine


class PreparationAhead:
    """At most one at a time; see above."""

    def __init__(self, slot: HostSlot, noting: Callable[[TestPlan], TestPlan]) -> None:
        """`noting` says what the project asks for beside the tool's configuration."""
        self._slot, self._noting = slot, noting
        self._task: asyncio.Task[None] | None = None
        self._has_begun = self._again = False

    def want(self, plan: AskPlan) -> None:
        """Begin soon, or look once more at the files when the one that runs has ended."""
        self._again = True
        if self._task is None or self._task.done():
            self._has_begun = False
            outside = Context()  # of any request: nobody waits for its phases
            self._task = asyncio.create_task(self._run(plan), name="preparation ahead", context=outside)

    async def join(self) -> None:
        """Wait for the one that has begun. A cancel ends it."""
        task = self._task
        if task is None or task.done():
            return
        self._again = True
        try:
            if self._has_begun:
                await asyncio.wait([task])
        finally:
            await cancel_all([task])

    async def aclose(self) -> None:
        """End the one that runs."""
        if self._task is not None:
            await cancel_all([self._task])

    async def _run(self, plan: AskPlan) -> None:
        await asyncio.sleep(PAUSE_S)
        self._has_begun = True
        while self._again:
            self._again = False
            async with meanwhile(self._prepare(plan), "preparation") as preparing:
                while not preparing.done():
                    if self._again and await self._slot.prepares_in_vain():
                        await cancel_all([preparing])
                    else:
                        await asyncio.wait([preparing], timeout=LOOK_AGAIN_S)

    async def _prepare(self, plan: AskPlan) -> None:
        try:
            current = await plan()
            if current is not None:
                self._slot.begin_request()
                await self._slot.prepared(self._noting(current))
        except BridgeError as error:
            log.debug("not prepared ahead: %s", error)
        except Exception:  # a fault of ours: nobody awaits this task for its result
            log.exception("a fault in a preparation ahead")


class PythonEngine:
    """Tests mutants whose `handle` is a `PythonEdit`. Which one is next: see `JobScheduler`.

    One host tests all mutants that run. Its `JobQueue` decides which of their jobs is next, and which run side by side.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        home = project.cache.resolve()
        claim = partial(Sandbox.claim, home, project.root, left_out=MADE_BY_TOOLS, limit=8 * max(2, project.jobs))
        self._sandboxes: HostPool = SandboxPool(claim)
        self._scheduler = JobScheduler(lambda: project.jobs + self._slot.waiting)
        self._slot = HostSlot(project, self._sandboxes, self._scheduler.look)
        self._requests = itertools.count()
        self._plan: TestPlan | None = None  # of the last request
        self._host_lock = SharedLock()  # alone: what was tested when a host ended
        self._running = 0  # requests
        self._ahead = PreparationAhead(self._slot, self._noting)

    async def test(self, mutants: Sequence[Mutant], plan: AskPlan) -> AsyncGenerator[Result | Notice, None]:
        """A result for each mutant whose file has not changed since, and what the host tells of its tests."""
        asked = await plan() if mutants else None
        if asked is None:
            return
        async with self._request(asked) as noted:
            work = partial(self._test, noted, next(self._requests))
            told: set[Notice] = set()
            async with aclosing(self._scheduler.run(mutants, work)) as results:
                async for result in results:
                    for notice in self._news(told):
                        yield notice
                    if result is not None:
                        yield result
            if len(mutants) > 1:  # all may be killed before a failing test is known; an editor's one does not wait
                await self._slot.finish_measuring(noted)
                for notice in self._news(told):
                    yield notice

    @asynccontextmanager
    async def _request(self, asked: TestPlan) -> AsyncIterator[TestPlan]:
        """A request for verdicts: its plan, with what the project asks for."""
        self._running += 1
        try:
            await self._ahead.join()
            self._slot.begin_request()
            self._plan = self._noting(asked)
            yield self._plan
        finally:
            self._running -= 1

    def _news(self, told: set[Notice]) -> list[Notice]:
        """The host's notices that are not in `told`, which they are added to."""
        new = [notice for notice in self._slot.notices if notice not in told]
        told.update(new)
        return new

    async def reach(
        self, mutants: Sequence[Mutant], plan: TestPlan, known: AskRanAlone, *, alone: bool
    ) -> Mapping[Mutant, Reach]:
        """Implement `KnowsReach`."""
        async with self._request(plan) as noted:
            return await self._slot.reach(mutants, noted, known, alone=alone)

    def ran_alone(self) -> Mapping[str, tuple[Ran, ...]]:
        """Implement `KnowsReach`."""
        host = self._slot.host
        return {} if host is None else host.ran_alone

    def prepare_ahead(self, plan: AskPlan) -> None:
        """Begin to bring the host up to date with the files, for the request that is likely to come; see above."""
        if self._plan is not None and not self._running:
            self._ahead.want(plan)

    async def prepare(self, plan: TestPlan) -> Host:
        """A host that has the files as they are, and has measured all tests, for `doctor`. Raises ToolError."""
        self._slot.begin_request()
        return await self._slot.settled(self._noting(plan))

    async def failing_tests(self, plan: TestPlan) -> Collection[str]:
        """The names of the tests that fail without any mutant. Raises ToolError."""
        return (await self.prepare(plan)).failing

    async def diagnose(self, plan: TestPlan) -> AsyncGenerator[Finding, None]:
        """How many tests there are, what is isolated for each mutant, and which tests fail without any mutant."""
        try:
            host = await self.prepare(plan)
        except BridgeError as error:
            yield Finding.of_error("tests", error)
            return
        yield Finding(True, "tests", counted(len(host.tests), "test"))
        yield Finding(True, "isolation", f"isolated per mutant: {', '.join(host.isolation) or 'a process'}")
        for test, why in host.failing.items():
            remedy = remedy_of(why, plan, self._project.root) or f"fix it, or {plan.remedy}"
            yield Finding(False, "tests", str(FailingTest(test, why)), remedy)

    async def check_tests(self) -> AsyncGenerator[Finding, None]:
        """Implement `ChecksTests.check_tests`; yields nothing before mutants were tested."""
        if self._plan is None:
            return
        plan = self._plan
        unsteady = await (await self.prepare(plan)).unsteady_tests()
        for test, why in unsteady.items():
            text = f"{test} {why}; each mutant that it kills is tested again while nothing else runs"
            yield Finding(False, "tests", text, f"make it steady, or {plan.remedy}")
        if not unsteady:
            yield Finding(True, "tests", "passed 2 repeats (1 under load)")

    def _noting(self, plan: TestPlan) -> TestPlan:
        exact = os.environ.get(EXACT, "0") not in ("", "0")
        values = variables(os.environ, self._project.environment)
        environment = f"{plan.environment} {time_of_packages(plan.python)} {values}"
        return evolve(plan, dependencies=self._project.incremental, exact=exact, environment=environment)

    @shields
    async def aclose(self) -> None:
        """End the hosts and give the sandboxes back. A cancel is raised when that is done."""
        try:
            await self._ahead.aclose()
            await self._slot.aclose()
        finally:
            await self._sandboxes.aclose()

    async def _test(self, plan: TestPlan, request: int, mutant: Mutant) -> Result | None:
        """The result; None when the file has changed."""
        problem = ""
        for attempt in range(HOSTS_PER_MUTANT):
            try:
                async with self._host_lock.alone() if attempt else self._host_lock.shared():
                    return await self._slot.test(mutant, plan, request)
            except ProcessEnded as error:
                problem = str(error)
        return Result(mutant, Status.RUNTIME_ERROR, status_reason=problem)

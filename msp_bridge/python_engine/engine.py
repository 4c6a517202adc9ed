"""The engine: mutants in, results out, over hosts that are kept up to date with the user's files."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, nullcontext
from functools import partial

from msp_bridge.adapter import BridgeError, Finding, Project
from msp_bridge.concurrency import SharedLock, run_shielded
from msp_bridge.model import Mutant, Result, Status
from msp_bridge.python_engine.host import Host, TestPlan
from msp_bridge.python_engine.slot import HostPool, HostSlot
from msp_bridge.text import counted
from msp_bridge.toolkit import JobScheduler, ProcessEnded, Sandbox, SandboxPool
from msp_bridge.toolkit.scheduling import NewestFirstLock

HOSTS_PER_MUTANT = 2  # that one mutant may cost, the last one when it is tested alone
MADE_BY_TOOLS = frozenset({"mutants"})  # by `mutmut run`; deeper down it may be somebody's package


class PythonEngine:
    """Tests mutants whose `handle` is a `PythonEdit`. Which one is next: see `JobScheduler`.

    One host tests all mutants that run, where each gets a world of its own. Elsewhere what a mutant writes can only be
    undone when no other runs beside it, and two that listen at the same port would kill each other: there they are
    tested one after another. Not only those whose tests were seen to listen or to write without the mutant: the mutant
    may be the one that makes them, and the other one would pay.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        home = project.cache.resolve()
        claim = partial(Sandbox.claim, home, project.root, left_out=MADE_BY_TOOLS, limit=8 * max(2, project.jobs))
        self._sandboxes: HostPool = SandboxPool(claim)
        self._slot = HostSlot(project, self._sandboxes)
        self._one_at_a_time = NewestFirstLock()  # for mutants that can not run side by side
        self._requests = itertools.count()
        self._plan: TestPlan | None = None  # of the last request
        self._scheduler = JobScheduler(lambda: project.jobs)
        self._host_lock = SharedLock()  # alone: what was tested when a host ended

    async def test(self, mutants: Sequence[Mutant], plan: TestPlan) -> AsyncGenerator[Result, None]:
        """A result for each mutant whose file has not changed since; see `Adapter.test`."""
        self._slot.begin_request()
        self._plan = plan
        work = partial(self._test, plan, next(self._requests))
        async with aclosing(self._scheduler.run(mutants, work)) as results:
            async for result in results:
                if result is not None:
                    yield result

    async def prepare(self, plan: TestPlan) -> Host:
        """A host that has the files as they are, for `doctor`. Raises ToolError."""
        self._slot.begin_request()
        return await self._slot.prepared(plan)

    async def diagnose(self, plan: TestPlan) -> AsyncGenerator[Finding, None]:
        """How many tests there are, what each mutant has for itself, and which tests fail without any mutant."""
        try:
            host = await self.prepare(plan)
        except BridgeError as error:
            yield Finding(False, "tests", error.problem, error.remedy)
            return
        yield Finding(True, "tests", counted(host.size, "test"))
        yield Finding(True, "isolation", f"each mutant has for itself: {', '.join(host.isolation) or 'a process'}")
        for test, why in host.failing.items():
            text = f"{test} fails without any mutant, and is left out: {why}"
            yield Finding(False, "tests", text, f"fix it, or {plan.remedy}")

    async def check_tests(self) -> AsyncGenerator[Finding, None]:
        """See `ChecksTests.check_tests`; nothing before mutants were tested."""
        if self._plan is None:
            return
        plan = self._plan
        unsteady = await (await self.prepare(plan)).unsteady_tests()
        for test, why in unsteady.items():
            text = f"{test} {why}; each mutant that it kills is tested again while nothing else runs"
            yield Finding(False, "tests", text, f"make it steady, or {plan.remedy}")
        if not unsteady:
            yield Finding(True, "tests", "they passed twice more, the second time on a busy machine")

    async def aclose(self) -> None:
        """End the hosts and give the sandboxes back. A cancel is raised when that is done."""
        await run_shielded(self._close(), "end of the Python engine")

    async def _close(self) -> None:
        try:
            await self._slot.aclose()
        finally:
            await self._sandboxes.aclose()

    async def _test(self, plan: TestPlan, request: int, mutant: Mutant) -> Result | None:
        """The result; None when the file has changed."""
        problem = ""
        for attempt in range(HOSTS_PER_MUTANT):
            try:
                async with self._host_lock.alone() if attempt else self._host_lock.shared():
                    host = await self._slot.prepared(plan)
                    async with nullcontext() if host.keeps_apart else self._one_at_a_time.held(request):
                        return await self._slot.test(mutant, plan)
            except ProcessEnded as error:
                problem = str(error)
        return Result(mutant, Status.RUNTIME_ERROR, status_reason=problem)

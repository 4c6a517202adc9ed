"""Testing: mutants in, results out, each by a fresh test host.

A mutant that ends in a time-out or with a crash is tested once more when the others of its request are done, with
nothing beside it: another mutant may have taken the processor or the memory from it. Its tests are run without it just
before, because the machine may be slower now than it was at the baseline: from that comes the second time-out. A mutant
that has computed for all of the time, as most endless loops do, had the processor: its time-out is final
(`hosts.within`).

The covering tests are known from a run of all tests in one process. What the first of them computes and keeps, later
ones use without running the code, and one may need what another has left. So all tests of their assemblies decide on a
mutant that survives the covering ones, or that is killed by a test which fails alone without it. To kill it, they
have to do so twice.

Coverage does not have programs that tests start, which inherit the mutant. So all tests of assemblies that start some
decide on a mutant that is not covered, too; it stays so if they pass.

Data of tests (MemberData, TestCaseSource) are computed where the tests are looked for, before any runs. A selected test
may have data that were computed without the mutant, or not be found with it. So of an assembly where that runs the
mutant's code all tests decide, which are looked for with the mutant.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from operator import attrgetter

from attrs import evolve, field, frozen

from msp_bridge.adapter import FailingTest, Mutant, Notice, Project, Remark, Result, Status
from msp_bridge.source import as_discovered
from msp_bridge.toolkit import JobScheduler

from .hosts import Case, HostsUnavailable, Outcome
from .preparation import Preparation
from .prepared import BASELINE_TIMEOUT_S, Prepared, PreparedBase, StrykerNetBaseline
from .report import ReportEntry

TIME_FACTOR = 1.5  # the tool's: a time-out is this much of the time of the tests, and `additional-timeout`
ALL_FAIL = "Only covered by already failing tests."  # the tool's own words


@frozen
class HostVerdict:
    """A host's verdict on a mutant: no result when it is no longer there; `open` when it is to be tested again.

    `failing` are the tests that were left out.
    """

    mutant: Mutant
    result: Result | None = None
    open: bool = False
    failing: Mapping[str, str] = field(factory=dict)


class Testing:
    """Tests mutants of a preparation, as `JobScheduler` has them follow each other.

    Cancelling: closing a generator ends the test hosts of its mutants, and what is measured ahead of requests.
    """

    __test__ = False  # pytest would take it for a test

    def __init__(self, project: Project, preparation: Preparation) -> None:
        self._project, self._preparation = project, preparation
        self._scheduler = JobScheduler(lambda: max(1, project.jobs))

    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        """Implement `Adapter.test`."""
        if mutants:
            async with self._preparation.requested(), contextlib.aclosing(self._request(mutants)) as results:
                async for result in results:
                    yield result

    async def _request(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        root, of = self._project.root, attrgetter("handle")
        due = await asyncio.to_thread(as_discovered, root, dict.fromkeys(mutants), of)
        async with self._preparation.held() as prepared:
            untested = [known for mutant in due if (known := _known(prepared, mutant)) is not None]
        for known in untested:
            yield known
        done = {result.mutant for result in untested}
        try:
            async with contextlib.aclosing(self._by_hosts([mutant for mutant in due if mutant not in done])) as found:
                async for result in found:
                    if isinstance(result, Result):
                        done.add(result.mutant)
                    yield result
        except ByTheTool as error:
            if error.reason:
                yield Remark(f"{error.reason}: Stryker.NET itself tests the mutants")
            for one in await self._by_tool([mutant for mutant in due if mutant not in done]):
                yield one

    async def _by_hosts(self, mutants: Iterable[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        again: list[Mutant] = []
        told: set[str] = set()
        for items, work in ((mutants, self._first), (again, self._again)):
            async with contextlib.aclosing(self._scheduler.run(items, work)) as verdicts:
                async for verdict in verdicts:
                    for test in verdict.failing.keys() - told:
                        told.add(test)
                        yield FailingTest(test, verdict.failing[test])
                    if verdict.open:
                        again.append(verdict.mutant)
                    elif verdict.result is not None:
                        yield verdict.result

    async def _first(self, mutant: Mutant) -> HostVerdict:
        async with self._preparation.held() as prepared:
            return await self._tested(prepared, mutant)

    async def _again(self, mutant: Mutant) -> HostVerdict:
        async with self._preparation.held(alone=True) as prepared:
            return evolve(await self._tested(prepared, mutant, measure=True), open=False)

    async def _tested(self, prepared: Prepared, mutant: Mutant, *, measure: bool = False) -> HostVerdict:
        """Raises `ToolError`, `ByTheTool` when it can't be tested here."""
        found = prepared.entry(mutant)
        if found is None:
            return HostVerdict(mutant)
        if (known := _known(prepared, mutant)) is not None:
            return HostVerdict(mutant, known)
        if prepared.by_tool is not None:
            raise ByTheTool(prepared.by_tool)
        part, entry = found
        try:
            baseline = await self._preparation.baseline(prepared, part)
            anew = baseline.anew(entry)
            cases = baseline.covering(entry) if entry.pending else baseline.of(part.starters | anew)
            reusable = not baseline.failing  # else nobody would hear of these tests in the next run
            if not cases:
                result = Result(mutant, Status.SURVIVED, status_reason=ALL_FAIL, static=entry.static)
                result = result if entry.pending else evolve(entry.result, mutant=mutant)
                return HostVerdict(mutant, evolve(result, reusable=reusable), failing=baseline.failing)
            whole = baseline.of({case.source for case in cases} | part.starters | anew)
            run = whole if anew else cases
            outcome = await _outcome(part, entry, baseline, run, measure=measure)
            if len(whole) > len(run) and await _is_open(part, cases, outcome):
                run, outcome = whole, await _outcome(part, entry, baseline, whole, measure=measure)
            if outcome.failures and (run is whole or not entry.pending):  # a test of so many may fail by chance
                outcome = await _outcome(part, entry, baseline, run, measure=measure)
        except HostsUnavailable as error:
            prepared.by_tool = str(error)
            raise ByTheTool(prepared.by_tool) from error
        covered_by = tuple(dict.fromkeys(case.name for case in cases)) if entry.covered_by else None
        selected = [case for case in run if case.source not in anew]
        result = evolve(_result(mutant, entry, selected, outcome), covered_by=covered_by, reusable=reusable)
        if result.status is Status.SURVIVED and not entry.pending:
            result = evolve(entry.result, mutant=mutant, reusable=reusable)
        late = outcome.timed_out and not outcome.computed
        return HostVerdict(mutant, result, late or outcome.fault is not None, baseline.failing)

    async def _by_tool(self, mutants: Sequence[Mutant]) -> list[Result]:
        """The results of the tool's own run for the files of `mutants`. A newer request waits for it."""
        results = []
        async with self._preparation.held(alone=True) as prepared:
            due = {mutant: found for mutant in mutants if (found := prepared.entry(mutant)) is not None}
            for part in prepared.parts:
                wanted = {mutant: None for mutant, (own, _) in due.items() if own is part}
                if wanted:
                    paths = sorted({mutant.path for mutant in wanted})
                    entries = await self._preparation.run_tool(prepared, part, paths)
                    results += [
                        e.result
                        for e in entries
                        if e.mutant in wanted and e.mutant.handle == prepared.digests[e.mutant.path]
                    ]
        return results


class ByTheTool(Exception):
    """Mutants can't be tested in test hosts: the tool itself has to. `reason` is empty where the user wants that."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _known(prepared: Prepared, mutant: Mutant) -> Result | None:
    """The result of a mutant that needs no test."""
    found = prepared.entry(mutant)
    return None if found is None or found[0].is_tested(found[1]) else evolve(found[1].result, mutant=mutant)


async def _outcome(
    part: PreparedBase, entry: ReportEntry, baseline: StrykerNetBaseline, cases: Sequence[Case], *, measure: bool
) -> Outcome:
    """Run `cases` with the mutant of `entry`; if `measure`, without it first, for the time that they take now."""
    expected_s = baseline.startup_s + sum(case.seconds for case in cases)
    if measure:
        now = await part.hosts.run(None, cases, BASELINE_TIMEOUT_S)
        expected_s = max(expected_s, now.seconds)
    limit_s = TIME_FACTOR * expected_s + part.extra_s
    return await part.hosts.run(entry.id, cases, limit_s, anew=baseline.anew(entry), ignored=baseline.failing)


async def _is_open(part: PreparedBase, cases: Sequence[Case], outcome: Outcome) -> bool:
    """Whether other tests may lead to another verdict: it survives `cases`, or the test that kills fails alone."""
    if not outcome.failures:
        return not outcome.timed_out and outcome.fault is None
    name, _ = outcome.failures[0]
    if name not in part.pass_alone:
        alone = await part.hosts.run(None, [case for case in cases if case.name == name] or cases, BASELINE_TIMEOUT_S)
        if alone.failures or alone.fault is not None or alone.timed_out:
            return True
        part.pass_alone.add(name)
    return False


def _result(mutant: Mutant, entry: ReportEntry, cases: Sequence[Case], outcome: Outcome) -> Result:
    result = Result(
        mutant,
        Status.SURVIVED,
        duration=round(outcome.test_seconds * 1000, 3),
        static=entry.static,
        tests_completed=len(outcome.completed),
    )
    if outcome.failures:
        name, message = outcome.failures[0]
        return evolve(result, status=Status.KILLED, killed_by=(name,), status_reason=message or None)
    if outcome.timed_out:
        reason = f"the tests had not ended after {outcome.seconds:.1f} s"
        return evolve(result, status=Status.TIMEOUT, status_reason=reason, duration=None, tests_completed=None)
    if outcome.fault is not None:  # nothing but the mutant is different from the baseline
        return evolve(result, status=Status.KILLED, status_reason=f"the test host has crashed: {outcome.fault}")
    missing = [case.name for case in cases if case.id not in outcome.completed]
    if missing:
        reason = f"the test host gave no result for {len(missing)} of {len(cases)} tests, as {missing[0]}"
        return evolve(result, status=Status.RUNTIME_ERROR, status_reason=reason)
    return result

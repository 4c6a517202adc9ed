"""GremlinsRun: the mutants of one request, each tested by the tests that run its code.

Theory of operation
-------------------
gremlins builds and runs all tests of the package for each mutant, with a limit that comes from a run which go's cache
may have answered: on a library of 209 mutants it reports 177 as timed out that tests kill. So the bridge takes its
mutants, and tests them itself.

1. The tests of the package run once without a mutant, all together and each alone, with coverage (`suite`).
2. A mutant that no test runs has no coverage, if it compiles. Code outside of functions runs at each start: all tests
   run it. Where tests run more than coverage has (`Suite.runs_more`) all of them are run, and a mutant has no coverage
   if they pass.
3. The tests that run it are run in one process, in the order of the package. The first that fails kills the mutant if
   it passes alone without the mutant and fails alone with it. A test that fails by chance hardly does.
4. Else all tests of the package run with it. They decide, so what a mutant leaves behind for a later test counts. If
   one fails that passes alone with the mutant, all run once more.

A fresh process runs the tests of each mutant. Many mutants may lie in one binary (`binaries`), of which one is on.
"""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from attrs import define, evolve, field, frozen

from msp_bridge.adapter import Mutant, Notice, Result, Status
from msp_bridge.concurrency import in_thread, meanwhile
from msp_bridge.source import as_discovered
from msp_bridge.toolkit import JobScheduler

from .binaries import UNCHANGED, Binary, Built, MutatedBinaries, Refused, by_package
from .execution import Edit, Outcome, TestRunner
from .go import Package
from .suite import MeasuredSuites, Suite

Run = Callable[[tuple[str, ...]], Awaitable[Outcome]]  # of these tests with one mutant; of all, if there are none

NOT_BUILT = "no package of this machine's build has the file"


@frozen
class _Job:
    """A mutant to test by the tests of one suite."""

    mutant: Mutant
    suite: Suite
    tests: tuple[str, ...]  # that run its code
    binary: Binary | None  # None: to be built for it alone
    number: int = 0


@define
class GremlinsRun:
    """One request."""

    packages: Sequence[Package]
    suites: MeasuredSuites
    binaries: MutatedBinaries
    runner: TestRunner
    scheduler: JobScheduler
    _controls: dict[tuple[Package, tuple[str, ...]], bool] = field(factory=dict, init=False)
    _begun: dict[tuple[Package, Mutant], asyncio.Task[Built]] = field(factory=dict, init=False)  # builds of one mutant

    async def results(self, mutants: Iterable[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        """Yield one result for each of `mutants`, but for those whose file has changed."""
        current = await in_thread(as_discovered, self.binaries.go.root, mutants)
        for mutant in current:
            if mutant.handle.ignored:
                yield Result(mutant, Status.IGNORED, status_reason=mutant.handle.ignored)
        tested = [mutant for mutant in current if not mutant.handle.ignored]
        for package, group in by_package(self.packages, tested).items():
            if package is None:
                for mutant in group:
                    yield Result(mutant, Status.NO_COVERAGE, status_reason=NOT_BUILT)
                continue
            of_package = contextlib.aclosing(self._of_package(package, group))
            async with self._first_build(package, group), of_package as results:
                async for result in results:
                    yield result

    @contextlib.asynccontextmanager
    async def _first_build(self, package: Package, mutants: list[Mutant]) -> AsyncIterator[None]:
        """Build the first of few mutants while the tests without it are built and measured, if they have to be.

        After an edit its verdict is there sooner by that. A mutant that no test runs is built in vain.
        """
        tested = self._tested(package)[0]
        groups, alone = await in_thread(self.binaries.groups, package, mutants)
        if groups or self.suites.knows(tested):
            yield
            return
        async with meanwhile(self.binaries.alone(tested, alone[0]), "the build of a mutant") as build:
            self._begun[tested, alone[0]] = build
            yield

    async def _of_package(self, package: Package, mutants: list[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        suites = [await self.suites.of(tested) for tested in self._tested(package)]
        for suite in suites:
            for failing in suite.failing:
                yield failing
        uncovered = {
            mutant for mutant in mutants if not any(self._is_covered(package, suite, mutant) for suite in suites)
        }
        runs_more = any(suite.runs_more for suite in suites)
        undecided = [mutant for mutant in mutants if runs_more or mutant not in uncovered]
        for position, suite in enumerate(suites):
            last = position == len(suites) - 1
            survived: list[Mutant] = []
            async with contextlib.aclosing(self._of_suite(package, suite, undecided)) as results:
                async for result in results:
                    if result.status is not Status.SURVIVED:
                        yield result
                    elif last:
                        uncertain = result.mutant in uncovered
                        yield evolve(result, status=Status.NO_COVERAGE, covered_by=()) if uncertain else result
                    else:
                        survived.append(result.mutant)
            undecided = survived
        if runs_more:
            return
        unbuilt = [mutant for mutant in mutants if mutant in uncovered]
        refused = {each.mutant: each.reason for each in await self.binaries.refused(package, unbuilt)}
        for mutant in unbuilt:
            status = Status.COMPILE_ERROR if mutant in refused else Status.NO_COVERAGE
            yield Result(mutant, status, status_reason=refused.get(mutant), covered_by=(), static=False)

    def _tested(self, package: Package) -> list[Package]:
        """The packages whose tests decide: its own, or with `integration` all that need it."""
        if not self.suites.measurement.options.everything:
            return [package]
        needed: dict[str, Package] = {each.path: each for each in self.packages}
        found = [package.path]
        for path in found:
            found += [each.path for each in needed.values() if path in each.imports and each.path not in found]
        return [needed[path] for path in found if needed[path].has_tests] or [package]

    def _is_covered(self, package: Package, suite: Suite, mutant: Mutant) -> bool:
        return suite.together.covers(*_place(package, mutant)) or bool(self._covering(package, suite, mutant))

    def _covering(self, package: Package, suite: Suite, mutant: Mutant) -> tuple[str, ...]:
        place = _place(package, mutant)
        if _name(mutant) not in package.files:
            return ()
        if mutant.handle.function is None or suite.together.leaves_out(*place):
            return suite.tests
        return tuple(test for test, ran in suite.alone.items() if ran.covers(*place))

    async def _of_suite(self, package: Package, suite: Suite, mutants: list[Mutant]) -> AsyncGenerator[Result, None]:
        """Results of the tests of one suite; SURVIVED also for mutants that none of them can run."""
        covered = []
        for mutant in mutants:
            if suite.runs_more or self._is_covered(package, suite, mutant):
                covered.append(mutant)
            else:
                yield Result(mutant, Status.SURVIVED)
        groups, alone = await in_thread(self.binaries.groups, package, covered)
        for group in groups:
            binary, refused = await self.binaries.together(package, suite.package, group)
            for each in refused:
                yield Result(each.mutant, Status.COMPILE_ERROR, status_reason=each.reason)
            if binary is None or not await self._copies_pass(suite, binary):
                decided = {each.mutant for each in refused}
                alone += [mutant for mutant in group if mutant not in decided]
                continue
            jobs = [
                _Job(mutant, suite, self._covering(package, suite, mutant), binary, number)
                for number, mutant in binary.mutants.items()
            ]
            async with contextlib.aclosing(self.scheduler.run(jobs, self._test)) as results:
                async for result in results:
                    yield result
            await in_thread(shutil.rmtree, binary.file.parent, True)
        jobs = [_Job(mutant, suite, self._covering(package, suite, mutant), None) for mutant in alone]
        async with contextlib.aclosing(self.scheduler.run(jobs, self._built_and_tested)) as built:
            async for found in built:
                if found is not None:
                    yield found

    async def _copies_pass(self, suite: Suite, binary: Binary) -> bool:
        """Whether the tests pass while functions run as copies, without a mutant."""
        program = await in_thread(binary.program, UNCHANGED)
        return (await self._run(suite, program, ())).code == 0

    async def _built_and_tested(self, job: _Job) -> Result | None:
        begun = self._begun.pop((job.suite.package, job.mutant), None)
        binary = await (begun or self.binaries.alone(job.suite.package, job.mutant))
        if binary is None:
            return None
        if isinstance(binary, Refused):
            return Result(job.mutant, Status.COMPILE_ERROR, status_reason=binary.reason)
        try:
            return await self._test(_Job(job.mutant, job.suite, job.tests, binary))
        finally:
            await in_thread(shutil.rmtree, binary.file.parent, True)

    async def _test(self, job: _Job) -> Result:
        """Rules 3 and 4 of the theory."""
        assert job.binary is not None
        suite, tests = job.suite, job.tests
        program = await in_thread(job.binary.program, job.number)
        edit = await in_thread(self.binaries.edit, job.mutant, program.with_name(f"edit-{job.number}"))
        run = partial(self._run, suite, program, edit=edit)
        if tests and len(tests) < len(suite.tests):
            outcome = await run(tests)
            if outcome.code != 0 and await self._is_certain(suite, tests, outcome, run):
                return self._result(job, outcome)
        outcome = await run(())
        if outcome.code != 0 and not await self._is_certain(suite, (), outcome, run):
            outcome = await run(())
        return self._result(job, outcome)

    async def _is_certain(self, suite: Suite, tests: tuple[str, ...], outcome: Outcome, run: Run) -> bool:
        """Whether the mutant is the reason why `tests`, or with () all, did not pass when they ran."""
        if outcome.timed_out:
            return not tests or await self._passes(suite, tests)
        killer = next((test for test in outcome.failed if test in suite.alone), None)
        return killer is not None and (await run((killer,))).code != 0

    async def _passes(self, suite: Suite, tests: tuple[str, ...]) -> bool:
        """Whether `tests` pass without a mutant when no others run before them."""
        key = suite.package, tests
        if key not in self._controls:
            self._controls[key] = (await self._run(suite, suite.binary, tests)).code == 0
        return self._controls[key]

    async def _run(self, suite: Suite, binary: Path, tests: tuple[str, ...], edit: Edit | None = None) -> Outcome:
        seconds, cpu_seconds = suite.limits
        argv = [str(binary), *suite.arguments(tests)]
        return await self.runner.run(suite.package, argv, edit=edit, seconds=seconds, cpu_seconds=cpu_seconds)

    def _result(self, job: _Job, outcome: Outcome) -> Result:
        status = Status.SURVIVED if outcome.code == 0 else Status.TIMEOUT if outcome.timed_out else Status.KILLED
        seconds, cpu_seconds = job.suite.limits
        limit = f"the tests did not end within {seconds:.0f} s, or {cpu_seconds} s of CPU time, or were killed"
        reasons = {Status.KILLED: outcome.reason, Status.TIMEOUT: limit}
        return Result(
            job.mutant,
            status,
            duration=outcome.seconds * 1000,
            covered_by=job.tests,
            killed_by=outcome.failed or None if status is Status.KILLED else None,
            static=job.mutant.handle.function is None,
            status_reason=reasons.get(status),
            tests_completed=outcome.tests_completed,
        )


def _place(package: Package, mutant: Mutant) -> tuple[str, int, int]:
    """The mutant's file as profiles name it, its line and its column."""
    return f"{package.path}/{_name(mutant)}", mutant.handle.line, mutant.handle.column


def _name(mutant: Mutant) -> str:
    return mutant.path.rpartition("/")[2]

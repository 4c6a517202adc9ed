"""MavenModules: the mutants of one Maven project, and the results of the requested ones."""

import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msp_bridge.adapter import Mutant, Notice, Project, Result, Scope, Status, Surroundings, UnusableFile
from msp_bridge.concurrency import in_thread
from msp_bridge.source import as_discovered
from msp_bridge.toolkit import JobScheduler

from .builds import Build, Builds
from .fresh_runs import Chosen, fresh_answers
from .host import SHOWN_CHARS, Host
from .installation import java
from .kept import surroundings
from .listing import KILLED, NO_COVERAGE, SURVIVED, TIMED_OUT, ModuleListing, killing_tests, readable_name
from .maven import Module

STATUSES = {
    KILLED: Status.KILLED,
    SURVIVED: Status.SURVIVED,
    NO_COVERAGE: Status.NO_COVERAGE,
    TIMED_OUT: Status.TIMEOUT,
    "NON_VIABLE": Status.COMPILE_ERROR,
    "MEMORY_ERROR": Status.RUNTIME_ERROR,
    "RUN_ERROR": Status.RUNTIME_ERROR,
    "EQUIVALENT": Status.IGNORED,
}
REASONS = {
    TIMED_OUT: "the tests did not end within the limit that timeoutFactor and timeoutConstant set",
    "NON_VIABLE": "the JVM refuses the mutated class",
    "MEMORY_ERROR": "the JVM of the tests ran out of memory",
    "RUN_ERROR": "the JVM of the tests ended, or could not be started",
    "EQUIVALENT": "PIT takes it for equivalent",
}
FILTERED = "PIT leaves it out when it knows which tests cover it"


class MavenModules:
    """Everything that the requests of one project share."""

    def __init__(self, project: Project, version: str | None) -> None:
        self._project = project
        self._builds = Builds(project, version)
        self._scheduler = JobScheduler(lambda: project.jobs)
        self._last: tuple[Module, ...] = ()  # as the last request has found them

    @property
    def threshold(self) -> float | None:
        """The mutation score in percent that all modules ask for."""
        thresholds = {module.configuration.threshold for module in self._last}
        return thresholds.pop() if len(thresholds) == 1 else None

    @property
    def versions(self) -> list[tuple[str, str]]:
        """Modules and their versions of PIT."""
        return [(module.name, module.configuration.version) for module in self._last]

    async def items(self, scope: Scope) -> list[Mutant | UnusableFile]:
        """Return the mutants of the files in scope, module by module; raises `ToolError`, `ConfigurationError`."""
        found: list[Mutant | UnusableFile] = []
        async with self._builds.current() as build:
            self._last = build.modules
            for module in build.modules:
                if concerns(scope, module.name):
                    found += await self._of_module(build, module)
        return [item for item in found if scope.covers(item.path)]

    async def _of_module(self, build: Build, module: Module) -> list[Mutant | UnusableFile]:
        rows = await (await build.host(module)).listed.answer()
        return await in_thread(lambda: ModuleListing(build.root.resolve(), module).items(rows))

    async def results(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        """Implement `Adapter.test`; raises `ToolError`."""
        if not mutants:
            return
        async with self._builds.current() as build:
            current = await in_thread(as_discovered, build.root, dict.fromkeys(mutants))
            for module in build.modules:
                group = [mutant for mutant in current if mutant.handle.module == module.name]
                if group:
                    async with contextlib.aclosing(self._tested(await build.host(module), group)) as results:
                        async for result in results:
                            yield result

    async def _tested(self, host: Host, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        waiting = set(mutants)
        keys = [mutant.handle.key for mutant in mutants]
        first = [None, *(mutants if self._project.jobs > 1 and await host.foresee(keys) else ())]
        async with contextlib.aclosing(self._scheduler.run(first, partial(_measure_or_kill, host))) as kills:
            async for kill in kills:
                if kill is not None:
                    waiting.remove(kill.mutant)
                    yield kill
                if not waiting:
                    host.measured.go_on()
                    return
        tests = await host.measured.answer()
        covered = []
        for mutant in (mutant for mutant in mutants if mutant in waiting):
            names = tests.get(mutant.handle.key)
            if names is None:
                yield Result(mutant, Status.IGNORED, status_reason=FILTERED)
            elif not names and not host.has_uncovered:
                yield Result(mutant, Status.NO_COVERAGE, covered_by=())
            else:
                covered.append(mutant)
        async with contextlib.aclosing(self._scheduler.run(covered, partial(_test, host, tests))) as results:
            async for result in results:
                yield result

    async def fresh_results(self, results: Sequence[Result]) -> list[Result]:
        """Implement `HasFreshResults`; raises `ToolError`, `ConfigurationError`."""
        async with self._builds.current() as build:
            current = await in_thread(as_discovered, build.root, [result.mutant for result in results])
            modules, chosen = build.modules, []
            for module in modules:
                here = {each.mutant.handle.key: each for each in results if each.mutant.handle.module == module.name}
                if here:
                    chosen.append(Chosen(module, here, await build.tools.of(module)))
        answers = await fresh_answers(self._project.root.resolve(), modules, chosen, self._project.jobs)
        found = [(mutant, answers.get((mutant.handle.module, mutant.handle.key))) for mutant in current]
        return [result(mutant, None, answer) for mutant, answer in found if answer is not None]

    async def surroundings(self) -> Surroundings | None:
        """Return the JDK, the effective pom and the jars of all modules; raises `ToolError`, `ConfigurationError`."""
        async with self._builds.current() as build:
            jars = set[str]()
            for module in build.modules:
                jars |= {*module.class_path, *(await build.tools.of(module)).class_path}
            return await in_thread(surroundings, Path(java()), build.root.resolve(), build.pom, jars)

    async def isolation(self) -> str:
        """Describe what of the JVMs of tests is isolated; raises `ToolError`, `ConfigurationError`."""
        async with self._builds.current() as build:
            return await build.world.isolation.described()

    async def aclose(self) -> None:
        """End the hosts."""
        await self._builds.aclose()


async def _measure_or_kill(host: Host, mutant: Mutant | None) -> Result | None:
    """Have it measured which tests cover which mutant, or until that is known test the mutant; None: no kill."""
    if mutant is None:
        await host.measured.answer()
        return None
    answer = None if host.measured.known else await host.kill(mutant.handle.key)
    return None if answer is None else result(mutant, None, answer)


async def _test(host: Host, tests: Mapping[str, Sequence[str]], mutant: Mutant) -> Result:
    names, answer = tests[mutant.handle.key], await host.test(mutant.handle.key)
    return result(mutant, names or (() if answer["status"] == NO_COVERAGE else None), answer)


def result(mutant: Mutant, tests: Sequence[str] | None, answer: Mapping[str, Any]) -> Result:
    """The result that the host's `answer` to a test of `mutant` says; `tests` cover it, None if that is not known."""
    status, error = answer["status"], answer.get("error")
    reason = REASONS.get(status)
    if status == "RUN_ERROR":
        reason = f"{reason} (exit {answer['exit']})" + (f": {' '.join(error.split())[:SHOWN_CHARS]}" if error else "")
    return Result(
        mutant,
        STATUSES[status],
        covered_by=None if tests is None else tuple(map(readable_name, tests)),
        killed_by=killing_tests(answer["killing"]) or None,
        status_reason=reason,
        tests_completed=answer["run"],
    )


def concerns(scope: Scope, module: str) -> bool:
    """Whether a file of the module in the directory `module` may be in scope."""
    if scope.paths is None or not module or scope.covers(f"{module}/"):
        return True
    return any(path.startswith(f"{module}/") for path in scope.paths)

"""CommandRunner: tests mutants by a test command that isn't pytest: each mutant by one run of it, in a sandbox.

Theory of operation
-------------------
The problem. Of a command (make, a script, unittest, tox) only the exit code is known. A command that always fails
kills every mutant, and one that imports an installed package instead of the sandbox kills none. Both look like
results. So before the first mutant there must be proof that the command tests the sandbox.

The proof, in this order, each step once for what it depends on:

1. *baseline*: the command passes without a mutant, within its time limit. Once for each content of the project. Each
   sandbox has its own first run, too: that one writes the bytecode that the runs with mutants read, for these may
   write none (it would be bytecode of a mutant).
2. *origin*: where pytest runs within the command, none of the modules was imported from the user's tree.
3. *canary*: the command fails when every module is broken. Once for each command.

The states of a sandbox. It is *refreshed* for a request when it is equal to the user's tree as the request found it.
It loses that state before each run, and gets it back when the run ends in good order: tests that were killed (by
their time limit, a cancel, a signal) have not cleaned up, nor has a program that ended. `proven` is the
content and command of the baseline that ran there. A sandbox that was made anew has no bytecode, hence no proof.

The invariants.

- A result belongs to the content that the mutant was discovered in: the program compares the digest of the file in the
  sandbox before it writes the mutant. If they differ there is no result.
- One sandbox, one command at a time: `SandboxPool.lease`. A lease that fails ends the program and its tests.
- A mutant whose run was killed by some other process, or whose program ended, is tested once more, and no more than
  that: it may be the mutant that ends them.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections import deque
from collections.abc import AsyncGenerator, Hashable, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from threading import Event

from attrs import define, field, frozen

from msp_bridge.adapter import BaselineError, Mutant, Project, Result, Status, ToolError
from msp_bridge.concurrency import in_thread
from msp_bridge.phases import BASELINE, report_phase
from msp_bridge.python_engine import start_program
from msp_bridge.toolkit import JobScheduler, JsonLinesProcess, ProcessEnded, Sandbox, SandboxPool, WarmSandbox
from msp_bridge.toolkit.json_lines import is_damaged_bytecode

from .command import TestCommand
from .discovery import PROGRAMS
from .run import CommandRun, Files

log = logging.getLogger(__name__)

ATTEMPTS = 2  # for a mutant whose run was killed by some other process
SANDBOXES_PER_JOB = 8  # how many bridges may work on one project
SANDBOX = "command"  # not the engine's: beside those lies a pytest.ini, which would change the names of tests
MADE_BY_MUTMUT = frozenset({"mutants"})  # many a project has both; deeper down it may be somebody's package
CANARY = b'raise RuntimeError("msp-bridge: this module is broken on purpose")\n'
REMEMBERED = 16  # versions of the project
BASELINE_TIMEOUT_FACTOR = 3.0  # times `timeout` for tests that start without bytecode


@define(eq=False)
class CommandTestBed:
    """A sandbox, and its state; see above."""

    __test__ = False  # pytest would take it for a test

    sandbox: Sandbox
    refreshed_for: object = None  # a request
    proven: Hashable = None

    @property
    def identity(self) -> object:
        """Implement `Sandbox.identity`."""
        return self.sandbox.identity

    def refresh(self, stop: Event | None = None) -> frozenset[str]:
        """Implement `Sandbox.refresh`."""
        before = self.identity
        changed = self.sandbox.refresh(stop)
        if self.identity != before:
            self.proven = None
        return changed

    def close(self) -> None:
        """Implement `Sandbox.close`."""
        self.sandbox.close()


@frozen(eq=False)
class Workplace:
    """A leased test bed and the command that runs in it."""

    warm: WarmSandbox[CommandTestBed, JsonLinesProcess]
    command: TestCommand
    modules: tuple[str, ...]  # all that may be mutated

    @property
    def bed(self) -> CommandTestBed:
        """The sandbox."""
        return self.warm.sandbox

    @property
    def path(self) -> Path:
        """The directory of the sandbox."""
        return self.bed.sandbox.path

    async def refresh(self, request: object) -> None:
        """Make the sandbox equal to the user's tree, once for each request. Raises `ToolError`."""
        if self.bed.refreshed_for is not request:
            await self.warm.refresh()
            self.bed.refreshed_for = request

    async def run(
        self, files: Files, *, observed: bool, bytecode: bool = False, timeout_factor: float = 1
    ) -> CommandRun:
        """Implement `CommandRun.of`."""
        process = await self.warm.process.get(self._start, self.command.python)
        request, self.bed.refreshed_for = self.bed.refreshed_for, None
        run = await CommandRun.of(
            process, self.path, self.command, files, observed=observed, bytecode=bytecode, timeout_factor=timeout_factor
        )
        if run.outcome != "timeout" and not run.was_killed:
            self.bed.refreshed_for = request
        return run

    async def _start(self) -> JsonLinesProcess:
        return await start_program(
            self.command.python,
            "command",
            {},
            name="the process that runs the test command",
            cwd=self.path,
            env={"PYTHONDONTWRITEBYTECODE": "1"},
            folder=PROGRAMS,
        )


class CommandRunner:
    """The sandboxes of one project for its test command. Which mutant is next: see `JobScheduler`."""

    def __init__(self, project: Project) -> None:
        limit = SANDBOXES_PER_JOB * max(1, project.jobs)
        claim = partial(Sandbox.claim, project.cache, project.root, SANDBOX, left_out=MADE_BY_MUTMUT, limit=limit)
        self._sandboxes: SandboxPool[CommandTestBed, JsonLinesProcess] = SandboxPool(
            lambda: CommandTestBed(claim()), max_idle=max(1, project.jobs)
        )
        self._scheduler = JobScheduler(lambda: project.jobs)
        self._baseline = CommandBaseline()

    async def test(
        self, mutants: Sequence[Mutant], command: TestCommand, modules: Sequence[str]
    ) -> AsyncGenerator[Result, None]:
        """A result for each mutant whose file has not changed since; see `Adapter.test`. `modules` may be mutated."""
        work = partial(self._test, object(), command, tuple(modules))
        async with aclosing(self._scheduler.run(mutants, work)) as results:
            async for result in results:
                if result is not None:
                    yield result

    async def aclose(self) -> None:
        """End the programs and give the sandboxes back."""
        await self._sandboxes.aclose()

    async def _test(
        self, request: object, command: TestCommand, modules: tuple[str, ...], mutant: Mutant
    ) -> Result | None:
        """The result; None when the file in the sandbox isn't the one that was mutated."""
        problem = ""
        files: Files = {mutant.path: (mutant.handle.source.digest, mutant.handle.content)}
        for attempt in range(ATTEMPTS):
            try:
                async with self._sandboxes.lease() as warm:
                    place = Workplace(warm, command, modules)
                    await place.refresh(request)
                    await self._baseline.prove(place)
                    run = await place.run(files, observed=self._baseline.observed)
            except ProcessEnded as error:
                log.warning("the process that tested %s has ended: %s", mutant.path, error.problem)
                problem = error.problem
                continue
            if run.outcome == "stale":
                return None
            if not run.was_killed or attempt + 1 == ATTEMPTS:
                return run.result(mutant)
        return Result(mutant, Status.RUNTIME_ERROR, status_reason=f"ended {ATTEMPTS} times: {problem}")


@define(eq=False)
class CommandBaseline:
    """The proof that a command tests the sandbox, kept for each content of the project."""

    observed: bool = True  # whether the pytest plugin can be used
    _passed: deque[Hashable] = field(factory=lambda: deque(maxlen=REMEMBERED))
    _fails_when_broken: set[TestCommand] = field(factory=set)
    _lock: asyncio.Lock = field(factory=asyncio.Lock)

    async def prove(self, place: Workplace) -> None:
        """Raises `BaselineError` when the tests fail or are too slow, `ToolError` when they don't test the sandbox."""
        key = (place.bed.sandbox.digest, place.command)
        if place.bed.proven == key:
            return
        if place.bed.proven is None:
            await self._run(place, key)
        else:
            async with self._lock:
                if key not in self._passed:
                    await self._run(place, key)
        place.bed.proven = key

    async def _run(self, place: Workplace, key: Hashable) -> None:
        command = place.command
        report_phase(BASELINE)
        run = await self._attempt(place)
        if is_damaged_bytecode(run.reason or ""):
            await in_thread(_forget_bytecode, place.path)
            run = await self._attempt(place)
        limit_ms = command.timeout * 1000
        if run.outcome == "passed" and run.duration > limit_ms:
            run = await self._attempt(place)  # with the bytecode that the first one wrote
        if run.outcome == "timeout" or (run.outcome == "passed" and run.duration > limit_ms):
            raise BaselineError(
                f"the tests take {run.duration / 1000:.1f} s without any mutant, but `timeout` is {command.timeout:g}",
                f"raise it in {command.file}",
            )
        if run.outcome != "passed":
            raise self._error(run, command, elsewhere=key in self._passed)
        self._reject_imports_from_source(run, place)
        if command not in self._fails_when_broken:
            await self._expect_canary(place)
            self._fails_when_broken.add(command)
        self._passed.append(key)

    async def _attempt(self, place: Workplace) -> CommandRun:
        run = await self._unmutated(place, observed=self.observed)
        if run.outcome == "failed" and self.observed and not run.observed:
            # An interpreter that ignores PYTHONPATH can't import the plugin that PYTEST_ADDOPTS names.
            plain = await self._unmutated(place, observed=False)
            if plain.outcome == "passed":
                log.warning("the tests don't take the bridge's pytest plugin: which test kills a mutant stays unknown")
                self.observed = False
                return plain
        return run

    async def _unmutated(self, place: Workplace, *, observed: bool) -> CommandRun:
        run = await place.run({}, observed=observed, bytecode=True, timeout_factor=BASELINE_TIMEOUT_FACTOR)
        if run.was_killed:  # by some other process: that says nothing of the tests
            run = await place.run({}, observed=observed, bytecode=True, timeout_factor=BASELINE_TIMEOUT_FACTOR)
        return run

    def _error(self, run: CommandRun, command: TestCommand, *, elsewhere: bool) -> ToolError:
        """`elsewhere`: the same tests have passed in another sandbox."""
        shown = " ".join(command.words)
        if run.outcome == "unable":
            return ToolError(f"`{shown}` can't be run: {run.reason}", f"correct `test-command` in {command.file}")
        problem, remedy = "the tests fail without any mutant", f"fix them first, they are run by `{shown}`"
        if elsewhere:
            problem, remedy = "the tests fail when they run in two sandboxes at once", "set `jobs` to 1"
        message = next(iter(run.failures.values()), run.reason or "")
        return BaselineError(f"{problem}: {run.reason}", remedy, tuple(run.failures), message)

    def _reject_imports_from_source(self, run: CommandRun, place: Workplace) -> None:
        mutated = {str(place.command.root / module) for module in place.modules}
        for file in sorted(mutated.intersection(run.outside)):
            raise ToolError(
                f"the tests import {file} from your tree and not from the sandbox, so that no mutant is tested",
                "remove what adds that path (a conftest.py, a .pth file, an absolute path in the test command)",
            )

    async def _expect_canary(self, place: Workplace) -> None:
        present = [module for module in place.modules if (place.path / module).is_file()]
        broken: Files = dict.fromkeys(present, (None, CANARY))
        run = await place.run(broken, observed=self.observed, timeout_factor=BASELINE_TIMEOUT_FACTOR)
        if run.was_killed:
            run = await place.run(broken, observed=self.observed, timeout_factor=BASELINE_TIMEOUT_FACTOR)
        if run.outcome == "passed":
            raise ToolError(
                f"the tests pass in {place.path} although every module of `module-path` is broken there: they import "
                "an installed package, or none",
                f"install it editable (`{place.command.python} -m pip install -e .`), and correct `module-path` and "
                f"`test-command` in {place.command.file}",
            )


def _forget_bytecode(sandbox: Path) -> None:
    for directory in list(sandbox.rglob("__pycache__")):
        shutil.rmtree(directory, ignore_errors=True)

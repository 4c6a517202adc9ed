"""CommandProof: proof that a command tests the private copy that it runs in, before a mutant is tested by it.

Theory of operation
-------------------
The problem. Of a command (make, a script, unittest, tox) only the exit code is known. A command that always fails
kills every mutant, and one that imports an installed package instead of the copy kills none. Both look like results.

The proof, in this order, each step once for what it depends on:

1. *baseline*: the command passes without a mutant, within its time limit. Once for each content of the project. It
   decides which parts of isolation later runs have (`Isolation.decide`).
2. *origin*: where pytest runs within the command, none of the sources was imported from the user's tree. Isolated,
   nothing can be: the copy stands there.
3. *canary*: the command fails when every source is broken, so a mutant would be seen. Once for each command.

A command by which each mutant is tested (`runs_mutants`) passes once in each copy, too. That run writes the bytecode
that the runs with mutants read: those may write none: it would be bytecode of a mutant. A copy that was made anew
has no bytecode, hence no proof (`RunPlace.proven`).
"""

import asyncio
import shutil
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from msp_bridge.concurrency import in_thread
from msp_bridge.errors import BaselineError, ToolError
from msp_bridge.phases import BASELINE, report_phase
from msp_bridge.toolkit.command_run import CommandRun, Files, RunPlace, overwritten
from msp_bridge.toolkit.json_lines import is_damaged_bytecode

CANARY = b'raise RuntimeError("msp-bridge: this file is broken on purpose")\n'  # in other languages a syntax error
REMEMBERED = 16  # versions of the project
TIMEOUT_FACTOR = 3.0  # times the limit for tests that start without bytecode
NO_KILLERS = "the tests don't take the bridge's pytest plugin, so nothing says which of them kills a mutant"
NO_TEXT = "the output of the tests is no UTF-8"


@frozen
class CommandOfTests:
    """A command that runs the tests of a copy."""

    key: Hashable  # equal as long as the command is the same
    shown: str  # as a user would type it
    setting: str  # where it is set, for remedies: "`test-command` in cosmic-ray.toml"
    sources: Sequence[str]  # the files that may be mutated, relative to the root of the project
    name_of_sources: str  # one of them in messages: "module of `module-path`"
    argv: Callable[[RunPlace], list[str]]
    environment: Callable[[RunPlace, bool], Mapping[str, str | None]] = lambda _place, _bytecode: {}
    """Changes to our environment, and whether bytecode may be written."""
    limit_s: float | None = None  # of one run
    runs_mutants: bool = (
        False  # each mutant is tested by a run of it; then its output must be text, as cosmic-ray has it
    )
    subject: str = "the tests"  # in messages


class CommandProof:
    """The proofs for the commands of one project, each kept for the content of the project that it holds for."""

    def __init__(self) -> None:
        self.remark = ""  # on all results, for the user
        self._plugin_works = True
        self._passed: deque[Hashable] = deque(maxlen=REMEMBERED)
        self._fails_when_broken: set[Hashable] = set()
        self._lock = asyncio.Lock()

    async def prove(self, place: RunPlace, command: CommandOfTests) -> None:
        """Raises `BaselineError` when the tests fail or are too slow, `ToolError` when they don't test the copy."""
        assert place.copy is not None
        key = (place.copy.sandbox.digest, command.key)
        if place.proven == key:
            return
        async with self._lock:
            if key not in self._passed:
                report_phase(BASELINE)
                await self._prove(place, command)
                self._passed.append(key)
                place.proven = key
        if command.runs_mutants and place.proven is None:
            run = await self._baseline(place, command)
            if not _passes(run, command):
                raise _error(run, command, elsewhere=True)
        place.proven = key

    async def run(self, place: RunPlace, command: CommandOfTests, files: Files) -> CommandRun:
        """Run the command with other contents for some files. Raises `Stale` and `ToolError`."""
        return await self._run(place, command, files, command.limit_s)

    async def _run(self, place: RunPlace, command: CommandOfTests, files: Files, limit_s: float | None) -> CommandRun:
        observed = self._plugin_works and (command.runs_mutants or place.isolated is None)
        env = command.environment(place, not files)
        async with overwritten(place, files):
            return await CommandRun.of(place, command.argv(place), env, limit_s=limit_s, observed=observed)

    async def _prove(self, place: RunPlace, command: CommandOfTests) -> None:
        run: CommandRun | None = None

        async def passes() -> bool:
            nonlocal run
            if not place.is_clean:
                await place.renew()
            tried = await self._baseline(place, command)
            passed = _passes(tried, command)
            if run is None or passed or not _passes(run, command):
                run = tried
            place.is_clean = place.is_clean and passed and command.runs_mutants
            return passed

        assert place.isolation is not None
        assert place.copy is not None
        passed = await place.isolation.decide(passes)
        assert run is not None
        if not passed:
            raise _error(run, command)
        for file in sorted(run.outside.intersection(str(place.copy.sandbox.source / path) for path in command.sources)):
            raise ToolError(
                f"{command.subject} import {file} from your tree and not from the sandbox, so that no mutant is tested",
                "remove what adds that path (a conftest.py, a .pth file, an absolute path in the test command)",
            )
        if command.key not in self._fails_when_broken:
            await self._expect_canary(place, command)
            self._fails_when_broken.add(command.key)
        if not place.is_clean:
            await place.renew()

    async def _baseline(self, place: RunPlace, command: CommandOfTests) -> CommandRun:
        """One run without a mutant that says something of the tests."""
        run = await self._observed(place, command)
        if is_damaged_bytecode(run.reason):
            await in_thread(_forget_bytecode, place.root)
            run = await self._observed(place, command)
        if run.passed and not _passes(run, command):
            run = await self._observed(place, command)  # with the bytecode that the first one wrote
        return run

    async def _observed(self, place: RunPlace, command: CommandOfTests) -> CommandRun:
        run = await self._without_mutant(place, command, {})
        if run.passed or run.timed_out or run.observed or not self._plugin_works:
            return run
        # An interpreter that ignores PYTHONPATH can't import the plugin that PYTEST_ADDOPTS names.
        self._plugin_works = False
        plain = await self._without_mutant(place, command, {})
        if plain.passed:
            self.remark = NO_KILLERS
            return plain
        self._plugin_works = True
        return run

    async def _without_mutant(self, place: RunPlace, command: CommandOfTests, files: Files) -> CommandRun:
        limit_s = None if command.limit_s is None else command.limit_s * TIMEOUT_FACTOR
        run = await self._run(place, command, files, limit_s)
        if run.was_killed:  # by some other process: that says nothing of the tests
            run = await self._run(place, command, files, limit_s)
        return run

    async def _expect_canary(self, place: RunPlace, command: CommandOfTests) -> None:
        if not place.is_clean:
            await place.renew()
        present = [path for path in command.sources if (place.root / path).is_file()]
        run = await self._without_mutant(place, command, dict.fromkeys(present, (None, CANARY)))
        place.is_clean = place.is_clean and command.runs_mutants
        if run.passed:
            raise ToolError(
                f"{command.subject} pass in {place.root} although every {command.name_of_sources} is broken there: "
                "they import an installed package, or none",
                f"install it editable, so that it is imported from the project, and correct {command.setting}",
            )


def _passes(run: CommandRun, command: CommandOfTests) -> bool:
    in_time = command.limit_s is None or run.duration_ms <= command.limit_s * 1000
    return run.passed and in_time and (run.is_text or not command.runs_mutants)


def _error(run: CommandRun, command: CommandOfTests, *, elsewhere: bool = False) -> ToolError:
    """The error for a baseline that doesn't pass; `elsewhere`: the same tests have passed in another copy."""
    if run.timed_out or (run.passed and run.is_text):
        taken = f"{run.duration_ms / 1000:.1f} s without any mutant"
        problem = f"{command.subject} take {taken}, but `timeout` is {command.limit_s:g}"
        return BaselineError(problem, f"raise it where {command.setting} is")
    if run.passed or (command.runs_mutants and not run.is_text):
        return ToolError(f"`{command.shown}` can't be run: {NO_TEXT}", f"correct {command.setting}")
    problem, remedy = f"{command.subject} fail without any mutant", f"fix them first, they are run by `{command.shown}`"
    if elsewhere:
        problem, remedy = f"{command.subject} fail when they run in two sandboxes at once", "set `jobs` to 1"
    message = next(iter(run.failures.values()), run.reason)
    return BaselineError(f"{problem}: {run.reason}", remedy, tuple(run.failures), message)


def _forget_bytecode(copy: Path) -> None:
    for directory in list(copy.rglob("__pycache__")):
        shutil.rmtree(directory, ignore_errors=True)

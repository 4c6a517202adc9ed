"""The oracle: what a fresh process says of a mutant. Every verdict of the bridge can be checked against it.

Theory of operation
-------------------
A verdict is true when a user who writes the mutant into the file and runs the tests sees the same. *Killed*: a run of
the project's own tests, in the suite's order or of one test alone, passes without the mutant and fails with it.
*Survived*: the whole suite passes with it, in its order. The oracle does just that, and nothing clever: for each mutant
a fresh copy of the project, the mutated text written into its file, the project's own test command in a fresh process
until the first failure. No process, no import, no byte code and no file is used twice. Where that passes, and the
result names a test that has killed the mutant, that test alone decides: in the suite it may use what an earlier one
has left.

Where Linux permits it, the copy is mounted at the project's own path (`isolation.namespaces`), so that
absolute paths and editable installs mean the copy, with a process table, a network and temporary directories of its
own. The run without a mutant decides how much of that the tests pass in: everything first, then without the network,
then the mount alone, and at last the copy where it lies, with `PYTHONPATH` pointing to it and an empty home
directory, beside which tools have the packages they have fetched.
What is left out of a copy (version control, environments, caches) is mounted or linked into it.

The exit codes of pytest say different things, and all but 0 are a kill for someone who looks at a CI's light, since the
same command passed without the mutant: 1 a test failed; 2 a test module can't be collected; 3 pytest or a plug-in
broke; 4 a conftest.py can't be imported; 5 no tests are left. `Verdict.reason` says which it was.

What comes after the last test counts for nothing: a mutant survives with which all tests pass and pytest fails as it
ends. So a survivor with which pytest fails is tested once more, by a pytest that ends with its last test; where it
fails without a mutant (a coverage that is required, and not reached), each pytest ends so.

*RuntimeError* says that the tests have no verdict: the mutant has ended their process. A fresh process contradicts it
where pytest comes to its end, which its last line shows: a mutant may end it with any exit code. Other commands have no
such line, and contradict nothing.

A mutant that the compiler of C# refuses has no verdict either: Stryker.NET compiles all into one assembly, where the
original stands beside each of them, and a method keeps its only `yield`.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
import time
import tokenize
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import evolve, field, frozen
from platformdirs import user_cache_path

from msp_bridge.adapter import Adapter, BaselineError, Mutant, Result, Scope, Status
from msp_bridge.concurrency import all_of
from msp_bridge.isolation import namespaces
from msp_bridge.isolation.command import command_line
from msp_bridge.isolation.left_out import CACHE_MARKERS, CACHES, GENERATED, IGNORED_DIRS
from msp_bridge.processes import ProcessTree
from msp_bridge.source import BOM, SourceText
from msp_bridge.testing.comparison import FreshProcesses, Verdict, Verification

BASELINE_TIMEOUT_S = 600.0
TIMEOUT_FACTOR, TIMEOUT_MARGIN_S = 6.0, 10.0  # of the run without a mutant
DIRECTORY, ALL_DIRECTORIES = "{directory}", "..."  # in a word of a command
OUTPUT_LIMIT = 4000  # characters that are kept of what the tests print
PYTEST_EXITS = {
    1: "a test failed",
    2: "a test module can't be collected",
    3: "pytest or one of its plug-ins broke",
    4: "a conftest.py or plug-in can't be loaded",
    5: "no tests are left",
}
SUCCESS = "the tests pass"
LAST_TEST = "msp_bridge_last_test"  # the name of this plug-in of pytest, which ends its process after the last test
ENDS_THERE = """
from os import _exit  # a test may replace it
import pytest

@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtestloop(session):
    outcome = yield
    if outcome.excinfo is None and session.testscollected and not hasattr(session.config, "workerinput"):
        _exit(1 if session.testsfailed else 0)
"""
REFUSED = re.compile(r": error CS\d+: ")  # what the compiler of C# prints
SUMMARY = re.compile(r"\b\d+ (?:passed|failed|errors?|skipped|xfailed|xpassed)\b.* in \d")  # pytest's last line
WORLDS: tuple[frozenset[str] | None, ...] = (  # tried one after another; None: no namespaces
    namespaces.PARTS,
    namespaces.PARTS - {"net"},
    frozenset(),
    None,
)


@frozen
class Oracle(FreshProcesses):
    """Tests mutants of one project in fresh processes. Make one with `Oracle.of`."""

    root: Path
    command: tuple[str, ...]
    world: frozenset[str] | None  # parts of `isolation`; None: the copy is not at the project's own path
    timeout_s: float
    _environment: Mapping[str, str | None] = field(factory=dict)
    _ends_with_last_test: bool = False  # pytest's process, so that nothing after it counts

    @classmethod
    async def of(
        cls,
        root: Path,
        command: Sequence[str],
        *,
        isolated: bool = True,
        environment: Mapping[str, str | None] | None = None,
    ) -> Oracle:
        """Run the tests without a mutant, which shows where they pass and how long they take.

        `command` runs in the project's root, until the first failure if it can (`pytest -x`). `environment` holds
        changes to our own. Raises BaselineError when the tests don't pass in any way.
        """
        root = root.resolve()
        worlds = WORLDS if isolated and namespaces.probe()[0] else WORLDS[-1:]
        for world in worlds:
            oracle = cls(root, tuple(command), world, BASELINE_TIMEOUT_S, environment or {})
            start = time.monotonic()
            verdict = await oracle.verdict_of(None)
            passes = verdict.status is Status.SURVIVED
            if not passes and _is_of_pytest(verdict):
                oracle, start = evolve(oracle, ends_with_last_test=True), time.monotonic()
                passes = (await oracle.verdict_of(None)).status is Status.SURVIVED
            if passes:
                return evolve(oracle, timeout_s=TIMEOUT_MARGIN_S + TIMEOUT_FACTOR * (time.monotonic() - start))
        words = _shown(oracle._command_on(None))
        another = f"that leaves them out: {words} --deselect TEST" if is_pytest(command) else "in which they pass"
        raise BaselineError(
            f"`{words}` fails in a fresh copy of {root} without any mutant ({verdict.reason})",
            f"fix the tests first, or name, with --verify-command, a command {another}",
            first_failure=verdict.output,
        )

    async def verdict_on(self, result: Result) -> Verdict:
        """The verdict of the tests on the mutant of `result`."""
        return await self.verdict_of(result.mutant)

    async def verdict_of(self, mutant: Mutant | None, test: str | None = None) -> Verdict:
        """The verdict of the tests, or of `test` alone, on `mutant`, or without any; paths start at the root."""
        # Erased also where tests have taken permissions away.
        with tempfile.TemporaryDirectory(prefix="msp-bridge-oracle-", ignore_cleanup_errors=True) as directory:
            base = Path(directory).resolve()
            copy = base / self.root.name
            kept = await asyncio.to_thread(_copied, self.root, copy)
            if mutant is not None:
                try:
                    _write(copy / mutant.path, mutant)
                except (OSError, ValueError, SyntaxError) as error:
                    return Verdict(Status.RUNTIME_ERROR, f"the mutant can't be written: {error}")
            command = self._command_on(mutant) if test is None else self._command_of(test)
            return await self._run(base, copy, kept, command)

    def agrees(self, result: Result, verdict: Verdict) -> bool:
        """Whether both say detected, or both not. RuntimeError is right unless pytest comes to its end.

        What can't be compiled contradicts nothing.
        """
        if REFUSED.search(verdict.output):
            return True
        if result.status is Status.RUNTIME_ERROR:
            return not _is_of_pytest(verdict)
        return result.status.detected == verdict.status.detected

    async def confirms(self, result: Result, verdict: Verdict) -> bool:
        """Whether the verdict of the suite, or the test alone that has killed the mutant, says the same."""
        if self.agrees(result, verdict):
            return True
        if not is_pytest(self.command):
            return False
        if result.status.undetected:
            return await self._passes_all_tests(result.mutant)
        if result.status is not Status.KILLED or not result.killed_by:
            return False
        test = result.killed_by[0]
        killed = (await self.verdict_of(result.mutant, test)).status.detected
        return killed and (await self.verdict_of(None, test)).status is Status.SURVIVED

    async def _passes_all_tests(self, mutant: Mutant) -> bool:
        """Whether all tests pass with `mutant`, so that pytest can only have failed after them."""
        oracle = evolve(self, ends_with_last_test=True)
        return (await oracle.verdict_of(mutant)).status is Status.SURVIVED

    def _command_on(self, mutant: Mutant | None) -> tuple[str, ...]:
        """The command for a mutant, as `HasTestCommand` says."""
        directory = ALL_DIRECTORIES if mutant is None else os.path.dirname(mutant.path) or "."
        return tuple(word.replace(DIRECTORY, directory) for word in self.command)

    def _command_of(self, test: str) -> tuple[str, ...]:
        """pytest's command for one test: without the words that name files of the project."""
        start = next(number for number, word in enumerate(self.command) if is_pytest([word])) + 1
        options = [word for word in self.command[start:] if not (self.root / word.partition("::")[0]).exists()]
        return (*self.command[:start], *options, test)

    async def _run(self, base: Path, copy: Path, kept: Sequence[str], command: tuple[str, ...]) -> Verdict:
        layers, scratch = base / "layers", base / "tmp"
        layers.mkdir()
        scratch.mkdir()
        environment = {"PYTHONDONTWRITEBYTECODE": "1", **_activated(command[0]), **self._environment}
        if self._ends_with_last_test:
            (base / f"{LAST_TEST}.py").write_text(ENDS_THERE, "ascii")
            environment["PYTHONPATH"] = _before([base], environment)
            command = (*command, "-p", LAST_TEST)
        if self.world is not None:
            where = self.root
            world = {"root": str(self.root), "copy": str(copy), "layers": str(layers), "keep": kept}
            options = {**world, "parts": sorted(self.world), "command": command}
            command = tuple(command_line(options))
        else:
            where = copy
            search = _search_path(copy, environment)
            environment = _homes_of_tools() | environment
            environment |= {"HOME": str(scratch), "TMPDIR": str(scratch), "PYTHONPATH": search}
            for name in kept:
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                (copy / name).symlink_to(self.root / name)
        in_world = self.world is not None
        async with ProcessTree.running(command, cwd=where, env=environment, shell_status=in_world) as tree:
            try:
                async with asyncio.timeout(self.timeout_s):
                    output = await tree.output(tail=OUTPUT_LIMIT)
                    code = await tree.exited()
            except TimeoutError:
                return Verdict(Status.TIMEOUT, f"no answer in {self.timeout_s:.0f} s")
            shown = output.decode("utf-8", "replace") + tree.errors[-OUTPUT_LIMIT:]
            if code == 0:
                return Verdict(Status.SURVIVED, SUCCESS, shown)
            if code < 0 or not is_pytest(self.command):
                return Verdict(Status.KILLED, tree.outcome, shown)
            return Verdict(Status.KILLED, PYTEST_EXITS.get(code, tree.outcome), shown)


async def verify(
    adapter: Adapter,
    oracle: Oracle,
    count: int | None = None,
    seed: int = 0,
    *,
    scope: Scope | None = None,
    jobs: int = 1,
) -> Verification:
    """Discover and test all mutants in `scope`, then check `count` results (all by default), drawn by `seed`."""
    mutants = [item for item in await all_of(adapter.discover(scope or Scope())) if isinstance(item, Mutant)]
    results = [item for item in await all_of(adapter.test(mutants)) if isinstance(item, Result)]
    return await oracle.compare(results, count, seed, jobs)


def _shown(command: Sequence[str]) -> str:
    """The command in a message: a script of the shell by its name, which follows it."""
    return " ".join(command[3:] if tuple(command[:2]) == ("sh", "-c") and len(command) > 3 else command)


def _is_of_pytest(verdict: Verdict) -> bool:
    """Whether pytest has run to its end, and has said so."""
    return verdict.reason in (SUCCESS, PYTEST_EXITS[1]) and SUMMARY.search(verdict.output) is not None


def is_pytest(command: Sequence[str]) -> bool:
    """Whether a command runs pytest, so that its options can follow."""
    return any(Path(word).name in ("pytest", "py.test") for word in command)


def _copied(root: Path, copy: Path) -> list[str]:
    """Copy the tree; the directories left out that are to be seen nevertheless, relative to the root."""
    kept: list[str] = []

    def left_out(directory: str, names: list[str]) -> list[str]:
        out = []
        for name in names:
            path = Path(directory, name)
            if not path.is_dir() or path.is_symlink():
                continue
            if name in CACHES | GENERATED:
                out.append(name)
            elif name in IGNORED_DIRS or any((path / marker).exists() for marker in CACHE_MARKERS):
                out.append(name)
                kept.append(str(path.relative_to(root)))
        return out

    shutil.copytree(root, copy, symlinks=True, ignore=left_out)
    return kept


def _write(file: Path, mutant: Mutant) -> None:
    """Raises OSError, ValueError, and SyntaxError for a Python file whose encoding is unknown."""
    encoding = "utf-8"
    if file.suffix == ".py":
        with file.open("rb") as stream:
            encoding, _ = tokenize.detect_encoding(stream.readline)
    encoding = encoding.removesuffix("-sig")
    mark = BOM if encoding == "utf-8" and file.read_bytes().startswith(BOM.encode()) else ""
    file.write_bytes((mark + SourceText.read(file, encoding).apply(mutant)).encode(encoding))


def _activated(program: str) -> dict[str, str | None]:
    """The environment in which a program finds what is installed beside it, as that of its interpreter."""
    beside = [os.path.dirname(program)] if os.path.isabs(program) else []
    return {"PATH": os.pathsep.join([*beside, os.environ.get("PATH", os.defpath)])}


def _homes_of_tools() -> dict[str, str | None]:
    """Where tools keep compilers and packages; else Go builds its library for each mutant, and rustup has none."""
    home = Path.home()
    homes = {
        "CARGO_HOME": home / ".cargo",
        "GOCACHE": user_cache_path("go-build"),
        "GOPATH": home / "go",
        "NUGET_PACKAGES": home / ".nuget" / "packages",
        "RUSTUP_HOME": home / ".rustup",
    }
    return {name: os.environ.get(name, str(path)) for name, path in homes.items()}


def _search_path(copy: Path, environment: Mapping[str, str | None]) -> str:
    """Before what an editable install puts on Python's path, which is the project's own path."""
    return _before([copy, *(copy / name for name in ("src", "source") if (copy / name).is_dir())], environment)


def _before(directories: Sequence[Path], environment: Mapping[str, str | None]) -> str:
    """Python's path, with `directories` before those of the environment."""
    path = environment["PYTHONPATH"] if "PYTHONPATH" in environment else os.environ.get("PYTHONPATH")
    return os.pathsep.join([*map(str, directories), *filter(None, [path])])

"""TestCommand: how `test-command` runs the project's tests, and CommandRunner: tests mutants by one that isn't pytest.

Before the first mutant there must be proof that the command tests the copy (`CommandProof`). A result belongs to the
content that the mutant was discovered in: if the file in the copy has another digest, there is no result. A mutant
whose run was killed by some other process is tested once more, and no more than that: it may be what ends them.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

from attrs import frozen

from msp_bridge.adapter import Mutant, Notice, Project, Result, Status
from msp_bridge.notices import Remark
from msp_bridge.toolkit import (
    CommandOfTests,
    CommandProof,
    CommandRun,
    Isolation,
    JobScheduler,
    RunPlace,
    RunPlaces,
    Sandbox,
    Stale,
)
from msp_bridge.toolkit.command_proof import NO_TEXT

from .configuration import CosmicRayConfiguration

SOURCE_DIRECTORIES = ("src", "lib", "python", "source")  # what a module path may begin with that isn't a package
RUNNERS = frozenset({"hatch", "pdm", "pipenv", "poetry", "uv"})  # `uv run …`: in the project's environment
PYTHON = re.compile(r"python(3(\.\d+)?)?")
ATTEMPTS = 2  # for a mutant whose run was killed by some other process
SANDBOXES_PER_JOB = 8  # how many bridges may work on one project
SANDBOX = "command"  # not the engine's: beside those lies a pytest.ini, which would change the names of tests
MADE_BY_MUTMUT = frozenset({"mutants"})  # many a project has both; deeper down it may be somebody's package


@frozen
class TestCommand:
    """The words of the command, and what would lead its tests to the user's tree unless it is turned to the sandbox."""

    __test__ = False  # pytest would take it for a test

    words: tuple[str, ...]
    limit_s: float
    root: Path
    python: Path
    imports: tuple[str, ...]  # relative to the root, "." for itself
    engine: bool  # whether the Python engine works with `python`
    file: Path  # the configuration that has the command
    sources: tuple[str, ...]  # the modules that may be mutated

    @classmethod
    def of(
        cls, configuration: CosmicRayConfiguration, root: Path, python: Path, greeting: Mapping[str, Any]
    ) -> TestCommand:
        """`greeting` is that of the discovery: what the interpreter has."""
        paths = [_import_root(root, path) for path in configuration.module_paths]
        paths += [os.path.relpath(path, root) for path in greeting["paths"] if Path(path).is_relative_to(root)]
        return cls(
            words=configuration.test_command,
            limit_s=configuration.timeout,
            root=root,
            python=python,
            imports=tuple(dict.fromkeys(paths)),
            engine=greeting["engine"],
            file=configuration.file,
            sources=tuple(configuration.modules(root)),
        )

    @property
    def shown(self) -> str:
        """The words as they are typed."""
        return " ".join(self.words)

    @property
    def setting(self) -> str:
        """Where it is set, for remedies."""
        return f"`test-command` in {self.file}"

    @property
    def of_tests(self) -> CommandOfTests:
        """The command as it runs, once for each mutant."""
        return CommandOfTests(
            key=self,
            shown=self.shown,
            setting=self.setting,
            sources=self.sources,
            name_of_sources="module of `module-path`",
            argv=self.argv,
            environment=self.environment,
            limit_s=self.limit_s,
            runs_mutants=True,
        )

    @property
    def pytest_arguments(self) -> tuple[str, ...] | None:
        """The words after pytest; None unless the command is pytest of the project's interpreter, however spelled.

        A pytest of another interpreter, options of the interpreter (`python -I -m pytest`) or of a runner
        (`uv run --with …`), and everything else run as they are.
        """
        words = self.words
        in_runner = words[0] in RUNNERS and words[1:2] == ("run",)
        if in_runner:
            words = words[2:]
        if not self.engine or not words:
            return None
        program, rest = words[0], words[1:]
        name = Path(program).name
        if PYTHON.fullmatch(name) and rest[:2] == ("-m", "pytest"):
            rest = rest[2:]
        elif name not in ("pytest", "py.test"):
            return None
        if not (in_runner and name == program) and not self._is_the_projects(program):
            return None
        return tuple(self._placed(word, None) for word in rest)

    def argv(self, place: RunPlace) -> list[str]:
        """The words, with paths into the project turned into paths into the copy where it has them.

        The copy has no virtual environments: a program in one is called by its absolute path.
        """
        program, *rest = (self._placed(word, place) for word in self.words)
        if "/" in program and not Path(program).is_absolute() and not (place.root / program).exists():
            program = str(self.root / program)
        return [program, *rest]

    def environment(self, place: RunPlace, bytecode: bool) -> dict[str, str | None]:
        """Changes to our environment; `bytecode`: it may be written."""
        theirs = [self._placed(entry, place) for entry in _entries("PYTHONPATH")]
        ours = [os.path.realpath(place.seen / path) for path in self.imports if (place.root / path).is_dir()]
        changes: dict[str, str | None] = {
            "PATH": self._path,
            "PYTHONDONTWRITEBYTECODE": None if bytecode else "1",
            "PYTHONPYCACHEPREFIX": None,
            "PYTHONHOME": None,
            "PYTHONPATH": os.pathsep.join(dict.fromkeys([*ours, *theirs])),
        }
        if (self.python.parent.parent / "pyvenv.cfg").is_file():
            changes["VIRTUAL_ENV"] = str(self.python.parent.parent)
        return changes

    @property
    def _path(self) -> str:
        return os.pathsep.join([str(self.python.parent), *_entries("PATH")])

    def _is_the_projects(self, program: str) -> bool:
        """Whether `program` is the project's interpreter, or lies beside it as a script of its environment."""
        found = shutil.which(program, path=self._path) if "/" not in program else str(self.root / program)
        if found is None or os.path.realpath(Path(found).parent) != os.path.realpath(self.python.parent):
            return False
        is_python = PYTHON.fullmatch(Path(found).name) is not None
        return os.path.realpath(found) == os.path.realpath(self.python) if is_python else Path(found).is_file()

    def _placed(self, word: str, place: RunPlace | None) -> str:
        """A word that is an absolute path into the project: in the copy, or relative to the root."""
        option, equals, path = word.rpartition("=")
        if path != str(self.root) and not path.startswith(f"{self.root}{os.sep}"):
            return word
        relative = path[len(str(self.root)) + 1 :] or "."
        if place is None:
            return f"{option}{equals}{relative}"
        return f"{option}{equals}{place.seen / relative}" if (place.root / relative).exists() else word


def _import_root(root: Path, module_path: str) -> str:
    first = module_path.split("/", 1)[0]
    is_source = first in SOURCE_DIRECTORIES and (root / first).is_dir() and not (root / first / "__init__.py").exists()
    return first if is_source else "."


def _entries(variable: str) -> Iterator[str]:
    return (entry for entry in os.environ.get(variable, "").split(os.pathsep) if entry)


class CommandRunner:
    """The copies of one project for its test command, in which mutants are tested as `JobScheduler` has them follow."""

    def __init__(self, project: Project) -> None:
        jobs = max(1, project.jobs)
        limit = SANDBOXES_PER_JOB * jobs
        claim = partial(Sandbox.claim, project.cache, project.root, SANDBOX, left_out=MADE_BY_MUTMUT, limit=limit)
        self._places = RunPlaces(project.root, claim, max_idle=jobs)
        self._isolation = Isolation.of("cosmic-ray", project.root, network=False)
        self._scheduler = JobScheduler(lambda: project.jobs)
        self._proof = CommandProof()

    async def test(self, mutants: Sequence[Mutant], command: TestCommand) -> AsyncGenerator[Result | Notice, None]:
        """A result for each mutant whose file has not changed since; see `Adapter.test`."""
        told = False
        work = partial(self._test, object(), command.of_tests)
        async with aclosing(self._scheduler.run(mutants, work)) as results:
            async for result in results:
                if self._proof.remark and not told:
                    told = True
                    yield Remark(self._proof.remark)
                if result is not None:
                    yield result

    async def aclose(self) -> None:
        """Give the copies back."""
        await self._places.aclose()

    async def _test(self, request: object, command: CommandOfTests, mutant: Mutant) -> Result | None:
        """The result; None when the file in the copy isn't the one that was mutated."""
        files = {mutant.path: (mutant.handle.source.digest, mutant.handle.content)}
        for _ in range(ATTEMPTS):
            async with self._places.lease(self._isolation, request) as place:
                await self._proof.prove(place, command)
                try:
                    run = await self._proof.run(place, command, files)
                except Stale:
                    return None
            if not run.was_killed:
                break
        return _result(mutant, run)


def _result(mutant: Mutant, run: CommandRun) -> Result:
    """The result of the run with the mutant in place."""
    status: Status = Status.KILLED
    reason: str | None = run.reason
    if run.timed_out:
        status, reason = Status.TIMEOUT, "the tests took longer than `timeout`"
    elif not run.is_text:  # cosmic-ray fails to decode it: incompetent
        status, reason = Status.RUNTIME_ERROR, NO_TEXT
    elif run.passed:
        status, reason = Status.SURVIVED, None
    return Result(
        mutant,
        status,
        duration=run.duration_ms,
        killed_by=run.failed or None,
        status_reason=reason,
        tests_completed=run.completed,
    )

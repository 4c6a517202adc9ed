"""A trial: a project of its own in a temporary directory, and the mutmut adapter on it."""

import contextlib
import importlib
import json
import os
import platform
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import psutil
from attrs import define, field
from msp_bridge.adapters.mutmut import Mutmut
from msp_bridge.adapters.mutmut.configuration import config_file_of
from msp_bridge.adapters.mutmut.discovery import MutmutDiscovery

from msp_bridge.adapter import Mutant, Notice, Project, Result, Scope
from msp_bridge.python_engine import programs
from support.files import written
from support.projects import copied

PACKAGE = {"pyproject.toml": b'[tool.mutmut]\nsource_paths = ["pkg"]\n', "pkg/__init__.py": b""}  # of a project
DISCOVER = Mutmut._discover
VERSIONS = (platform.python_version(), *map(version, ("mutmut", "libcst")))


def started_by(processes: set[int], one: psutil.Process) -> bool:
    """Whether it is one of `processes`, or below one."""
    return not processes.isdisjoint([one.pid, *(parent.pid for parent in one.parents())])


class ProgramHere:
    """In place of mutmut's program: it is asked in this process, where its parser is imported once, not for each project."""

    def __init__(self, discovery: MutmutDiscovery, project: Project) -> None:
        sys.modules.setdefault("msp_bridge_in_project.python_engine.programs", programs)
        self._questions: Any = importlib.import_module("adapters.mutmut.programs.questions")
        self._configuration = self._questions.MutmutConfiguration(config_file_of(project))
        self._mutants, self._root = self._questions.Mutants(), project.root
        discovery._versions = VERSIONS

    async def started(self) -> None:
        """It runs already."""

    async def ask(self, question: Mapping[str, Any], *about: Any) -> Any:
        with contextlib.chdir(self._root):
            if question["do"] == "mutants":  # mutmut's own functions see what was read last, of whatever project
                self._configuration.read()
            return json.loads(json.dumps(self._questions.answer(question, self._configuration, self._mutants)))

    async def aclose(self) -> None:
        """It stays for the next project."""


async def discover_here(adapter: Mutmut) -> MutmutDiscovery:
    """The adapter's discovery, with a `ProgramHere` where the project's interpreter is this one."""
    if "_discovery" not in vars(adapter) and adapter._project.python == Path(sys.executable):
        adapter._discovery = MutmutDiscovery(adapter._project)
        adapter._discovery._program = ProgramHere(adapter._discovery, adapter._project)  # type: ignore[assignment]
    return await DISCOVER(adapter)


class AskedHere(Mutmut):
    """mutmut is asked by `ProgramHere`."""

    _discover = discover_here


@define(eq=False)
class Trial:
    """The adapter on a project that nobody but the trial itself may write to."""

    root: Path
    adapter: Mutmut
    notices: list[Notice] = field(factory=list, init=False)  # of all discoveries and tests
    _tree: dict[str, tuple[bytes, int]] = field(factory=dict, init=False)

    @classmethod
    @contextlib.asynccontextmanager
    async def of(
        cls, source: str | dict[str, bytes], directory: Path, *, here: bool = True, **about: Any
    ) -> AsyncIterator[Self]:
        """On a copy of a tree of tests/projects, or on files. At the end nothing may be left running or written.

        `here`: see `ProgramHere`.
        """
        root = directory / "project"
        if not root.exists():
            if isinstance(source, str):
                copied(source, directory)
            else:
                written(root, source)
        project = Project(root, directory / "cache", **{"python": Path(sys.executable), "jobs": 2, **about})
        before = {child.pid for child in psutil.Process().children(recursive=True)}
        trial = cls(root, AskedHere(project) if here else Mutmut(project))
        trial._tree = trial.tree()
        try:
            yield trial
        finally:
            await trial.adapter.aclose()
        assert trial.tree() == trial._tree
        assert not [child for child in psutil.Process().children(recursive=True) if not started_by(before, child)]

    def tree(self) -> dict[str, tuple[bytes, int]]:
        """Every file with its bytes and the time of its last change."""
        files = (Path(directory, name) for directory, _, names in os.walk(self.root) for name in names)
        return {str(file.relative_to(self.root)): (file.read_bytes(), file.stat().st_mtime_ns) for file in files}

    def write(self, path: str, text: str) -> None:
        """As the user would, in an editor."""
        (self.root / path).write_text(text, encoding="utf-8")
        self._tree = self.tree()

    def delete(self, path: str) -> None:
        (self.root / path).unlink()
        self._tree = self.tree()

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace `old`, which must be there."""
        text = (self.root / path).read_text(encoding="utf-8")
        assert old in text
        self.write(path, text.replace(old, new))

    async def discover(self, *paths: str) -> list[Mutant]:
        """All mutants, or those of `paths`."""
        async with aclosing(self.adapter.discover(Scope(frozenset(paths) if paths else None))) as mutants:
            return [mutant async for mutant in mutants if not self._told(mutant)]

    async def test(self, mutants: Sequence[Mutant] | None = None) -> dict[str, Result]:
        """The results by mutmut's names; each mutant has at most one."""
        results: dict[str, Result] = {}
        async with aclosing(self.adapter.test(mutants if mutants is not None else await self.discover())) as stream:
            async for result in stream:
                if self._told(result):
                    continue
                assert result.mutant.description not in results
                results[result.mutant.description] = result
        return results

    def _told(self, item: object) -> bool:
        if isinstance(item, Notice):
            self.notices.append(item)
        return isinstance(item, Notice)

    async def host(self) -> int:
        """The process that tests the mutants: another number is another host."""
        plan = await (await self.adapter._discover()).plan()
        return (await self.adapter._engine.prepare(plan))._process.pid

    @property
    def copy(self) -> Path:
        """The sandbox."""
        return self.root.parent / "cache" / "copy-0" / self.root.name

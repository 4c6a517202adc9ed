"""The projects of a tree: which tool is set up in which folder, mounted there, and why not. The map never changes.

`ProjectMap` is all that `detect_projects` found out. Requests are routed by it, `msp-bridge doctor` shows it, and the
errors about tools that are not set up are made from it. Folders are relative to the workspace's root, with a `/` at the
end; "" is the root itself. A file belongs to the nearest folder around it that has a tool which claims it, and there to
the first such tool.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, cast

from attrs import evolve, field, frozen

from msp_bridge.adapter import (
    Adapter,
    AskRanAlone,
    Edit,
    IgnoresMutants,
    KnowsReach,
    Mutant,
    Project,
    Ran,
    Reach,
    ReportsSurroundings,
    Result,
    Scope,
    Surroundings,
)
from msp_bridge.errors import SEE_DOCTOR, BridgeError, ConfigurationError, ToolError
from msp_bridge.notices import FailingTest, Notice, Remark, UnusableFile
from msp_bridge.workspace.configuration import PYPROJECT, Configuration, fingerprint
from msp_bridge.workspace.scheduler import JobBudget
from msp_bridge.workspace.tree import folders_above


@frozen(eq=False)
class MountedAdapter:
    """An adapter whose project is the workspace's root, or a folder in it. All paths here are the workspace's.

    A mutant keeps its handle on the way out and back in: only its path differs. Names of tests get the folder before
    them, because two projects may have tests of one name.
    """

    adapter: Adapter
    folder: str = ""  # relative to the workspace's root, with a `/` at the end

    @property
    def label(self) -> str:
        """Its name in messages; there is one of each label in a workspace."""
        return label(self.adapter.name, self.folder)

    def claims(self, path: str) -> bool:
        """Whether the tool could mutate the file `path`."""
        return path.startswith(self.folder) and self.adapter.claims(path[len(self.folder) :])

    def discover(self, scope: Scope) -> AsyncGenerator[Mutant | Notice, None]:
        """Implement `Adapter.discover`."""
        return self._discover(scope) if self.folder else self.adapter.discover(scope)

    def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        """Implement `Adapter.test`."""
        return self._test(mutants) if self.folder else self.adapter.test(mutants)

    async def ignore(self, mutant: Mutant, reason: str) -> Edit:
        """Implement `IgnoresMutants.ignore`. Raises ToolError, too, when the tool has no comment for it."""
        if not isinstance(self.adapter, IgnoresMutants):
            raise ToolError(
                f"the bridge has no comment by which {self.label} ignores a mutant",
                "see the tool's own documentation for how it leaves out code",
            )
        try:
            edit = await self.adapter.ignore(self._own(mutant), reason)
        except (OSError, ValueError) as error:
            raise ToolError(f"{mutant.path} can't be read: {error}", "list its mutants again") from error
        return evolve(edit, path=self.folder + edit.path)

    def own_result(self, result: Result) -> Result:
        """A result of `test` as the adapter itself has it: its path and the tests that killed it without the folder."""
        killed_by = result.killed_by
        if killed_by is not None:
            killed_by = tuple(test.removeprefix(f"{self.folder}: ") for test in killed_by)
        return evolve(result, mutant=self._own(result.mutant), killed_by=killed_by)

    def _own(self, mutant: Mutant) -> Mutant:
        return evolve(mutant, path=mutant.path[len(self.folder) :])

    async def surroundings(self) -> Surroundings | None:
        """Implement `ReportsSurroundings.surroundings`; None if the adapter has none."""
        return await self.adapter.surroundings() if isinstance(self.adapter, ReportsSurroundings) else None

    @property
    def knows_reach(self) -> bool:
        """Whether its results say what they depend on."""
        return isinstance(self.adapter, KnowsReach)

    async def reach(self, mutants: Sequence[Mutant], known: AskRanAlone, *, alone: bool) -> Mapping[Mutant, Reach]:
        """Implement `KnowsReach.reach`; the names of tests in `Reach.tests` are the adapter's own."""
        if not isinstance(self.adapter, KnowsReach):
            return {}
        outer = {self._own(mutant): mutant for mutant in mutants}
        found = await self.adapter.reach(list(outer), known, alone=alone)
        return {
            outer[mutant]: evolve(reach, covered_by=self._named(reach.covered_by) or ())
            for mutant, reach in found.items()
        }

    def ran_alone(self) -> Mapping[str, tuple[Ran, ...]]:
        """Implement `KnowsReach.ran_alone`."""
        return self.adapter.ran_alone() if isinstance(self.adapter, KnowsReach) else {}

    async def _discover(self, scope: Scope) -> AsyncGenerator[Mutant | Notice, None]:
        async with contextlib.aclosing(self.adapter.discover(self._inner(scope))) as mutants:
            async for mutant in mutants:
                if isinstance(mutant, Notice):
                    yield self._moved(mutant)
                else:
                    yield evolve(mutant, path=self.folder + mutant.path)

    async def _test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        async with contextlib.aclosing(self.adapter.test([self._own(mutant) for mutant in mutants])) as results:
            async for result in results:
                if isinstance(result, Notice):
                    yield self._moved(result)
                    continue
                yield evolve(
                    result,
                    mutant=evolve(result.mutant, path=self.folder + result.mutant.path),
                    covered_by=self._named(result.covered_by),
                    killed_by=self._named(result.killed_by),
                )

    def _moved(self, notice: Notice) -> Notice:
        if isinstance(notice, UnusableFile) or (isinstance(notice, Remark) and notice.path):
            return evolve(notice, path=self.folder + notice.path)
        if isinstance(notice, FailingTest):
            return evolve(notice, test=f"{self.folder}: {notice.test}")
        return notice

    def _named(self, tests: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if tests is None else tuple(f"{self.folder}: {test}" for test in tests)

    def _inner(self, scope: Scope) -> Scope:
        if scope.paths is None or scope.covers(self.folder):
            return Scope()
        return Scope(frozenset(path[len(self.folder) :] for path in scope.paths if path.startswith(self.folder)))


@frozen(eq=False)
class UnavailableAdapter:
    """Stands where the tools of a folder can't be used, and raises the reason for every request.

    It claims all files of its folder, so that none falls to a tool around it. It has the methods of an adapter that a
    workspace calls.
    """

    name: ClassVar[str] = "msp-bridge"
    reason: BridgeError

    def claims(self, path: str) -> bool:
        """All of them."""
        return True

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        """Raises ConfigurationError."""
        raise ConfigurationError(self.reason.problem, self.reason.remedy)
        yield  # what makes it a generator

    async def aclose(self) -> None:
        """Nothing runs."""


def label(name: str, folder: str) -> str:
    """The name in messages of the adapter `name` in `folder`."""
    return f"{name} in {folder}" if folder else name


@frozen(eq=False)
class Candidate:
    """One adapter that may be used in one folder."""

    name: str  # the adapter's
    adapter_class: type[Adapter]
    project: Project
    adapter: Adapter | None = None  # None: its tool is not set up there, unless there is an `error`
    error: BridgeError | None = None
    idle_because: str | None = None  # why its tool, which is merely installed, gives way to one that is configured

    @property
    def is_used(self) -> bool:
        """Whether its tool is set up there, and has files."""
        return self.adapter is not None and self.idle_because is None

    @property
    def sources(self) -> tuple[str, ...] | None:
        """The patterns of the files that the adapter is for. None: it doesn't say."""
        sources: tuple[str, ...] | None = getattr(self.adapter_class, "sources", None)
        return sources


@frozen(eq=False)
class ProjectFolder:
    """The root or a folder below it, with the adapters that may be used there, the first choice first."""

    path: str
    candidates: tuple[Candidate, ...] = ()
    exclusive: bool = False  # the user chose the tools for it: no other gets a file of this folder
    error: BridgeError | None = None  # what keeps all tools from it, such as a wrong configuration
    tools: tuple[MountedAdapter, ...] = field(init=False)  # adapters that are used, or an UnavailableAdapter

    @tools.default
    def _mount(self) -> tuple[MountedAdapter, ...]:
        fault = self.fault
        if fault is not None:
            return (MountedAdapter(cast("Adapter", UnavailableAdapter(fault)), self.path),)
        used = [one.adapter for one in self.candidates if one.adapter is not None and one.is_used]
        return tuple(MountedAdapter(adapter, self.path) for adapter in used)

    @property
    def fault(self) -> BridgeError | None:
        """Why the tools of this folder can't be used: one that was chosen and is missing is a reason, too."""
        if self.error is not None:
            return self.error
        for one in self.candidates:
            if one.error is not None:
                return one.error
            if one.adapter is None and self.exclusive:
                return _not_set_up(one.name, one.project.root)
        return None

    def candidate(self, name: str) -> Candidate | None:
        """The adapter `name`, if it may be used here."""
        return next((one for one in self.candidates if one.name == name), None)


@frozen(eq=False)
class Part:
    """The part of a request that is one tool's."""

    tool: MountedAdapter
    scope: Scope
    named: bool  # the request named something of this part, rather than all that there is


@frozen(eq=False)
class ProjectMap:
    """The projects of the workspace at `root`, as they were when `detect_projects` looked."""

    root: Path
    folders: tuple[ProjectFolder, ...]  # all that were looked at: the root first, each before those in it
    configuration: Configuration = field(factory=Configuration)  # the root's, with the command line's over it
    known: Mapping[str, type[Adapter]] = field(factory=dict)  # the adapters that could be loaded, by name
    broken: Mapping[str, BridgeError] = field(factory=dict)  # plugins that can't be loaded
    misplaced: tuple[BridgeError, ...] = ()  # tables of tools that are about the root, where the tool isn't
    named: str | None = None  # the configuration file that the user named
    fingerprints: tuple[str, str] = ("", "")  # before anything was read: of the root; of all folders
    budget: JobBudget = field(factory=lambda: JobBudget(1))  # what `Project.jobs` of all of them reads

    @cached_property
    def tools(self) -> tuple[MountedAdapter, ...]:
        """All that are used, the root's first."""
        return tuple(tool for folder in self.folders for tool in folder.tools)

    @cached_property
    def _innermost_first(self) -> Sequence[ProjectFolder]:
        return [folder for folder in self.folders[::-1] if folder.tools or folder.exclusive]

    @property
    def is_current(self) -> bool:
        """Whether the configuration files are as they were before they were read."""
        paths = [folder.path for folder in self.folders]
        return self.fingerprints == (fingerprint(self.root, self.named), fingerprint(self.root, self.named, paths))

    def is_like(self, other: ProjectMap) -> bool:
        """Whether the same folders were looked at, and the same tools are set up in them."""
        ours, theirs = ([(one.path, [tool.label for tool in one.tools]) for one in x.folders] for x in (self, other))
        return ours == theirs

    def check(self) -> None:
        """Raises BridgeError when the root's tools can't be used, or what was chosen isn't set up anywhere."""
        for name in self.configuration.adapters or ():
            if name in self.broken:
                raise self.broken[name]
        fault = self.folders[0].fault
        if fault is not None:
            raise fault
        found = {tool.adapter.name for tool in self.tools}
        for name in self.configuration.adapters or ():
            if name not in found:
                raise _not_set_up(name, self.root)
        if not found and self.broken:
            raise next(iter(self.broken.values()))
        if not found:
            names = ", ".join([*self.known, *self.broken]) or "none"
            raise ConfigurationError(
                f"no mutation testing tool is set up in {self.root} (looked for: {names})",
                f"`msp-bridge doctor` says what each of them needs{self._advice}",
            )
        file = self.configuration.tool_file
        taken = (one.adapter is not None and one.project.config_file for all in self.folders for one in all.candidates)
        if file is not None and file.name != PYPROJECT and not any(taken):  # pyproject.toml may be ours alone
            raise ConfigurationError(f"no tool that is set up here takes {file}", "name another file, or leave it out")

    @property
    def _advice(self) -> str:
        """Where the project may have its root instead: people run commands in any of its directories."""
        markers = [pattern for adapter in self.known.values() for pattern in adapter.markers]
        above = next(folders_above(self.root, markers), None)
        return "" if above is None else f"; if {above} is the project, add `--root {above}`"

    def claimants(self, path: str) -> Iterator[MountedAdapter]:
        """The tools that could mutate the file `path`, the one that it belongs to first."""
        for folder in self._innermost_first:
            if path.startswith(folder.path):
                yield from (tool for tool in folder.tools if tool.claims(path))
                if folder.exclusive:
                    return

    def owner(self, path: str) -> MountedAdapter | None:
        """The tool that the file `path` belongs to."""
        return next(self.claimants(path), None)

    def parts(self, scope: Scope) -> list[Part]:
        """The parts of a request, one for each tool that has any, the root's first."""
        if scope.paths is None or "/" in scope.paths:
            return [Part(tool, Scope(), named=False) for tool in self.tools]
        files = {path: self.owner(path) for path in scope.paths if not path.endswith("/")}
        directories = {path: self._nearest(path) for path in scope.paths if path.endswith("/")}
        found = []
        for folder in self.folders:
            inside = {path for path, nearest in directories.items() if nearest is folder}
            around = {path for path in directories if folder.path.startswith(path)}
            others = {
                path
                for path, nearest in directories.items()
                if path.startswith(folder.path) and not (nearest and nearest.exclusive)
            }
            for tool in folder.tools:
                own = {path for path, owner in files.items() if owner is tool}
                if paths := own | inside | around | others:
                    found.append(Part(tool, Scope(frozenset(paths)), named=bool(own or inside or around)))
        return found

    def _nearest(self, directory: str) -> ProjectFolder | None:
        return next((folder for folder in self._innermost_first if directory.startswith(folder.path)), None)


def _not_set_up(name: str, root: Path) -> ConfigurationError:
    return ConfigurationError(f"{name} is not set up in {root}", SEE_DOCTOR)

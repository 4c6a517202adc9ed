"""Detection: makes the map of a tree's projects, and finds the root of the project that a directory is in."""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from attrs import evolve

from msp_bridge.adapter import Adapter, Project
from msp_bridge.environment.cache import cache_of, make_private
from msp_bridge.environment.distributions import EntryPoint, installed, load
from msp_bridge.environment.interpreter import find_interpreter, is_of_any_project, named_interpreter
from msp_bridge.errors import BridgeError, ConfigurationError
from msp_bridge.workspace.configuration import (
    OWN_FILE,
    Configuration,
    FolderConfigurations,
    fingerprint,
    misplaced_table,
)
from msp_bridge.workspace.projects import Candidate, ProjectFolder, ProjectMap, label
from msp_bridge.workspace.scheduler import JobBudget
from msp_bridge.workspace.tree import files_below, folders_above, folders_with, matcher


def detect_projects(
    root: Path, options: Configuration, named: str | None = None, known: Mapping[str, EntryPoint] | None = None
) -> ProjectMap:
    """The projects at and below `root`. Starts no process; reads many files, so call it in a thread.

    `options` are the command line's, `named` is a configuration file that the user named, and `known` are the adapters
    (None: the installed ones). What is wrong with a folder or a plugin is in the map. Raises ConfigurationError
    when the root's own configuration is wrong.
    """
    return _Detection(root, options, named, installed() if known is None else known).project_map()


def project_root(
    start: Path, options: Configuration, named: str | None = None, known: Mapping[str, EntryPoint] | None = None
) -> Path:
    """The root of the project that `start` is in, for a command that names none. The other arguments are as above.

    That is `start` when a tool is set up there or below it; else the nearest directory above where one is
    (`folders_above`); else `start`.
    """
    adapters = installed() if known is None else known
    if (start / OWN_FILE).is_file():
        return start
    try:
        detection = _Detection(start, options, named, adapters)
        at_start = detection.folder("")
        is_marker = matcher(detection.markers)
        if at_start.tools and any(map(is_marker, os.listdir(start))):  # else a tool may be merely installed
            return start
        if any(detection.folder(path).tools for path in detection.below):
            return start
    except ConfigurationError:
        return start  # which is raised when it is opened
    for above in folders_above(start, detection.markers):
        try:
            if _Detection(above, options, named, adapters).folder("").tools:
                return above
        except ConfigurationError:
            return above
    return start


class _Detection:
    """One look at the tree."""

    def __init__(self, root: Path, options: Configuration, named: str | None, known: Mapping[str, EntryPoint]) -> None:
        self._root, self._named, self._known = root, named, known
        self._at_root = fingerprint(root, named)
        self._configurations = FolderConfigurations(root, options, named, known)
        self._configuration = self._configurations.root
        self._budget = JobBudget(self._configuration.jobs or _cores())
        self._loaded: dict[str, type[Adapter]] = {}
        self._broken: dict[str, BridgeError] = {}

    def project_map(self) -> ProjectMap:
        paths = sorted(dict.fromkeys(["", *self.below]), key=lambda path: (path.count("/"), path))
        everywhere = fingerprint(self._root, self._named, paths)  # not earlier: to find the folders takes the longest
        folders = self._without_idle(tuple(map(self.folder, paths)))
        return ProjectMap(
            root=self._root,
            folders=folders,
            configuration=self._configuration,
            known=self._loaded,
            broken=self._broken,
            misplaced=tuple(self._misplaced(folders)),
            named=self._named,
            fingerprints=(self._at_root, everywhere),
            budget=self._budget,
        )

    @cached_property
    def markers(self) -> Sequence[str]:
        """The patterns of the files that a folder has where a tool may be set up."""
        classes = [self._load(name) for name in self._chosen(self._configuration)]
        return sorted({pattern for one in classes if one is not None for pattern in one.markers})

    @cached_property
    def below(self) -> Sequence[str]:
        """The folders below the root where a tool may be set up, and configured folders."""
        found = list(folders_with(os.fspath(self._root), self.markers))
        named = [path for folder in found for path in self._configurations.named_in(folder)]
        return [*self._configuration.folders, *found, *named]

    def folder(self, path: str) -> ProjectFolder:
        """The tools that are set up in one folder."""
        chosen_here = False
        try:
            configuration, chosen_here = self._configurations.of(path)
            candidates = list(self._candidates(path, configuration, nested=bool(path) and not chosen_here))
        except BridgeError as error:
            return ProjectFolder(path, error=error, exclusive=chosen_here)
        if configuration.adapters is None:
            candidates = self._give_way(candidates)
        return ProjectFolder(path, tuple(candidates), exclusive=chosen_here)

    def _candidates(self, path: str, configuration: Configuration, *, nested: bool) -> Iterator[Candidate]:
        root, named = self._root / path, configuration.python
        python = find_interpreter(root, opened=self._root) if named is None else named_interpreter(named)
        for name in self._chosen(configuration):
            adapter_class = self._load(name)
            if adapter_class is None:
                if configuration.adapters is not None:
                    raise self._broken[name]
                continue
            project = evolve(self._project(name, path, configuration), python=python, nested=nested)
            try:
                adapter, project = _detect(adapter_class, project)
                if adapter is not None:
                    make_private(project.cache.parent, root)
                yield Candidate(name, adapter_class, project, adapter)
            except BridgeError as error:
                yield Candidate(name, adapter_class, project, error=error)

    def _give_way(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Drop a merely installed tool where another for the same files is configured."""
        found = [one for one in candidates if one.adapter is not None]
        configured = [one for one in found if len(found) > 1 and _is_configured(one)]
        rivals = {
            one.name: other.name
            for one in found
            for other in configured
            if one not in configured and set(one.sources or ()) & set(other.sources or ())
        }
        return [
            one if one.name not in rivals else evolve(one, idle_because=f"its files belong to {rivals[one.name]}")
            for one in candidates
        ]

    def _without_idle(self, folders: tuple[ProjectFolder, ...]) -> tuple[ProjectFolder, ...]:
        """Let what is merely installed at the root give way to the projects below that have all its files.

        It gives way to any configured tool where only the interpreter that the bridge fell back on has it.
        """
        at_root, *below = folders
        if self._configuration.adapters is not None or sum(len(folder.tools) for folder in folders) < 2:
            return folders
        candidates = tuple(
            evolve(one, idle_because=one.idle_because or self._idle(one, folders)) for one in at_root.candidates
        )
        return (ProjectFolder(at_root.path, candidates, at_root.exclusive, at_root.error), *below)

    def _idle(self, one: Candidate, folders: Sequence[ProjectFolder]) -> str | None:
        if not one.is_used:
            return None
        reason = self._around_its_files(one, folders[1:]) or self._set_up_instead(one, folders)
        return None if reason is None or _is_configured(one) else reason

    def _around_its_files(self, one: Candidate, below: Sequence[ProjectFolder]) -> str | None:
        """The tools below that are for the same kind of files and have all that it could mutate, if so."""
        is_source, kinds = matcher(one.sources or ()), set(one.sources or ())
        rivals = [
            (folder.path, label(other.name, folder.path))
            for folder in below
            for other in folder.candidates
            if other.is_used and kinds & set(other.sources or ())
        ]
        found = set()
        for path in files_below(os.fspath(self._root)) if rivals else ():
            if is_source(path.rpartition("/")[2]):
                around = [rival for folder, rival in rivals if path.startswith(folder)]
                if around:
                    found.add(around[-1])
                elif one.adapter is not None and one.adapter.claims(path):
                    return None
        return f"its files belong to {', '.join(sorted(found))}" if found else None

    def _set_up_instead(self, one: Candidate, folders: Sequence[ProjectFolder]) -> str | None:
        """The tools that are configured, if `one` has no marker in the root and an interpreter that nobody chose."""
        python, is_marker = one.project.python, matcher(one.adapter_class.markers)
        if python is None or self._configuration.python is not None or not is_of_any_project(python):
            return None
        if any(map(is_marker, os.listdir(self._root))):
            return None
        names = sorted(
            label(other.name, folder.path)
            for folder in folders
            for other in folder.candidates
            if other.is_used and _is_configured(other)
        )
        return f"{python} is not an interpreter of this project, which has {', '.join(names)}" if names else None

    def _misplaced(self, folders: Sequence[ProjectFolder]) -> Iterator[BridgeError]:
        all_known = all(
            folder.error is None and all(one.error is None for one in folder.candidates) for folder in folders
        )
        for name in self._configuration.settings:
            at_root = folders[0].candidate(name)
            if at_root is None or at_root.adapter is not None or at_root.error is not None:
                continue
            found = {folder.path: one for folder in folders if (one := folder.candidate(name)) and one.adapter}
            if found or all_known:
                lacking = [path for path, one in found.items() if not one.project.settings]
                yield misplaced_table(name, list(found), lacking, self._root, self._named)

    def _load(self, name: str) -> type[Adapter] | None:
        """The adapter's class. A broken plugin that was not chosen by name must not keep the others from working."""
        if name not in self._loaded and name not in self._broken:
            try:
                self._loaded[name] = self._placed(load(self._known[name]))
            except BridgeError as error:
                self._broken[name] = error
        return self._loaded.get(name)

    def _placed(self, adapter_class: type[Adapter]) -> type[Adapter]:
        """The class for where mutants are tested: here, or on a cluster."""
        address = self._configuration.cluster
        if address is None:
            return adapter_class
        from msp_bridge.cluster import behind_cluster  # here: most have none

        return behind_cluster(adapter_class, address, exclude=self._configuration.cluster_exclude)

    def _chosen(self, configuration: Configuration) -> tuple[str, ...]:
        return tuple(self._known) if configuration.adapters is None else configuration.adapters

    def _project(self, name: str, path: str, configuration: Configuration) -> Project:
        root, file, most, budget = self._root / path, self._configuration.tool_file, configuration.jobs, self._budget
        key, around = label(name, path), None
        if file is not None:  # the innermost folder that it is in
            around = max((one for one in self.below if file.is_relative_to(self._root / one)), key=len, default="")
        return Project(
            root=root,
            cache=cache_of(root, self._root) / name,
            opened=self._root,
            config_file=file if around == path else None,
            settings=configuration.settings.get(name, {}),
            incremental=bool(self._configuration.incremental),
            environment=self._configuration.environment,
            jobs=lambda: min(budget.share_of(key), most or budget.total),
        )


def _detect(adapter_class: type[Adapter], project: Project) -> tuple[Adapter | None, Project]:
    """The adapter, and the project that it was made for: without the configuration file, if that is another tool's."""
    adapter = adapter_class.detect(project)
    if adapter is None and project.config_file is not None:
        project = evolve(project, config_file=None)
        adapter = adapter_class.detect(project)
    return adapter, project


def _is_configured(candidate: Candidate) -> bool:
    """Whether it is more than installed."""
    try:
        return _detect(candidate.adapter_class, evolve(candidate.project, nested=True, python=None))[0] is not None
    except BridgeError:
        return True  # something configures it, though wrongly


def _cores() -> int:
    """The cores that this process may use: containers and CI often allow fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

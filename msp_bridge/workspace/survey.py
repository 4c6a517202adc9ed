"""Survey: which tools are set up in a workspace, each in the folder where it is at home."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import translate
from functools import cached_property
from importlib.metadata import EntryPoint
from pathlib import Path

from attrs import evolve

from msp_bridge.adapter import Adapter, Project
from msp_bridge.errors import BridgeError, ConfigurationError
from msp_bridge.workspace.adapters import load
from msp_bridge.workspace.cache import cache_of
from msp_bridge.workspace.configuration import PYPROJECT, Configuration, Misplaced, load_configuration, prefix_of_tables
from msp_bridge.workspace.faulty import Faulty
from msp_bridge.workspace.folders import folders_with
from msp_bridge.workspace.interpreter import find_interpreter, named_interpreter
from msp_bridge.workspace.router import Place
from msp_bridge.workspace.shares import Shares
from msp_bridge.workspace.tool import Tool, label

log = logging.getLogger(__name__)


class Survey:
    """A look at the workspace at `root`. Folders are relative to it, with a `/` at the end; "" is the root itself.

    What is said closest to a project goes before what is said around it, and the command line before everything. The
    interpreter, the tool's own file and the adapters' tables are each folder's own matter: they aren't inherited.
    """

    def __init__(self, root: Path, options: Configuration, named: str | None, known: Mapping[str, EntryPoint]) -> None:
        """`options` are the command line's, `named` is a configuration file that the user named, `known` the adapters.

        Raises ConfigurationError when the root's configuration is wrong.
        """
        self._root, self._options, self._named, self.known = root, options, named, known
        self.configuration = options.over(load_configuration(root, named, known))
        self.shares = Shares(self.configuration.jobs or _cores())
        self.broken: dict[str, BridgeError] = {}  # plugins that can't be loaded, and that nobody asked for
        self._file_taken = False
        self._said: dict[str, Configuration] = {}  # by folder

    @cached_property
    def folders(self) -> tuple[str, ...]:
        """The folders where a tool may be at home, the root first, and those that the configuration speaks of."""
        found = list(folders_with(os.fspath(self._root), self._patterns))
        named = [f"{folder}{name}" for folder in found for name in self._said_in(folder).folders]
        return tuple(dict.fromkeys(["", *self.configuration.folders, *found, *named]))

    @cached_property
    def _patterns(self) -> list[str]:
        """Of the names of files that a folder has where a tool may be at home."""
        adapters = [self._loaded(name) for name in self._chosen(self.configuration)]
        return sorted({pattern for adapter in adapters if adapter is not None for pattern in adapter.markers})

    def places(self) -> list[Place]:
        """The folders that have tools, those that can't be had (`Faulty`), or are kept from every tool.

        Raises ConfigurationError when what was asked for isn't set up anywhere.
        """
        places = [place for place in map(self._place, self.folders) if place.tools or place.exclusive]
        found = {place.folder: {tool.adapter.name for tool in place.tools} for place in places}
        self._check(set().union(*found.values()))
        all_known = not any(isinstance(tool.adapter, Faulty) for place in places for tool in place.tools)
        for table in self.misplaced(found, all_known=all_known):
            log.warning("%s: %s", table.fault, table.remedy)
        return places

    def projects(self, folder: str) -> Iterator[tuple[str, Project]]:
        """The adapters that may be at home in `folder`, by name, each with its project there.

        Raises ConfigurationError when the folder's configuration is wrong.
        """
        configuration, chosen_here = self._holds_in(folder)
        named, root = configuration.python, self._root / folder
        python = find_interpreter(root, opened=self._root) if named is None else named_interpreter(named)
        for name in self._chosen(configuration):
            project = self._project(name, folder, configuration, python)
            yield name, evolve(project, nested=bool(folder) and not chosen_here)

    def detect(self, name: str, project: Project) -> Adapter | None:
        """The adapter `name`, if its tool is set up in `project`. Raises BridgeError."""
        adapter_class = self._loaded(name)
        if adapter_class is None:
            return None
        adapter = adapter_class.detect(project)
        if project.config_file is None:
            return adapter
        if adapter is not None:
            self._file_taken = True
            return adapter
        return adapter_class.detect(evolve(project, config_file=None))  # the file is another tool's

    def idle(self, folder: str, found: Mapping[str, Project]) -> Mapping[str, str]:
        """Which of the tools found in `folder` are merely installed, each with one that is configured for its files.

        Nobody chose them: they have no part in any request. Raises BridgeError.
        """
        configuration, _ = self._holds_in(folder)
        if configuration.adapters is not None or len(found) < 2:
            return {}
        configured = [
            name for name, project in found.items() if self.detect(name, evolve(project, nested=True, python=None))
        ]
        return {
            name: other
            for name in found
            for other in configured
            if name not in configured and self.sources(name) & self.sources(other)
        }

    def sources(self, name: str) -> frozenset[str]:
        """The patterns of the files that the adapter `name` is for; none, if it doesn't say."""
        return frozenset(getattr(self._loaded(name), "sources", ()))

    def chosen_for(self, folder: str) -> bool:
        """Whether adapters were chosen for a folder below the root in particular. Raises ConfigurationError."""
        _, chosen_here = self._holds_in(folder)
        return chosen_here

    def misplaced(self, found: Mapping[str, Collection[str]], *, all_known: bool) -> list[Misplaced]:
        """The tables of tools that aren't at the root, though the tables are.

        `found` are the adapters by folder; all of them, unless there are folders whose tools couldn't be told.
        """
        chosen, prefix = self._chosen(self.configuration), prefix_of_tables(self._root, self._named)
        tables = []
        for name in self.configuration.settings:
            if name in chosen and name not in found.get("", ()) and name not in self.broken:
                folders = [folder for folder, names in found.items() if name in names]
                if folders or all_known:
                    lacking = [folder for folder in folders if name not in self._holds_in(folder)[0].settings]
                    tables.append(Misplaced(name, tuple(folders), tuple(lacking), prefix))
        return tables

    def _place(self, folder: str) -> Place:
        try:
            chosen_here = self.chosen_for(folder)
            tools = tuple(Tool(adapter, folder) for adapter in self._found(folder, chosen_here))
        except BridgeError as error:
            if not folder:
                raise
            return Place(folder, (Tool(Faulty(str(error)), folder),))
        return Place(folder, tools, exclusive=chosen_here)

    def _found(self, folder: str, chosen_here: bool) -> Iterator[Adapter]:
        found: dict[str, Adapter] = {}
        projects = dict(self.projects(folder))
        for name, project in projects.items():
            adapter = self.detect(name, project)
            if adapter is not None:
                found[name] = adapter
            elif chosen_here:
                raise ConfigurationError(_not_set_up(name, project.root))
        idle = self.idle(folder, {name: projects[name] for name in found})
        return (adapter for name, adapter in found.items() if name not in idle)

    def _loaded(self, name: str) -> type[Adapter] | None:
        """The adapter's class. A broken plugin that nobody asked for by name must not keep the others from working."""
        if name in self.broken:
            return None
        try:
            return load(self.known[name])
        except BridgeError as error:
            if self.configuration.adapters is not None:
                raise
            log.error("%s", error)
            self.broken[name] = error
            return None

    def _holds_in(self, folder: str) -> tuple[Configuration, bool]:
        """What holds in `folder`, and whether its adapters were chosen for it in particular, below the root.

        Raises ConfigurationError when its own file is wrong.
        """
        if not folder:
            return self.configuration, False
        here, around = Configuration(), self.configuration.adapters
        for about, said in self._said_around(folder):
            if about == folder:
                here = said.over(here)
            elif folder.startswith(about) and said.adapters is not None:
                around = said.adapters
        here = load_configuration(self._root / folder, None, self.known).over(here)
        chosen_here = here.adapters is not None and self._options.adapters is None
        return self._options.over(here.over(Configuration(adapters=around))), chosen_here

    def _said_around(self, folder: str) -> Iterator[tuple[str, Configuration]]:
        """What files around `folder` say, of which folder; the outermost file first, in each the outermost folder."""
        parts = folder.split("/")[:-2]
        for place in ("", *(f"{'/'.join(parts[: depth + 1])}/" for depth in range(len(parts)))):
            said = self._said_in(place)
            if place:
                yield place, said
            yield from ((f"{place}{name}", inner) for name, inner in sorted(said.folders.items()))

    def _said_in(self, folder: str) -> Configuration:
        """What the folder's own file says; nothing when that is wrong, which is told where the folder is looked at."""
        if not folder:
            return self.configuration
        if folder not in self._said:
            try:
                self._said[folder] = load_configuration(self._root / folder, None, self.known)
            except ConfigurationError:
                self._said[folder] = Configuration()
        return self._said[folder]

    def _chosen(self, configuration: Configuration) -> tuple[str, ...]:
        return tuple(self.known) if configuration.adapters is None else configuration.adapters

    def _project(self, name: str, folder: str, configuration: Configuration, python: Path | None) -> Project:
        root, file, most = self._root / folder, self.configuration.tool_file, configuration.jobs
        key = label(name, folder)
        return Project(
            root=root,
            cache=cache_of(root, self._root) / name,
            opened=self._root,
            config_file=file if file is not None and self._folder_of(file) == folder else None,
            settings=configuration.settings.get(name, {}),
            python=python,
            jobs=lambda: min(self.shares.of(key), most or self.shares.total),
        )

    def _folder_of(self, file: Path) -> str:
        """The innermost folder that the file is in."""
        within = [folder for folder in self.folders if file.is_relative_to(self._root / folder)]
        return max(within, key=len, default="")

    def _check(self, found: set[str]) -> None:
        for name in self.configuration.adapters or ():
            if name not in found:
                raise ConfigurationError(_not_set_up(name, self._root))
        if not found and self.broken:
            raise next(iter(self.broken.values()))
        if not found:
            names = ", ".join(self.known) or "none"
            raise ConfigurationError(
                f"no mutation testing tool is set up in {self._root} (looked for: {names}): "
                f"`msp-bridge doctor` says what each of them needs{self._advice}"
            )
        file = self.configuration.tool_file
        if file is not None and file.name != PYPROJECT and not self._file_taken:  # pyproject.toml may be ours alone
            raise ConfigurationError(f"no tool that is set up here takes {file}: name another file, or leave it out")

    @property
    def _advice(self) -> str:
        """Where the project may have its root instead: people run commands in any of its directories."""
        marked = re.compile("|".join(map(translate, self._patterns)) or r"(?!)").match
        for above in self._root.parents:
            try:
                names = os.listdir(above)
            except OSError:
                break
            if any(map(marked, names)):
                return f"; if {above} is the project, add `--root {above}`"
        return ""


def _not_set_up(name: str, root: Path) -> str:
    return f"{name} is not set up in {root}: `msp-bridge doctor` says what is missing"


def _cores() -> int:
    """The cores that this process may use: containers and CI often allow fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

"""Which adapters are installed, and which of them are at home in a project."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from msp_bridge.adapter import Adapter, Project
from msp_bridge.errors import BridgeError, ConfigurationError
from msp_bridge.workspace.cache import cache_of
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.interpreter import find_interpreter

GROUP = "msp_bridge.adapters"


def installed() -> dict[str, EntryPoint]:
    """The adapters of the entry-point group `msp_bridge.adapters`, by name; nothing is imported yet."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def detect(root: Path, configuration: Configuration, known: Mapping[str, EntryPoint]) -> list[Adapter]:
    """The adapters whose tools are set up in the project at `root`, in the order that decides who gets a file.

    Raises ConfigurationError when there is none, or one that was asked for by name isn't set up.
    """
    found = []
    for name in configuration.adapters or known:
        adapter = load(known[name]).detect(project_for(name, root, configuration))
        if adapter is not None:
            found.append(adapter)
        elif configuration.adapters:
            raise ConfigurationError(f"{name} is not set up in {root}: `msp-bridge doctor` says what is missing")
    if not found:
        names = ", ".join(known) or "none"
        raise ConfigurationError(
            f"no mutation testing tool is set up in {root} (looked for: {names}): "
            "`msp-bridge doctor` says what each of them needs"
        )
    return found


def project_for(name: str, root: Path, configuration: Configuration) -> Project:
    """What the adapter `name` is told of the project at `root`. Raises ConfigurationError."""
    return Project(
        root=root,
        cache=cache_of(root) / name,
        config_file=configuration.tool_file,
        settings=configuration.settings.get(name, {}),
        python=_interpreter(root, configuration),
        jobs=configuration.jobs or _cores(),
    )


def load(entry: EntryPoint) -> type[Adapter]:
    """The adapter's class. Raises BridgeError when the plugin is broken."""
    try:
        adapter: type[Adapter] = entry.load()
    except Exception as error:  # somebody else's code: whatever goes wrong in it must not look like our fault
        raise BridgeError(
            f"the adapter {entry.name} ({entry.value}) can't be loaded: {error!r}; reinstall or remove it"
        ) from error
    return adapter


def _interpreter(root: Path, configuration: Configuration) -> Path | None:
    named = configuration.python
    if named is None:
        return find_interpreter(root)
    if named.is_dir():  # an environment, as one would say it
        return find_interpreter(root, {"VIRTUAL_ENV": os.fspath(named)})
    if not os.access(named, os.X_OK):
        raise ConfigurationError(f"there is no interpreter {named}; correct the setting `python`")
    return named


def _cores() -> int:
    """The cores that this process may use: containers and CI often allow fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

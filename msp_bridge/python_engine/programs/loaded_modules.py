"""Loaded modules: which this process has, and from which files.

Any object may stand in `sys.modules`: cffi's `lib` says that it is a module, and has no `__dict__`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import sysconfig
import types
from collections.abc import Mapping

SITES = frozenset({"site-packages", "dist-packages"})


def module_files() -> dict[str, str | None]:
    """The file of each module that is loaded, by the module's name. None: it has none."""
    return {name: file_of(module) for name, module in list(sys.modules.items())}


def file_of(module: object) -> str | None:
    """The file of a module; None: it has none. Loads no lazy module."""
    try:
        if issubclass(type(module), types.ModuleType):
            file = object.__getattribute__(module, "__dict__").get("__file__")
        else:
            file = getattr(module, "__file__", None)
    except Exception:  # what stands in for a module may raise anything
        return None
    return file if isinstance(file, str) else None


def loaded_files(filenames: frozenset[str]) -> set[str]:
    """Which of the files are modules of this process."""
    return {file for file in module_files().values() if file in filenames}


def outside_files(*roots: str) -> dict[str, list[int]]:
    """The files of modules that lie neither in `roots` nor in the environment, such as those of a library beside.

    Each as it is now: the time of its last change, and its size.
    """
    own = [*roots, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    ours = tuple(os.path.join(place, "") for path in own for place in {path, os.path.realpath(path)})
    files = (file for name, file in module_files().items() if file and not name.startswith("msp_bridge"))
    outside = {file for file in files if SITES.isdisjoint(file.split(os.sep)) and not file.startswith(ours)}
    return {file: stamp for file in sorted(outside) if (stamp := _stamp(file)) is not None}


def have_changed(files: Mapping[str, list[int]]) -> bool:
    """Whether one of these files is another than it was then, or gone."""
    return any(_stamp(file) != stamp for file, stamp in files.items())


def _stamp(file: str) -> list[int] | None:
    with contextlib.suppress(OSError, ValueError):
        status = os.stat(file)
        return [status.st_mtime_ns, status.st_size]
    return None

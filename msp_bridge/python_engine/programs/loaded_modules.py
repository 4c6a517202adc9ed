"""Which modules this process has loaded, and from which files.

Any object may stand in `sys.modules`: cffi's `lib` says that it is a module, and has no `__dict__`.
"""

from __future__ import annotations

import sys
import types


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

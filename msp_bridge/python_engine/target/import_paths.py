"""From where the project is imported: from the sandbox, whatever the environment says of the user's tree."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Sequence


def enter(root: str, sandbox: str) -> None:
    """Let the sandbox, which is the current directory, take the place of `root` in `sys.path`."""
    here = os.getcwd()
    if root != here:
        sys.path[:] = [_turned(path, root, sandbox) for path in sys.path]
        _turn_editable_installs(root, sandbox)
    parts = [part for part in ("", "src", "source") if os.path.isdir(os.path.join(here, part))]
    ours = [os.path.join(here, part) if part else here for part in parts]
    sys.path[:] = [path for path in sys.path if path and os.path.realpath(path) not in map(os.path.realpath, ours)]
    for path in ours:
        sys.path.insert(0, path)
    if root != here:  # for the processes that tests start
        theirs = [_turned(path, root, sandbox) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        os.environ["PYTHONPATH"] = os.pathsep.join([*reversed(ours), *theirs])
    sys.argv = ["pytest"]
    sys.modules["__main__"] = types.ModuleType("__main__")  # multiprocessing would run ours again in its processes


def loaded_elsewhere(sources: Sequence[str], place: str) -> tuple[str, str] | None:
    """A source that the tests import from another place, such as an installed copy: the source, and the place.

    Only dotted names count: a module at the top level may share its name with any other.
    """
    for path in sources:
        parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
        for name in (".".join(parts), ".".join(parts[1:])):
            file = getattr(sys.modules.get(name), "__file__", None) if "." in name else None
            if file is not None and not os.path.realpath(file).startswith(place + os.sep):
                return path, file
    return None


def _turn_editable_installs(root: str, sandbox: str) -> None:
    """setuptools' finders map the packages of an editable install to their directories."""
    for name, module in list(sys.modules.items()):
        mapping = getattr(module, "MAPPING", None) if name.startswith("__editable__") else None
        if isinstance(mapping, dict):
            mapping.update({package: _turned(path, root, sandbox) for package, path in mapping.items()})


def _turned(path: str, root: str, sandbox: str) -> str:
    """A path of the user's tree, such as one of an editable install, as that of the sandbox."""
    real = os.path.realpath(path)
    if real != root and not real.startswith(root + os.sep):
        return path
    turned = os.path.join(sandbox, os.path.relpath(real, root)) if real != root else sandbox
    return turned if os.path.isdir(turned) else path

"""Starts a program under the project's interpreter: `python target FOLDER MODULE OPTIONS` (in JSON).

FOLDER is this one, or one of an adapter that has programs of its own. Each becomes a package of an unusual name and
none stays in `sys.path`: no file of ours hides a module of the project. An adapter's program imports `Channel` from
`msp_bridge_python_engine.channel`.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys

ENGINE, TOOL = "msp_bridge_python_engine", "msp_bridge_tool"


def main(folder: str, module: str, options: str) -> None:
    """Run `main(options)` of a module."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    _load(ENGINE, here)
    importlib.import_module(f"{ENGINE}.bytecode").read_beside_sources()
    package = ENGINE
    if os.path.abspath(folder) != here:
        package = TOOL
        _load(TOOL, os.path.abspath(folder))
    importlib.import_module(f"{package}.{module}").main(json.loads(options))


def _load(name: str, folder: str) -> None:
    init = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location(name, init, submodule_search_locations=[folder])
    assert spec is not None
    assert spec.loader is not None
    package = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Starts a program under the project's interpreter: `python programs/__main__.py FOLDER MODULE OPTIONS` (in JSON).

FOLDER is this one, or one of an adapter that has programs of its own. None stays in `sys.path`: no file of ours hides a
module of the project. The folders of the bridge become packages below `IN_PROJECT`, a name that no project has, and
an adapter's folder the package `TOOL`: neither the bridge's own `__init__.py` nor the adapter's runs.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
import types
from typing import Any

IN_PROJECT, TOOL = "msp_bridge_in_project", "msp_bridge_tool"
ENGINE = f"{IN_PROJECT}.python_engine.programs"


def main(folder: str, module: str, options: str) -> Any:
    """Run `main(options)` of a module. In a process that it has forked to serve, returns the `Forked`; else None."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    engine = os.path.dirname(here)
    _add_package(f"{IN_PROJECT}.python_engine", engine)
    _add_package(IN_PROJECT, os.path.dirname(engine))
    importlib.import_module(f"{ENGINE}.bytecode").read_beside_sources()
    package = ENGINE
    if os.path.abspath(folder) != here:
        package = TOOL
        _add_package(TOOL, os.path.abspath(folder))
    try:
        importlib.import_module(f"{package}.{module}").main(json.loads(options))
    except importlib.import_module(f"{ENGINE}.forked").Forked as forked:
        return forked


def _add_package(name: str, folder: str) -> None:
    """Let what is in `folder` be imported below `name`, without running its `__init__.py`."""
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = [folder]


if __name__ == "__main__":
    if (forked := main(*sys.argv[1:])) is not None:
        try:
            forked.serve()  # here, and not in a function: tests have as many frames below them as in pytest
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(70)  # EX_SOFTWARE: a job that is done ends the process itself

"""Starts a part of this folder under the project's interpreter: `python target discovery|host|look OPTIONS` (in JSON).

The folder becomes a package of an unusual name and leaves `sys.path`: none of its files hides a module of the project.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys

PACKAGE = "msp_bridge_mutmut_target"


def main(part: str, options: str) -> None:
    """Run `part` with `options`."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    spec = importlib.util.spec_from_file_location(PACKAGE, f"{here}/__init__.py", submodule_search_locations=[here])
    assert spec is not None
    assert spec.loader is not None
    package = sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    importlib.import_module(f"{PACKAGE}.{part}").main(json.loads(options))


if __name__ == "__main__":
    main(*sys.argv[1:])

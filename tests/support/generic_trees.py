"""What the tests of the generic adapter share: a project with a real tool of its own, and adapters on it."""

import shutil
import tomllib
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from msp_bridge.adapters.generic import Generic

from support.adapters import detected

SHOP = Path(__file__).parent.parent / "projects" / "generic_shop"
Table = dict[str, Any]


def copied(to: Path) -> Path:
    """The project, copied below `to`."""
    return Path(shutil.copytree(SHOP, to / "shop", ignore=shutil.ignore_patterns("__pycache__", "out")))


def settings(root: Path) -> dict[str, Table]:
    """The tables of the project's tools."""
    tables: dict[str, Table] = tomllib.loads((root / "msp-bridge.toml").read_text("utf-8"))["generic"]
    return tables


def adapter_on(root: Path, tables: dict[str, Table]) -> AbstractAsyncContextManager[Generic]:
    return detected(Generic, root, settings=tables, jobs=3)

"""What the tests of the generic adapter share: a project with a real tool of its own, and adapters on it."""

import tomllib
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from msp_bridge.adapters.generic import Generic

from support.adapters import detected

Table = dict[str, Any]


def settings(root: Path) -> dict[str, Table]:
    """The tables of the project's tools."""
    tables: dict[str, Table] = tomllib.loads((root / "msp-bridge.toml").read_text("utf-8"))["generic"]
    return tables


def adapter_on(root: Path, tables: dict[str, Table], *, edited: bool = False) -> AbstractAsyncContextManager[Generic]:
    return detected(Generic, root, edited=edited, settings=tables, jobs=3)

"""What the tests of the generic adapter share: a project with a real tool of its own, and adapters on it."""

import contextlib
import shutil
import tomllib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from msp_bridge.adapters.generic import Generic

from msp_bridge.adapter import Mutant, Project, Result, Scope
from msp_bridge.testing import RunningProcesses, TreeState

SHOP = Path(__file__).parent.parent / "projects" / "generic_shop"
Table = dict[str, Any]


def copied(to: Path) -> Path:
    """The project, copied below `to`."""
    return Path(shutil.copytree(SHOP, to / "shop", ignore=shutil.ignore_patterns("__pycache__", "out")))


def settings(root: Path) -> dict[str, Table]:
    """The tables of the project's tools."""
    tables: dict[str, Table] = tomllib.loads((root / "msp-bridge.toml").read_text("utf-8"))["generic"]
    return tables


@contextlib.asynccontextmanager
async def adapter_on(root: Path, tables: dict[str, Table]) -> AsyncIterator[Generic]:
    """The adapter, which must leave the tree as it was and no process behind."""
    tree, running = TreeState.of(root), RunningProcesses()
    adapter = Generic.detect(Project(root=root, cache=root.parent / "cache", settings=tables, jobs=3))
    assert adapter is not None
    async with contextlib.aclosing(adapter):
        yield adapter
    assert await running.settled(0) == []
    assert tree.differences(TreeState.of(root)) == []


async def discovered(adapter: Generic, *paths: str) -> list[Mutant]:
    async with contextlib.aclosing(adapter.discover(Scope(frozenset(paths) or None))) as mutants:
        return [mutant async for mutant in mutants]


async def results_of(adapter: Generic, mutants: Sequence[Mutant]) -> list[Result]:
    async with contextlib.aclosing(adapter.test(mutants)) as results:
        return [result async for result in results]

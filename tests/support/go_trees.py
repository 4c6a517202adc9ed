"""What the tests of the gremlins adapter share: trees, and adapters on them. go and gremlins are the real ones."""

import contextlib
import os
import shutil
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from msp_bridge.adapters.gremlins import Gremlins

from msp_bridge.adapter import Mutant, Notice, Project, Result, Scope
from msp_bridge.testing import RunningProcesses, TreeState

PROJECTS = Path(__file__).parent.parent / "projects"
EXAMPLE = Path(__file__).parents[2] / "examples" / "shop-go"
PROGRAMS = os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent), "/usr/local/go/bin"])
REAL = all(shutil.which(name, path=PROGRAMS) is not None for name in ("go", "gremlins"))
needs_gremlins = pytest.mark.skipif(not REAL, reason="gremlins is not installed")  # `make test` installs it, beside go


def copied(to: Path) -> Path:
    """The example, copied below `to`, with a file that is no Go where go builds nothing."""
    root = Path(shutil.copytree(EXAMPLE, to / "project"))
    (root / "testdata").mkdir()
    (root / "testdata" / "broken.go").write_text("this is no Go: a > b\n", "utf-8")
    return root


@contextlib.asynccontextmanager
async def adapter_on(root: Path) -> AsyncIterator[Gremlins]:
    """The adapter, which must leave the tree as it was and no process behind."""
    tree, running = TreeState.of(root), RunningProcesses()
    adapter = Gremlins.detect(Project(root=root, cache=root.parent / "cache", jobs=2))
    assert adapter is not None
    async with contextlib.aclosing(adapter):
        yield adapter
    assert await running.settled(0) == []
    assert tree.differences(TreeState.of(root)) == []


async def discovered(adapter: Gremlins, *paths: str) -> tuple[list[Mutant], list[Notice]]:
    async with contextlib.aclosing(adapter.discover(Scope(frozenset(paths) or None))) as items:
        found = [item async for item in items]
    return [item for item in found if isinstance(item, Mutant)], [item for item in found if isinstance(item, Notice)]


async def results_of(adapter: Gremlins, mutants: Sequence[Mutant]) -> tuple[dict[str, Result], list[Notice]]:
    """Results by "line mutator replacement"."""
    async with contextlib.aclosing(adapter.test(mutants)) as items:
        found = [item async for item in items]
    results = [item for item in found if isinstance(item, Result)]
    assert len(results) == len({result.mutant for result in results})
    return {key(result.mutant): result for result in results}, [item for item in found if isinstance(item, Notice)]


def key(mutant: Mutant) -> str:
    return f"{mutant.location.start.line} {mutant.mutator} {mutant.replacement.strip()}"

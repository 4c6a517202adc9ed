"""What the tests of the cosmic-ray adapter share: trees, adapters on them, and cosmic-ray itself to compare with."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import psutil
from msp_bridge.adapters.cosmic_ray import CosmicRay

from msp_bridge.adapter import Mutant, Project, Result, Scope
from msp_bridge.notices import Notice
from msp_bridge.testing import RunningProcesses

PROJECTS = Path(__file__).parent.parent / "projects"
Contents = dict[str, bytes]


def copied(name: str, to: Path) -> Path:
    """The project `name`, copied below `to`."""
    root = to / "project"
    shutil.copytree(PROJECTS / name, root, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@contextlib.asynccontextmanager
async def adapter_on(root: Path, *, jobs: int = 1, python: str = sys.executable) -> AsyncIterator[CosmicRay]:
    """The adapter that detects the tree, whose bytes must be the same afterwards."""
    project = Project(root=root, cache=root.parent / "cache", python=Path(python), jobs=jobs)
    adapter = CosmicRay.detect(project)
    assert adapter is not None
    running = RunningProcesses()
    try:
        yield adapter
    finally:
        await adapter.aclose()
        assert running.look() == []


async def discovered(adapter: CosmicRay, *paths: str) -> list[Mutant]:
    return [
        mutant async for mutant in adapter.discover(Scope(frozenset(paths) or None)) if not isinstance(mutant, Notice)
    ]


async def results_of(adapter: CosmicRay, mutants: Sequence[Mutant]) -> list[Result]:
    async with contextlib.aclosing(adapter.test(mutants)) as results:
        return [result async for result in results if not isinstance(result, Notice)]


def contents(root: Path) -> Contents:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def processes() -> list[psutil.Process]:
    """Our descendants that are alive."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # gone meanwhile
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def cosmic_ray(root: Path, *arguments: str) -> None:
    """Run cosmic-ray itself, in the tree."""
    command = [sys.executable, "-c", f"from {arguments[0]} import main; main()", *arguments[1:]]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(command, cwd=root, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def rows(root: Path, query: str) -> list[tuple[object, ...]]:
    """From cosmic-ray's session."""
    with contextlib.closing(sqlite3.connect(root / "session.sqlite")) as session:
        return list(session.execute(query))

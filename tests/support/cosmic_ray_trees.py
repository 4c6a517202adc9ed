"""What the tests of the cosmic-ray adapter share: trees, adapters on them, and cosmic-ray itself to compare with."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import psutil
from msp_bridge.adapters.cosmic_ray import CosmicRay

from support.adapters import detected

PROJECTS = Path(__file__).parent.parent / "projects"
Contents = dict[str, bytes]


def copied(name: str, to: Path) -> Path:
    """The project `name`, copied below `to`."""
    root = to / "project"
    shutil.copytree(PROJECTS / name, root, ignore=shutil.ignore_patterns("__pycache__"))
    return root


def adapter_on(root: Path, *, jobs: int = 1, python: str = sys.executable) -> AbstractAsyncContextManager[CosmicRay]:
    return detected(CosmicRay, root, edited=True, python=Path(python), jobs=jobs)


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

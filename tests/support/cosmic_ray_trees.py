"""What the tests of the cosmic-ray adapter share: trees, adapters on them, and cosmic-ray itself to compare with."""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from msp_bridge.adapters.cosmic_ray import CosmicRay

from support.adapters import detected


def adapter_on(root: Path, **about: Any) -> AbstractAsyncContextManager[CosmicRay]:
    return detected(CosmicRay, root, **{"python": Path(sys.executable), "jobs": 1, **about})


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


def plain(root: Path, body: str, tests: str, *, timeout: float = 20, command: str = "python tests.py") -> Path:
    """A project with one module `m.py`, tested by a script."""
    root.mkdir()
    (root / "m.py").write_text(body)
    (root / "tests.py").write_text(tests)
    (root / "cosmic-ray.toml").write_text(
        f'[cosmic-ray]\nmodule-path = "m.py"\ntimeout = {timeout}\ntest-command = {json.dumps(command)}\n'
    )
    return root

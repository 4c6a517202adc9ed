"""The standard viewer as npm installs it, and small reports to show."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from msp_bridge.model import Location, Mutant, Position, Result, Status
from msp_bridge.reports.schema import report
from msp_bridge.reports.viewer import PACKAGE, VERSION

SCHEMA = json.loads((Path(__file__).parents[1] / "reports" / "mutation-testing-report-schema.json").read_text())
NPM = shutil.which("npm")

needs_npm = pytest.mark.skipif(NPM is None, reason="needs npm")


def npm_install(directory: Path) -> Path:
    """`directory`, where the pinned viewer is installed now."""
    assert NPM is not None
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "package.json").write_text("{}")
    argv = [NPM, "install", "--no-audit", "--no-fund", "--ignore-scripts", f"{PACKAGE}@{VERSION}"]
    done = subprocess.run(argv, cwd=directory, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return directory


def mutant(path: str = "shop.py", line: int = 1, replacement: str = "-", mutator: str = "plus") -> Mutant:
    return Mutant(path, mutator, Location(Position(line, 7), Position(line, 8)), replacement)


def reported(root: Path, *results: Result, source: str = "a = b + c\n", **config: Any) -> dict[str, Any]:
    """A report on files that all have the same text."""
    for result in results:
        (root / result.mutant.path).parent.mkdir(parents=True, exist_ok=True)
        (root / result.mutant.path).write_bytes(source.encode())
    made: dict[str, Any] = json.loads(json.dumps(report(root, results, config)))
    return made


def survived(*of: Any, **fields: Any) -> Result:
    return Result(mutant(*of), Status.SURVIVED, **fields)


def killed(*of: Any, **fields: Any) -> Result:
    return Result(mutant(*of), Status.KILLED, **fields)

"""The command line on a small project of the scripted adapter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
WAIT_S = 60.0
SCRIPT: dict[str, Any] = {
    "mutations": [
        {"mutator": "plus", "find": "+", "replacement": "-", "status": "Killed", "details": {"duration": 1.5}},
        {"mutator": "digit", "find": "1", "replacement": "2", "status": "Survived"},
    ]
}
GATED = [SCRIPT["mutations"][0], SCRIPT["mutations"][1] | {"after": "never"}]  # the second one's result never comes


def make_project(root: Path) -> Path:
    """Four mutants in two files."""
    root.mkdir()
    (root / "a.py").write_text("x = y + 1\nz = 1\n")
    (root / "b.py").write_text("w = v + u\n")
    return root


def script(project: Path, **changes: Any) -> None:
    (project / "scripted.json").write_text(json.dumps(SCRIPT | changes))


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "msp_bridge", *arguments]


def environment(project: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(TESTS),
        "MSP_BRIDGE_CACHE": str(project.parent / "cache"),
        "COLUMNS": "200",
        "TERM": "dumb",
    }


def bridge(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command with the scripted adapter, in the project."""
    argv = command(*arguments, "--adapter", "scripted")
    return subprocess.run(argv, cwd=project, env=environment(project), capture_output=True, text=True, timeout=60)


def wait_until(condition: Callable[[], bool], running: subprocess.Popen[Any]) -> None:
    """Until something is so, while the process runs."""
    end = time.monotonic() + WAIT_S
    while not condition():
        assert running.poll() is None, f"the command ended: {running.communicate()[1]}"
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


def is_waiting(events: Path) -> bool:
    """Whether the scripted adapter waits for the gate of `GATED`, by the log in its directory of events."""
    log = events / "log"
    return log.exists() and "waiting for never" in log.read_text()

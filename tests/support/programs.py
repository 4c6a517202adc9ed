"""Programs of a few lines, for what needs a process with a single thread, or another parent."""

import os
import subprocess
import sys

import pytest


def printed(code: str, *arguments: str) -> list[str]:
    """The lines that `code` prints. "refused: why" in the first one skips the test: the machine permits too little."""
    run = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": ""})
    assert done.returncode == 0, (done.returncode, done.stderr)
    lines = done.stdout.splitlines()
    if lines and lines[0].startswith("refused:"):
        pytest.skip(f"this machine permits no process namespaces here: {lines[0]}")
    return lines

"""Programs of a few lines, for what needs a process with a single thread, or another parent."""

import os
import subprocess
import sys

import pytest

from msp_bridge.isolation import guard

WHY_UNGUARDED = guard.why_not()
needs_guard = pytest.mark.skipif(bool(WHY_UNGUARDED), reason=f"no process can be guarded here: {WHY_UNGUARDED}")

# Starts a process that is orphaned and ends, and waits until the kernel knows it no more.
ORPHAN = """
def orphan():
    reader, writer = os.pipe()
    if os.fork() == 0:
        if os.fork() == 0:
            os.write(writer, b"%d" % os.getpid())
        os._exit(0)
    os.wait()
    stray = int(os.read(reader, 20))
    while True:
        try:
            os.kill(stray, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
"""


def printed(code: str, *arguments: str) -> list[str]:
    """The lines that `code` prints. "refused: why" in the first one skips the test: the machine permits too little."""
    run = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": ""})
    assert done.returncode == 0, (done.returncode, done.stderr)
    lines = done.stdout.splitlines()
    if lines and lines[0].startswith("refused:"):
        pytest.skip(f"this machine permits no process namespaces here: {lines[0]}")
    return lines

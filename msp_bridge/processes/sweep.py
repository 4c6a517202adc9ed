"""Finds and ends the processes of one run by their parents and their environment, where nothing exact can.

Used by the bridge when a supervisor was killed, and on macOS by the supervisor: as a file of its own, which imports
nothing of ours.
"""

import contextlib
import time
from collections.abc import Callable

import psutil

RUN_ID = "MSP_BRIDGE_RUN"  # an environment variable that every descendant inherits, reparented ones too
POLL_S = 0.02  # between two looks at a dying process
KILL_TIMEOUT_S = 5.0  # a process in uninterruptible sleep can't be ended by anybody


def members(run_id: str, below: int | None) -> list[psutil.Process]:
    """The living processes that carry `run_id`, and the descendants of the process `below`, but not `below` itself."""
    found = {process.pid: process for process in _descendants(below)} if below is not None else {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):  # gone meanwhile, or another user's: not one of ours
            if process.environ().get(RUN_ID) == run_id:
                found[process.pid] = process
    return [process for pid, process in found.items() if pid != below and alive(process)]


def end(run_id: str, below: int | None, grace: float, reap: Callable[[], None] = lambda: None) -> None:
    """Send SIGTERM to every member, wait up to `grace` s, then send SIGKILL until none is left.

    `reap` is called before each look, so that the caller's own dead children don't count.
    """
    deadline = time.monotonic() + grace
    signalled: set[int] = set()
    while time.monotonic() < deadline + KILL_TIMEOUT_S:
        reap()
        left = members(run_id, below)
        if not left:
            return
        kill = time.monotonic() >= deadline
        for process in left:
            with contextlib.suppress(psutil.Error):  # gone meanwhile
                if kill:
                    process.kill()
                elif process.pid not in signalled:
                    process.terminate()
                    process.resume()  # a stopped one can't act on it
        signalled.update(process.pid for process in left)
        time.sleep(POLL_S)


def alive(process: psutil.Process) -> bool:
    """Whether it runs: a zombie, whose exit code nobody has fetched, doesn't."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []

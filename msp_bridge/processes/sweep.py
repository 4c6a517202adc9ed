"""Finds and ends every process of one run, however far it has strayed from its parent.

Used by the bridge and, as a file of its own, by the keeper: it imports nothing of ours.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import psutil

COOKIE = "MSP_BRIDGE_RUN"  # an environment variable that every descendant inherits, reparented ones too
POLL = 0.02  # s; how often a dying process is looked at


def members(cookie: str, below: int | None) -> list[psutil.Process]:
    """The living processes that carry `cookie`, and the descendants of the process `below`, but not `below` itself."""
    found = {process.pid: process for process in _descendants(below)} if below is not None else {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):  # gone meanwhile, or another user's: not one of ours
            if process.environ().get(COOKIE) == cookie:
                found[process.pid] = process
    return [process for pid, process in found.items() if pid != below and alive(process)]


def end(cookie: str, below: int | None, grace: float, reap: Callable[[], None] = lambda: None) -> None:
    """Ask every member to end, wait up to `grace` s, then insist until none is left.

    `reap` is called before each look, so that the caller's own dead children don't count.
    """
    deadline = time.monotonic() + grace
    asked: set[int] = set()
    while True:
        reap()
        left = members(cookie, below)
        if not left:
            return
        insist = time.monotonic() >= deadline
        for process in left:
            with contextlib.suppress(psutil.Error):  # gone meanwhile
                if insist:
                    process.kill()
                elif process.pid not in asked:
                    process.terminate()
        asked.update(process.pid for process in left)
        time.sleep(POLL)


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def alive(process: psutil.Process) -> bool:
    """Whether it runs: one that has ended, and that nobody has asked for its exit code, doesn't."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False

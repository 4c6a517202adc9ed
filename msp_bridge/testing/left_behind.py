"""Traces that are left behind: whether a tree is, to the byte, what it was, and which processes our own has started."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import stat
from pathlib import Path

import psutil
from attrs import frozen

from msp_bridge.processes.sweep import RUN_ID, alive, members

MAX_LOOKS = 250  # 20 ms apart, until what was reported dead must be gone from the process table, too


@frozen
class TreeState:
    """State of every file of a tree: kind, permissions, time of the last change (ns), and content, by path."""

    entries: dict[str, tuple[int, int, str]]

    @classmethod
    def of(cls, root: Path) -> TreeState:
        """The present state of everything at and below `root`."""
        entries = {}
        for directory, names, files in os.walk(root):
            for name in [".", *names, *files]:
                path = os.path.join(directory, name)
                status = os.lstat(path)
                entries[os.path.relpath(path, root)] = (
                    status.st_mode,
                    status.st_mtime_ns,
                    _content(path, status.st_mode),
                )
        return cls(entries)

    def differences(self, later: TreeState) -> list[str]:
        """Return a line for each path that has appeared, vanished or changed since."""
        before, after = self.entries, later.entries
        return sorted(
            [f"{path} has appeared" for path in after.keys() - before.keys()]
            + [f"{path} has vanished" for path in before.keys() - after.keys()]
            + [f"{path} has changed" for path in before.keys() & after.keys() if before[path] != after[path]]
        )


def _content(path: str, mode: int) -> str:
    if stat.S_ISLNK(mode):
        return os.readlink(path)
    if stat.S_ISREG(mode):
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return ""


class RunningProcesses:
    """Looks at the processes below ours that were not there when it was made; remembers their runs, to find strays."""

    def __init__(self) -> None:
        self._before = {process.pid for process in psutil.Process().children(recursive=True)}
        self._runs: set[str] = set()

    def look(self) -> list[psutil.Process]:
        """The living processes below ours, or of a run that was seen earlier."""
        found = {process.pid: process for process in psutil.Process().children(recursive=True)}
        for process in found.values():
            with contextlib.suppress(psutil.Error, OSError):
                if run := process.environ().get(RUN_ID):
                    self._runs.add(run)
        for run in self._runs:
            found.update((process.pid, process) for process in members(run, None))
        return [process for pid, process in found.items() if pid not in self._before and alive(process)]

    async def settled(self, at_most: int) -> list[str]:
        """The command lines of what is alive once no more than `at_most` processes are, or after `MAX_LOOKS`."""
        left: list[psutil.Process] = []
        for _ in range(MAX_LOOKS):
            left = self.look()
            if len(left) <= at_most:
                break
            await asyncio.sleep(0.02)
        return [_command(process) for process in left]


def _command(process: psutil.Process) -> str:
    try:
        return f"{process.pid}: {' '.join(process.cmdline())[:200]}"
    except psutil.Error:
        return f"{process.pid}: gone meanwhile"

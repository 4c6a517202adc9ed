"""Running: which processes our own has started, directly or through any number of others."""

from __future__ import annotations

import asyncio
import contextlib

import psutil

from msp_bridge.processes.sweep import RUN_ID, alive, members

MAX_LOOKS = 250  # 20 ms apart, until what was reported dead must be gone from the process table, too


class Running:
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

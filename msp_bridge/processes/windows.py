"""Kept: a tool started directly (Windows). Untested: no Windows machine has run this yet.

There is no keeper: when the bridge is killed, its tools go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from msp_bridge.processes import sweep


class Kept:
    """One tool; its descendants are found by psutil."""

    def __init__(self, process: asyncio.subprocess.Process, cookie: str) -> None:
        self._process, self._cookie = process, cookie

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        cookie: str,
        grace: float,
        streams: tuple[int, int, int],
    ) -> Kept:
        """Start `command`. `streams` are the descriptors of stdin, stdout and stderr."""
        stdin, stdout, stderr = streams
        process = await asyncio.create_subprocess_exec(
            *command, cwd=cwd, env=environment, stdin=stdin, stdout=stdout, stderr=stderr
        )
        return cls(process, cookie)

    @property
    def pid(self) -> int:
        """Of the tool."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The tool's exit code."""
        return self._process.returncode

    async def gone(self) -> None:
        """Wait until the tool has ended."""
        await self._process.wait()

    async def end(self, grace: float) -> bool:
        """End the tool and everything below it."""
        if psutil.pid_exists(self.pid):
            await asyncio.to_thread(sweep.end, self._cookie, self.pid, 0.0)
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        return False  # the sweep by cookie still finds those whose parents are gone

"""Kept: a tool started behind a keeper (Linux, macOS)."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from msp_bridge.processes import keeper

PATIENCE = 10.0  # s beyond the grace that a keeper may need to insist; then it is taken for hung


class Kept:
    """One tool, and the lifeline to its keeper: closing our end ends the tool, the keeper closes its end last."""

    def __init__(
        self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process, self._writer = process, writer
        self._watching = asyncio.create_task(self._watch(reader), name="keeper")
        self.returncode: int | None = None

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
        """Start the keeper, which starts `command`. `streams` are the descriptors of stdin, stdout and stderr."""
        ours, theirs = socket.socketpair()
        site = str(Path(psutil.__file__).parent.parent)
        argv = [
            sys.executable,
            "-I",
            "-S",
            keeper.__file__,
            str(theirs.fileno()),
            cookie,
            str(grace),
            site,
            "--",
            *command,
        ]
        stdin, stdout, stderr = streams
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=cwd,
                env=environment,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # a terminal's Ctrl-C is for the bridge, which ends its tools in order
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours)
        return cls(process, reader, writer)

    @property
    def pid(self) -> int:
        """Of the keeper."""
        return self._process.pid

    async def gone(self) -> None:
        """Wait until the keeper has ended."""
        await asyncio.shield(self._watching)

    async def end(self, grace: float) -> bool:
        """End the tool; whether the keeper saw to it that nothing is left."""
        with contextlib.suppress(OSError):  # the keeper is gone already
            self._writer.write_eof()
        done, _ = await asyncio.wait([self._watching], timeout=grace + PATIENCE)
        if not done:
            self._process.send_signal(signal.SIGKILL)
        orderly = await self._watching
        self._writer.close()
        await self._process.wait()
        return orderly

    async def _watch(self, reader: asyncio.StreamReader) -> bool:
        """Until the keeper closes its end: its last word, if it had one."""
        try:
            report = await reader.read()
        except ConnectionError:
            report = b""
        words = dict(line.split(" ", 1) for line in report.decode("utf-8", "replace").splitlines())
        self.returncode = int(words.get("status", -signal.SIGKILL))
        return "status" in words

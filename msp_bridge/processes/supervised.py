"""SupervisedProcess: the bridge's handle on one tool, behind a supervisor.

Its pipes are our own. asyncio's won't do: `Process.wait` hangs while a grandchild holds one
(python/cpython#119710), and a paused one can't be closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import psutil

from msp_bridge.errors import ToolError
from msp_bridge.processes import supervisor

CHUNK = 64 * 1024
MAX_LINE = 64 * 1024 * 1024  # as a message's body: a whole report may be one line
CONTINUE_EVERY_S = 0.25  # while we wait for a supervisor's end: somebody may have stopped it
HUNG_AFTER_S = 10.0  # beyond the grace; a machine may be busy, and the supervisor has its own limit
EXIT_TIMEOUT_S = 1.0  # between the supervisor's report and the exit of both


class PipeReader:
    """Reads what a child writes, only while somebody waits for it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._reader: asyncio.StreamReader | None = None
        self._transport: asyncio.ReadTransport | None = None

    @classmethod
    def create(cls, theirs: contextlib.ExitStack) -> tuple[Self, int]:
        """Return a reader, and the child's end of its pipe, which `theirs` closes."""
        ours, other = os.pipe()
        theirs.callback(os.close, other)
        return cls(ours), other

    async def connect(self) -> None:
        """Start reading."""
        loop = asyncio.get_running_loop()
        self._reader = asyncio.StreamReader(limit=CHUNK)
        protocol = asyncio.StreamReaderProtocol(self._reader)
        self._transport, _ = await loop.connect_read_pipe(lambda: protocol, os.fdopen(self._fd, "rb", buffering=0))

    async def read(self) -> bytes:
        """Some bytes, or b"" at the end."""
        assert self._reader is not None
        return await self._reader.read(CHUNK)

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """Read line by line, without the line ends; the last line may lack its own."""
        rest = bytearray()
        while data := await self.read():
            head, newline, tail = data.partition(b"\n")
            rest += head
            if not newline:
                if len(rest) > MAX_LINE:
                    raise ToolError(f"the tool wrote a line of more than {MAX_LINE} bytes")
                continue
            yield bytes(rest).removesuffix(b"\r")
            *whole, last = tail.split(b"\n")
            for line in whole:
                yield line.removesuffix(b"\r")
            rest = bytearray(last)
        if rest:
            yield bytes(rest)

    def close(self) -> None:
        """Stop reading; a caller that still waits sees the end."""
        if self._transport is None:
            os.close(self._fd)
            return
        self._transport.close()
        if self._reader is not None:
            self._reader.feed_eof()


class PipeWriter:
    """Writes what a child reads, no faster than the child reads it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._writer: asyncio.StreamWriter | None = None

    @classmethod
    def create(cls, theirs: contextlib.ExitStack) -> tuple[Self, int]:
        """Return a writer, and the child's end of its pipe, which `theirs` closes."""
        other, ours = os.pipe()
        theirs.callback(os.close, other)
        return cls(ours), other

    async def connect(self) -> None:
        """Start writing."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.connect_write_pipe(lambda: protocol, os.fdopen(self._fd, "wb", buffering=0))
        self._writer = asyncio.StreamWriter(transport, protocol, reader, loop)

    async def write(self, data: bytes) -> None:
        """Write `data`, and wait until the child keeps up. Raises ConnectionError when it no longer reads."""
        self.post(data)
        assert self._writer is not None
        await self._writer.drain()
        if self._writer.is_closing():  # meanwhile, by `close`: asyncio says nothing then
            raise ConnectionResetError("the pipe was closed")

    def post(self, data: bytes) -> None:
        """Write without waiting: what the child has not read yet is kept here, and dropped when it no longer reads."""
        assert self._writer is not None
        if not self._writer.is_closing():
            self._writer.write(data)

    def close(self) -> None:
        """Close the pipe: the child sees the end of its input."""
        if self._writer is None:
            os.close(self._fd)
        elif not self._writer.transport.is_closing():  # else the child has closed its end
            self._writer.transport.abort()  # what is still unwritten belongs to work that nobody wants any more


class SupervisedProcess:
    """One tool, and the lifeline to its supervisor: closing our end ends the tool, `status` on it is its end."""

    def __init__(
        self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process, self._reader, self._writer = process, reader, writer
        self._watching = asyncio.create_task(self._watch(), name="supervisor")
        self.returncode: int | None = None

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        run_id: str,
        grace: float,
        streams: tuple[int, int, int],
        *,
        pid_namespace: bool,
    ) -> SupervisedProcess:
        """Start a supervisor, which starts `command`. `streams` are the descriptors of stdin, stdout and stderr."""
        ours, theirs = socket.socketpair()
        site = str(Path(psutil.__file__).parent.parent)
        options = [str(theirs.fileno()), run_id, str(grace), site, str(int(pid_namespace))]
        stdin, stdout, stderr = streams
        try:
            process = await asyncio.create_subprocess_exec(
                *[sys.executable, "-I", "-S", "-c", supervisor.BOOT, *options, "--", *command],
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
        """The pid of the guard, the topmost process."""
        return self._process.pid

    async def gone(self) -> None:
        """Wait until the tool has ended, and everything that it started."""
        await asyncio.shield(self._watching)

    async def end(self, grace: float) -> bool:
        """End the tool. Returns whether the supervisor saw to it that nothing is left."""
        with contextlib.suppress(OSError):  # it is gone already
            self._writer.write_eof()
        await self._until(self._watching, grace + HUNG_AFTER_S)
        orderly = await self._watching
        await self._until(asyncio.ensure_future(self._reader.read()), EXIT_TIMEOUT_S)
        self._writer.close()
        await self._process.wait()
        return orderly

    async def _until(self, event: asyncio.Future[Any], seconds: float) -> None:
        """Wait for `event`; continue the guard and the supervisor meanwhile, and kill them after `seconds`.

        Their group can't be another one by now, since they hold the lifeline until they end, which is the event.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        while not event.done():
            late = asyncio.get_running_loop().time() >= deadline
            with contextlib.suppress(OSError):  # gone meanwhile
                os.killpg(self._process.pid, signal.SIGKILL if late else signal.SIGCONT)
            await asyncio.wait([event], timeout=CONTINUE_EVERY_S)

    async def _watch(self) -> bool:
        """Until the supervisor reports, or is gone without a report."""
        try:
            report = await self._reader.readline()
        except ConnectionError:
            report = b""
        word, _, status = report.decode("ascii", "replace").strip().partition(" ")
        self.returncode = int(status) if word == "status" else -signal.SIGKILL
        return word == "status"

"""PipeReader and PipeWriter: our ends of a child's pipes.

asyncio's own subprocess pipes won't do: `Process.wait` hangs while a grandchild holds one (python/cpython#119710), and
a paused one can't be closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator
from typing import Self

from msp_bridge.errors import ToolError

CHUNK = 64 * 1024
MAX_LINE = 64 * 1024 * 1024  # as a message's body: a whole report may be one line


class PipeReader:
    """Reads what a child writes, only while somebody waits for it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._reader: asyncio.StreamReader | None = None
        self._transport: asyncio.ReadTransport | None = None

    @classmethod
    def create(cls, theirs: contextlib.ExitStack) -> tuple[Self, int]:
        """A reader, and the end for the child, which `theirs` closes."""
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
        """Line by line, without the line ends; the last one may lack its own."""
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
        """Stop reading; whoever still waits sees the end."""
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
        """A writer, and the end for the child, which `theirs` closes."""
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
        """Returns when the child keeps up; raises ConnectionError when it no longer reads."""
        self.post(data)
        assert self._writer is not None
        await self._writer.drain()
        if self._writer.is_closing():  # meanwhile, by `close`: asyncio says nothing then
            raise ConnectionResetError("the pipe was closed")

    def post(self, data: bytes) -> None:
        """Returns at once: what the child doesn't read yet is kept here. Nothing happens when it no longer reads."""
        assert self._writer is not None
        if not self._writer.is_closing():
            self._writer.write(data)

    def close(self) -> None:
        """The child sees the end of its input."""
        if self._writer is None:
            os.close(self._fd)
        elif not self._writer.transport.is_closing():  # else the child has closed its end
            self._writer.transport.abort()  # what is still unwritten belongs to work that nobody wants any more

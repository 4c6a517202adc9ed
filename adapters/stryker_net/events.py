"""Events: Server-Sent Events over HTTP, as far as a local tool sends them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

LIMIT = 16 * 1024 * 1024  # bytes in a line: a mutant may be covered by thousands of tests


async def events_of(host: str, port: int) -> AsyncGenerator[tuple[str, str], None]:
    """Names and data. Raises OSError when there is no connection, and ValueError for what is no event stream.

    Back-pressure: a slow reader stops the sender, once the buffers of the connection are full.
    """
    reader, writer = await asyncio.open_connection(host, port, limit=LIMIT)
    try:
        # In version 1.0 an answer comes in one piece. .NET answers only to the host that it was told to listen to.
        request = f"GET / HTTP/1.0\r\nHost: {host}:{port}\r\nAccept: text/event-stream\r\n\r\n"
        writer.write(request.encode("ascii"))
        await writer.drain()
        chunked = await _head(reader)
        name, data = "", list[str]()
        async with contextlib.aclosing(_lines(reader, chunked=chunked)) as lines:
            async for line in lines:
                field, _, value = line.partition(":")
                if not line:
                    if name:
                        yield name, "\n".join(data)
                    name, data = "", []
                elif field == "event":
                    name = value.removeprefix(" ")
                elif field == "data":
                    data.append(value.removeprefix(" "))
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _head(reader: asyncio.StreamReader) -> bool:
    """Whether what follows comes in chunks."""
    status = await reader.readline()
    if status and status.split()[1:2] != [b"200"]:
        raise ValueError(f"it answered {status[:80]!r}")
    chunked = False
    while (line := await reader.readline()).strip():
        name, _, value = line.partition(b":")
        chunked = chunked or (name.strip().lower() == b"transfer-encoding" and b"chunked" in value.lower())
    return chunked


async def _lines(reader: asyncio.StreamReader, *, chunked: bool) -> AsyncGenerator[str, None]:
    if not chunked:
        while line := await reader.readline():
            yield line.decode("utf-8", "replace").rstrip("\r\n")
        return
    rest = b""
    while size := int((await reader.readline()).partition(b";")[0].strip() or b"0", 16):
        *lines, rest = (rest + (await _chunk(reader, size))).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace").rstrip("\r")


async def _chunk(reader: asyncio.StreamReader, size: int) -> bytes:
    try:
        return (await reader.readexactly(size + 2))[:size]
    except asyncio.IncompleteReadError as error:
        return error.partial

"""Frames: JSON-RPC messages on the stdout of a tool that also prints other things there."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncGenerator
from typing import Any

from msp_bridge.errors import ToolError
from msp_bridge.processes import ProcessTree

log = logging.getLogger(__name__)

HEADER = re.compile(rb"Content-Length: (\d{1,9})\r\n(?:Content-Type: [^\r\n]{1,100}\r\n)?\r\n")
LONGEST_HEADER = 192  # bytes
LONGEST_BODY = 64 * 1024 * 1024
REMEMBERED = 16 * 1024  # bytes of noise
Message = dict[str, Any]


def framed(message: Message) -> bytes:
    """The message as the tool reads it."""
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


class Frames:
    """What the tool called `tool` says. `noise` is the tail of what isn't a message: a log, or what a plugin prints."""

    def __init__(self, tree: ProcessTree, tool: str) -> None:
        self._tree, self._tool = tree, tool
        self._buffer = bytearray()
        self._noise = bytearray()

    @property
    def noise(self) -> str:
        """The tail of it, as text."""
        return self._noise.decode("utf-8", "replace")

    async def next(self) -> Message | None:
        """The next message; None when the tool says no more."""
        while True:
            header = HEADER.search(self._buffer)
            if header is None:
                self._skip(max(0, len(self._buffer) - LONGEST_HEADER))
                if not await self._more():
                    self._skip(len(self._buffer))
                    return None
                continue
            length = int(header[1])
            self._skip(header.start())
            begin = header.end() - header.start()
            if length > LONGEST_BODY:
                raise ToolError(f"{self._tool} announced a message of {length} bytes: run `msp-bridge doctor`")
            while len(self._buffer) < begin + length:
                if not await self._more():
                    self._skip(len(self._buffer))
                    return None
            body = bytes(self._buffer[begin : begin + length])
            try:
                message = json.loads(body)
            except ValueError:
                self._skip(begin)  # it only looked like one
                continue
            del self._buffer[: begin + length]
            if isinstance(message, dict):
                return message

    async def all(self) -> AsyncGenerator[Message, None]:
        """Until the tool says no more."""
        while (message := await self.next()) is not None:
            yield message

    async def _more(self) -> bool:
        data = await self._tree.read()
        self._buffer += data
        return bool(data)

    def _skip(self, count: int) -> None:
        if count:
            noise = bytes(self._buffer[:count])
            log.debug("stdout: %s", noise.decode("utf-8", "replace").rstrip())
            self._noise += noise
            del self._noise[:-REMEMBERED]
            del self._buffer[:count]

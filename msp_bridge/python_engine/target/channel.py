"""Channel: JSON lines over a pair of descriptors, either to the bridge or between the processes of this folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

CHUNK = 1 << 16
MARK = b"msp-bridge: json lines"  # comes before the first message: whatever was printed until then is no message

Message = dict[str, Any]

READY: Message = {"id": 0}  # the first answer, to no question: everything has been imported


class Channel:
    """Messages in, messages out. Not for several threads."""

    def __init__(self, reader: int, writer: int) -> None:
        self.reader, self.writer = reader, writer
        self._rest = b""

    @classmethod
    def to_bridge(cls) -> Channel:
        """The bridge's end. After this, the process and its children read nothing and print to stderr."""
        channel = cls(os.dup(0), os.dup(1))
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        channel._write(b"\n" + MARK + b"\n")
        return channel

    def send(self, message: Message) -> None:
        """Raises OSError when nobody reads any more."""
        self._write(json.dumps(message).encode() + b"\n")

    def receive(self) -> list[Message] | None:
        """The messages that have arrived, waiting for some bytes; None at the end."""
        data = os.read(self.reader, CHUNK)
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def messages(self) -> Iterator[Message]:
        """One after the other, until the end."""
        while (arrived := self.receive()) is not None:
            yield from arrived

    def close(self) -> None:
        """Let go of both descriptors."""
        for descriptor in {self.reader, self.writer}:
            os.close(descriptor)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.writer, rest) :]

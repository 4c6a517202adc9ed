"""Printed: what a command prints, bounded: the beginning, the end, and of the middle the lines that are wanted."""

from __future__ import annotations

import re

HEAD, MIDDLE, TAIL = 1 << 17, 1 << 17, 1 << 16  # bytes that are kept


class Printed:
    """The output of a command so far. Where that is too long, lines of the middle that match `wanted` are kept."""

    def __init__(self, wanted: str | None = None) -> None:
        """Keep nothing of the middle without `wanted`."""
        self._wanted = re.compile(wanted.encode()) if wanted else None
        self._head, self._middle, self._tail = bytearray(), bytearray(), bytearray()
        self._space = HEAD

    def add(self, data: bytes) -> None:
        """Take what comes next."""
        self._tail += data
        if len(self._tail) > TAIL:  # half of it goes, so that each line is looked at once
            end = self._tail.rfind(b"\n", 0, -TAIL // 2) + 1 or len(self._tail) - TAIL // 2
            self._leave(bytes(self._tail[:end]))
            del self._tail[:end]

    def _leave(self, lines: bytes) -> None:
        end = len(lines) if len(lines) <= self._space else lines.rfind(b"\n", 0, self._space) + 1
        self._head += lines[:end]
        self._space = self._space - end if end == len(lines) else 0
        if self._wanted:
            for line in lines[end:].splitlines(keepends=True):
                if self._wanted.match(line) and len(self._middle) + len(line) <= MIDDLE:
                    self._middle += line

    @property
    def text(self) -> str:
        """All that is kept, in its order."""
        return (self._head + self._middle + self._tail).decode("utf-8", "replace")

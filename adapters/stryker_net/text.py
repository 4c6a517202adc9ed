"""ToolText: a source as Stryker.NET counts in it, and the way from its positions to ours."""

from __future__ import annotations

import bisect
import re
from functools import cached_property

from attrs import frozen

from msp_bridge.adapter import Location, Position
from msp_bridge.source import BOM, SourceText, utf16_length

from .assumptions import LINE_ENDS

BREAK = re.compile(LINE_ENDS)


@frozen
class ToolText:
    """The text as the report has it, without a byte order mark.

    Roslyn's lines end at more characters than the protocol's; columns are 1-based UTF-16 code units in both.
    """

    text: str

    @classmethod
    def of(cls, text: str) -> ToolText:
        """`text` may begin with a byte order mark."""
        return cls(text.removeprefix(BOM))

    @cached_property
    def _source(self) -> SourceText:
        return SourceText(self.text)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(found.end() for found in BREAK.finditer(self.text))]

    @cached_property
    def _wide(self) -> list[int]:
        """Where the characters are that take two code units."""
        return [] if self.text.isascii() else [at for at, char in enumerate(self.text) if char > "\uffff"]

    def offset(self, position: Position) -> int:
        """The offset (0-based code points) of Stryker.NET's `position`; ValueError when the text has no such place."""
        if not 1 <= position.line <= len(self._line_starts) or position.column < 1:
            raise ValueError(f"there is no line {position.line} with a column {position.column}")
        start = self._line_starts[position.line - 1]
        end = self._line_starts[position.line] if position.line < len(self._line_starts) else len(self.text)
        line, wanted = self.text[start:end], position.column - 1
        at = wanted if line.isascii() else _code_points(line, wanted)
        if at > len(line):
            raise ValueError(f"line {position.line} has no column {position.column}")
        return start + at

    def location(self, start: int, end: int) -> Location:
        """The protocol's location of what is between two offsets."""
        return self._source.location(start, end)

    def utf16(self, offset: int) -> int:
        """The offset as .NET counts it."""
        return offset + bisect.bisect_left(self._wide, offset)


def _code_points(line: str, units: int) -> int:
    """How many characters of `line` take `units` code units."""
    taken = at = 0
    while taken < units and at < len(line):
        taken += utf16_length(line[at])
        at += 1
    if taken != units:
        raise ValueError(f"a line of {utf16_length(line)} code units has no place {units}")
    return at

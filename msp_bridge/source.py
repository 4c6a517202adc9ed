"""SourceText: a file's text, and the way between its offsets and the protocol's positions."""

from __future__ import annotations

import bisect
from functools import cached_property
from pathlib import Path

from attrs import frozen

from msp_bridge import reading
from msp_bridge.model import Location, Mutant, Position

BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"


@frozen
class SourceText:
    """Text with its line ends as they are in the file (`\\r\\n` stays two characters) and without a byte order mark.

    Lines end at `\\n`; lines and columns are 1-based; columns count UTF-16 code units (MSP 0.4, "Position and Location
    Semantics"; JavaScript string offsets). Offsets count code points, as Python's `str` does.
    """

    text: str

    @classmethod
    def read(cls, file: Path, encoding: str = "utf-8") -> SourceText:
        """The text of `file`; raises `OSError` and `UnicodeDecodeError`."""
        return cls(reading.text(file, encoding).removeprefix(BOM))

    @cached_property
    def _line_starts(self) -> list[int]:
        starts, at = [0], self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        return starts

    @property
    def line_count(self) -> int:
        """How many lines there are: one more than line ends."""
        return len(self._line_starts)

    def position(self, offset: int) -> Position:
        """The position of the character at `offset` (0-based code points)."""
        line = bisect.bisect_right(self._line_starts, offset)
        before = self.text[self._line_starts[line - 1] : offset]
        return Position(line, utf16_length(before) + 1)

    def location(self, start: int, end: int) -> Location:
        """The location of `text[start:end]`."""
        return Location(self.position(start), self.position(end))

    def offset(self, position: Position) -> int:
        """The offset (0-based code points) of `position`; raises ValueError when the text has no such place."""
        if not 1 <= position.line <= len(self._line_starts):
            raise ValueError(f"line {position.line} is not in a text of {len(self._line_starts)} lines")
        start = self._line_starts[position.line - 1]
        units, at = 1, start
        while units < position.column and at < len(self.text) and self.text[at] != "\n":
            units += 1 if self.text[at] < "\U00010000" else 2
            at += 1
        if units != position.column:
            raise ValueError(f"line {position.line} has no column {position.column}")
        return at

    def line_offsets(self, line: int) -> tuple[int, int]:
        """The offsets of the start and the end of line `line` (1-based), without its `\\n`; raises ValueError."""
        start = self.offset(Position(line, 1))
        end = self.text.find("\n", start)
        return start, len(self.text) if end < 0 else end

    def at(self, location: Location) -> str:
        """The text in `location`."""
        return self.text[self.offset(location.start) : self.offset(location.end)]

    def apply(self, mutant: Mutant) -> str:
        """The text with `mutant` in it."""
        start, end = self.offset(mutant.location.start), self.offset(mutant.location.end)
        return self.text[:start] + mutant.replacement + self.text[end:]


def utf16_length(text: str) -> int:
    """How many UTF-16 code units `text` takes."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2

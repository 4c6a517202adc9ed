"""Documents: the texts that a client has open, places in them by LSP's units, and which lines a change leaves alone."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Self

from attrs import define, field, frozen

from msp_bridge.dialects.lsp import types as lsp
from msp_bridge.model import Location, Position
from msp_bridge.source import SourceText

ENCODINGS = {"utf-8": 1, "utf-16": 2, "utf-32": 4}  # bytes of a unit
CODECS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
MAX_COMPARED = 2000  # lines in the middle of two texts that are compared line by line; else all of them have changed


@frozen
class Units:
    """Positions in units of `encoding`, 0-based, to and from the model's, which are 1-based and count UTF-16."""

    encoding: str = "utf-16"

    def offset(self, source: SourceText, place: lsp.Position) -> int:
        """The offset of `place`; what lies behind the end of a line or of the text is its end, as LSP says."""
        if place.line >= source.line_count:
            return len(source.text)
        start, end = source.line_offsets(place.line + 1)
        return start + self._index(source.text[start:end], place.character, is_last=end == len(source.text))

    def in_lines(self, lines: Sequence[str], place: lsp.Position) -> tuple[int, int]:
        """Compute `offset` in a text that is cut at its `\\n`: the 0-based line, and the index in it."""
        if place.line >= len(lines):
            return len(lines) - 1, len(lines[-1])
        return place.line, self._index(lines[place.line], place.character, is_last=place.line == len(lines) - 1)

    def _index(self, line: str, character: int, *, is_last: bool) -> int:
        line = line if is_last else line.removesuffix("\r")
        if line.isascii():
            return min(character, len(line))
        codec, width = CODECS[self.encoding], ENCODINGS[self.encoding]
        before = line.encode(codec, "surrogatepass")[: character * width]
        return len(before.decode(codec, "ignore"))

    def model(self, source: SourceText, place: lsp.Position) -> Position:
        """`place` as the model has it."""
        return source.position(self.offset(source, place))

    def location(self, source: SourceText, place: lsp.Range) -> Location:
        """The Range `place` as the model has it."""
        return Location(self.model(source, place.start), self.model(source, place.end))

    def range(self, source: SourceText | None, location: Location) -> dict[str, dict[str, int]]:
        """The Range of `location` on the wire; without `source`, all characters are taken for ASCII."""
        return {"start": self._wire(source, location.start), "end": self._wire(source, location.end)}

    def _wire(self, source: SourceText | None, position: Position) -> dict[str, int]:
        column = position.column - 1
        if source is not None and self.encoding != "utf-16" and position.line <= source.line_count:
            start, end = source.line_offsets(position.line)
            line = source.text[start:end]
            if not line.isascii():
                before = line.encode("utf-16-le", "surrogatepass")[: column * 2].decode("utf-16-le", "ignore")
                column = len(before.encode(CODECS[self.encoding], "surrogatepass")) // ENCODINGS[self.encoding]
        return {"line": position.line - 1, "character": column}


@frozen
class Hunk:
    """Lines (0-based, ends exclusive) of the text before that have become lines of the text after."""

    start: int
    end: int
    new_start: int
    new_end: int


@frozen
class Changed:
    """The differences between two texts, as hunks in their order."""

    hunks: Sequence[Hunk]
    _starts: Sequence[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_starts", [hunk.start for hunk in self.hunks])

    @classmethod
    def between(cls, before: str, after: str) -> Changed:
        """The hunks that lead from `before` to `after`: few lines, though not always the fewest."""
        if before == after:
            return cls(())
        old, new = before.split("\n"), after.split("\n")
        shorter = min(len(old), len(new))
        head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
        rest = shorter - head
        tail = next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)
        old, new = old[head : len(old) - tail], new[head : len(new) - tail]
        if not old or not new or max(len(old), len(new)) > MAX_COMPARED:
            return cls((Hunk(head, head + len(old), head, head + len(new)),))
        opcodes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        return cls(
            tuple(Hunk(head + a, head + b, head + c, head + d) for kind, a, b, c, d in opcodes if kind != "equal")
        )

    def shift(self, first: int, last: int) -> int | None:
        """By how many lines the lines `first` to `last` (1-based, inclusive) have moved; None when one has changed."""
        at = bisect.bisect_right(self._starts, last - 1)
        if at == 0:
            return 0
        before = self.hunks[at - 1]
        return before.new_end - before.end if before.end < first else None

    def moved(self, location: Location) -> Location | None:
        """Return the place of the text in `location` now; None when one of its lines has changed."""
        by = self.shift(location.start.line, last_line(location))
        return None if by is None else shifted(location, by)

    def moved_lines(self, lines: Iterable[int]) -> set[int]:
        """Return the numbers that the unchanged ones of `lines` have now."""
        return {line + by for line in lines if (by := self.shift(line, line)) is not None}

    @property
    def line_numbers(self) -> set[int]:
        """The lines that were inserted or replaced. Where lines were only deleted: the one before and the one after."""
        return {
            line + 1
            for hunk in self.hunks
            for line in (
                range(hunk.new_start, hunk.new_end)
                if hunk.new_start < hunk.new_end
                else range(max(0, hunk.new_start - 1), hunk.new_start + 1)
            )
        }


def _ranges(lines: Iterable[int]) -> list[Location]:
    """The lines as few locations, top down."""
    ranges: list[list[int]] = []
    for line in sorted(lines):
        if ranges and ranges[-1][1] == line:
            ranges[-1][1] = line + 1
        else:
            ranges.append([line, line + 1])
    return [Location(Position(first, 1), Position(end, 1)) for first, end in ranges]


@define(eq=False)
class Document:
    """A document that is open in the client.

    A save tests every line that was touched since a test of it has ended, by whichever edits: an edit that is undone
    does not bring back the findings that it dropped. Lines are 1-based, and those of the client's text now.
    """

    uri: str
    path: str  # relative to the folder, as of a mutant
    source: SourceText
    version: int | None = None  # the client's number of `source`
    _touched: set[int] = field(factory=set)  # and not tested since
    _in_test: set[int] = field(factory=set)  # touched before the last save, whose test has not ended

    @classmethod
    def opened(cls, uri: str, path: str, source: SourceText, version: int | None, saved: SourceText | None) -> Self:
        """The document with the client's text `source`; `saved` is the file's, if it can be read.

        They differ when the client has unsaved text from before, and when it has saved since, before the file was read.
        Nobody can tell which, so lines that differ count as touched.
        """
        touched = set() if saved is None else Changed.between(saved.text, source.text).line_numbers
        return cls(uri, path, source, version, touched)

    def begin_test(self) -> list[Location]:
        """The lines that a save tests: what was touched, also before a test that was cancelled or failed."""
        self._in_test |= self._touched
        self._touched = set()
        return _ranges(self._in_test)

    def end_test(self) -> None:
        """Note that the lines of `begin_test` have been tested."""
        self._in_test = set()

    def change(self, changes: Sequence[lsp.ContentChange], units: Units) -> Changed:
        """Make the client's changes, and return what they come to.

        Line by line: where an editor replaces 10,000 words at once, each is a change, and the text has a megabyte.
        """
        before = self.source.text
        lines = before.split("\n")
        for change in changes:
            if change.range is None:
                lines = change.text.split("\n")
                continue
            first, start = at = units.in_lines(lines, change.range.start)
            last, end = max(at, units.in_lines(lines, change.range.end))
            lines[first : last + 1] = f"{lines[first][:start]}{change.text}{lines[last][end:]}".split("\n")
        self.source = SourceText("\n".join(lines))
        changed = Changed.between(before, self.source.text)
        self._touched = changed.moved_lines(self._touched) | changed.line_numbers
        self._in_test = changed.moved_lines(self._in_test)
        return changed


def last_line(location: Location) -> int:
    """The last line of which some text is in `location`."""
    start, end = location.start, location.end
    return end.line - (end.column == 1 and end.line > start.line)


def shifted(location: Location, by: int) -> Location:
    """The location `by` lines further down."""
    start, end = location.start, location.end
    return Location(Position(start.line + by, start.column), Position(end.line + by, end.column)) if by else location

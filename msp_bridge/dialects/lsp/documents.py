"""Documents: the texts that a client has open, places in them by LSP's units, and which lines a change leaves alone."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from difflib import SequenceMatcher

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
        codec, width = CODECS[self.encoding], ENCODINGS[self.encoding]
        line = source.text[start:end]
        if end < len(source.text):
            line = line.removesuffix("\r")
        if line.isascii():
            return start + min(place.character, len(line))
        before = line.encode(codec, "surrogatepass")[: place.character * width]
        return start + len(before.decode(codec, "ignore"))

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
    """What lies between two texts, as hunks in their order."""

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
        """Where the text in `location` is now; None when one of its lines has changed."""
        by = self.shift(location.start.line, last_line(location))
        return None if by is None else shifted(location, by)

    @property
    def lines(self) -> list[Location]:
        """The lines that are new or other. Where lines are only gone: the one before and the one after."""
        return [
            _lines(hunk.new_start, hunk.new_end)
            if hunk.new_start < hunk.new_end
            else _lines(max(0, hunk.new_start - 1), hunk.new_start + 1)
            for hunk in self.hunks
        ]


def _lines(start: int, end: int) -> Location:
    return Location(Position(start + 1, 1), Position(end + 1, 1))


@define(eq=False)
class Document:
    """A document that is open in the client.

    A save tests the lines that differ from one of the texts in `tested`. After a test this is the text that was tested.
    A document is opened with two: the client's and the file's. They differ when the client has unsaved text from
    before, and when it has saved since, before we read the file; nobody can tell which. A text in which a finding was
    lost is added, as an edit that is undone does not bring the finding back.
    """

    uri: str
    path: str  # relative to the folder, as of a mutant
    source: SourceText
    tested: tuple[str, ...]
    version: int | None = None  # the client's number of `source`
    _lost: int = 0  # findings of this file, see `FileFindings.lost`

    def note_lost(self, lost: int) -> None:
        """Have a save test the lines that have lost findings, if `lost` of them (in all) are more than before."""
        if lost > self._lost:
            self._lost = lost
            self.tested += (self.source.text,)

    def untested(self) -> list[Location]:
        """The lines of the client's text that differ from one of the tested texts."""
        text = self.source.text
        return list(dict.fromkeys(lines for before in self.tested for lines in Changed.between(before, text).lines))

    def change(self, changes: Sequence[lsp.ContentChange], units: Units) -> Changed:
        """Make the client's changes, and return what they come to."""
        before = text = self.source.text
        source = self.source
        for change in changes:
            if change.range is None:
                text = change.text
            else:
                start, end = (units.offset(source, place) for place in (change.range.start, change.range.end))
                text = text[:start] + change.text + text[max(start, end) :]
            source = SourceText(text)
        self.source = source
        return Changed.between(before, text)


def last_line(location: Location) -> int:
    """The last line of which some text is in `location`."""
    start, end = location.start, location.end
    return end.line - (end.column == 1 and end.line > start.line)


def shifted(location: Location, by: int) -> Location:
    """The location `by` lines further down."""
    start, end = location.start, location.end
    return Location(Position(start.line + by, start.column), Position(end.line + by, end.column)) if by else location

"""Documents: the texts that a client has open, places in them by LSP's units, and which lines a change leaves alone."""

from collections.abc import Iterable, Sequence
from typing import Self

from attrs import define, field, frozen

from msp_bridge.dialects.lsp import types as lsp
from msp_bridge.model import Location, Position
from msp_bridge.source import Changed, SourceText

ENCODINGS = {"utf-8": 1, "utf-16": 2, "utf-32": 4}  # bytes of a unit
CODECS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}


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

"""Listing: cargo-mutants' JSON of a mutant, and the exact place that it means in a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from msp_bridge import reading
from msp_bridge.adapter import Location, Mutant
from msp_bridge.source import BOM, SourceText


@frozen
class Handle:
    """What testing a mutant needs."""

    name: str  # by which cargo-mutants selects it
    digest: str  # of the content of its file


@define
class Sources:
    """The files that mutants are of, each read once.

    cargo-mutants counts lines and columns from 1, columns in characters (Unicode scalar values), a byte order mark
    included. The text that it inserts is `replacement` and a comment that marks the change.
    """

    root: Path  # of the project
    workspace: Path  # what cargo-mutants' paths are relative to
    _lines: dict[str, _Lines | None] = field(factory=dict, init=False)

    def mutant(self, fields: Mapping[str, Any], name: str = "") -> Mutant | None:
        """The mutant, called `name` if the JSON has none. None if it lies outside, or is not of the file as it is."""
        path, lines = self._file(fields["file"])
        if lines is None:
            return None
        location = lines.location(fields["span"])
        if location is None:
            return None
        name = fields.get("name") or name
        handle, description = Handle(name, lines.digest), name.partition(": ")[2] or None
        return Mutant(path, fields["genre"], location, fields["replacement"], description, handle)

    def unchanged(self, mutants: Iterable[Mutant]) -> list[Mutant]:
        """Those whose files are as they were when these mutants were discovered."""
        found = ((mutant, self._lines_of(mutant.path)) for mutant in mutants)
        return [mutant for mutant, lines in found if lines is not None and lines.digest == mutant.handle.digest]

    def changed(self) -> set[str]:
        """The files that are no longer as they were when they were read."""
        read = {path: lines.digest for path, lines in self._lines.items() if lines is not None}
        return {path for path, digest in read.items() if reading.digest(self.root / path) != digest}

    def _file(self, name: str) -> tuple[str, _Lines | None]:
        file = self.workspace / name
        if not file.is_relative_to(self.root):
            return name, None
        path = file.relative_to(self.root).as_posix()
        return path, self._lines_of(path)

    def _lines_of(self, path: str) -> _Lines | None:
        if path not in self._lines:
            self._lines[path] = _Lines.read(self.root / path)
        return self._lines[path]


@define
class _Lines:
    """A file's text by its lines, for places that are counted in characters."""

    digest: str
    source: SourceText
    starts: list[int]  # offsets, in the text without a byte order mark
    mark: int  # how many characters the byte order mark adds to the first line

    @classmethod
    def read(cls, file: Path) -> _Lines | None:
        """None when it isn't there, or no UTF-8: no mutant can be of it any more."""
        try:
            content = reading.content(file)
            text = content.decode("utf-8")
        except (OSError, UnicodeDecodeError):
            return None
        source = SourceText(text.removeprefix(BOM))
        starts = [0]
        for line in source.text.split("\n"):
            starts.append(starts[-1] + len(line) + 1)
        return cls(reading.digest_of(content), source, starts, len(text) - len(source.text))

    def location(self, span: Mapping[str, Any]) -> Location | None:
        """The place of the JSON's span; None when the text has no such place."""
        start, end = self._offset(**span["start"]), self._offset(**span["end"])
        if start is None or end is None or end < start:
            return None
        return self.source.location(start, end)

    def _offset(self, line: int, column: int) -> int | None:
        if not 1 <= line < len(self.starts):
            return None
        offset = self.starts[line - 1] + column - 1 - (self.mark if line == 1 else 0)
        return offset if self.starts[line - 1] <= offset < self.starts[line] else None

"""Listing: cargo-mutants' JSON of a mutant, and the exact place that it means in a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

from msp_bridge import reading
from msp_bridge.adapter import Location, Mutant
from msp_bridge.source import BOM, SourceText


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
        """The mutant, with `name` as its handle; None when it is outside the project, or not of the file as it is."""
        path, lines = self._file(fields["file"])
        if lines is None:
            return None
        location = lines.location(fields["span"])
        if location is None:
            return None
        name = fields.get("name") or name
        description = name.partition(": ")[2] or None
        return Mutant(path, fields["genre"], location, fields["replacement"], description, handle=name)

    def _file(self, name: str) -> tuple[str, _Lines | None]:
        file = self.workspace / name
        if not file.is_relative_to(self.root):
            return name, None
        path = file.relative_to(self.root).as_posix()
        if path not in self._lines:
            self._lines[path] = _Lines.read(file)
        return path, self._lines[path]


@define
class _Lines:
    """A file's text by its lines, for places that are counted in characters."""

    source: SourceText
    starts: list[int]  # offsets, in the text without a byte order mark
    mark: int  # how many characters the byte order mark adds to the first line

    @classmethod
    def read(cls, file: Path) -> _Lines | None:
        """None when it isn't there, or no UTF-8: no mutant can be of it any more."""
        try:
            text = reading.text(file)
        except (OSError, UnicodeDecodeError):
            return None
        source = SourceText(text.removeprefix(BOM))
        starts = [0]
        for line in source.text.split("\n"):
            starts.append(starts[-1] + len(line) + 1)
        return cls(source, starts, len(text) - len(source.text))

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

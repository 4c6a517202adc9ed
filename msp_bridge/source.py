"""A file's text: its offsets and the protocol's positions, changes that are shown as a diff, and lines that moved.

An `Edit` is proposed and shown, and never written. A mutant is one, and so is the comment by which a tool leaves a
mutant out. Front ends show both; adapters make the second (`adapter.IgnoresMutants`).
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path

from attrs import field, frozen

from msp_bridge import reading
from msp_bridge.model import Location, Mutant, Position

BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"
MAX_COMPARED = 2000  # lines in the middle of two texts that are compared line by line; else all of them have changed
CONTEXT = 3  # lines around a change, as git and diff show them
LINE = re.compile(r"[^\n]*\n|[^\n]+")
LINE_END = re.compile("\n")


@frozen
class SourceText:
    """Text with its line ends as they are in the file (`\\r\\n` stays two characters) and without a byte order mark.

    Lines end at `\\n`, or at `line_end`, as for a tool that sees more line ends; lines and columns are 1-based; columns
    count UTF-16 code units (MSP 0.4, "Position and Location Semantics"; JavaScript string offsets). Offsets count code
    points, as Python's `str` does.
    """

    text: str
    line_end: re.Pattern[str] = LINE_END

    @classmethod
    def read(cls, file: Path, encoding: str = "utf-8") -> SourceText:
        """The text of `file`; raises `OSError` and `UnicodeDecodeError`."""
        return cls(reading.text(file, encoding).removeprefix(BOM))

    @classmethod
    def read_or_none(cls, file: Path) -> SourceText | None:
        """The text of `file`; None where it can't be read, or is not UTF-8."""
        try:
            return cls.read(file)
        except (OSError, ValueError):
            return None

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(found.end() for found in self.line_end.finditer(self.text))]

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
        units, at, end = 1, self._line_starts[position.line - 1], len(self.text)
        if position.line < len(self._line_starts):
            end = self._line_starts[position.line] - 1
        while units < position.column and at < end:
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

    def replaced(self, location: Location, text: str) -> str:
        """The text with `text` in `location`; raises ValueError when it has no such place."""
        start, end = self.offset(location.start), self.offset(location.end)
        return self.text[:start] + text + self.text[end:]

    def apply(self, mutant: Mutant) -> str:
        """The text with `mutant` in it."""
        return self.replaced(mutant.location, mutant.replacement)


def utf16_length(text: str) -> int:
    """How many UTF-16 code units `text` takes."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


@frozen
class Edit:
    """The text in `location` of the file `path` becomes `text`. An insertion has an empty location."""

    path: str  # as of a mutant
    location: Location
    text: str
    effect: str  # what the tool leaves out then, such as "every mutant that begins in this line"

    def apply(self, source: SourceText) -> str:
        """The text with the edit made; raises ValueError when it has no such location."""
        return source.replaced(self.location, self.text)


def above_line(path: str, source: SourceText, line: int, comment: str, effect: str) -> Edit:
    """Adds a line with `comment` above the line `line` (1-based), indented like it, with the line ends of the file."""
    start, end = source.line_offsets(line)
    text = source.text[start:end]
    line_end = "\r\n" if text.endswith("\r") else "\n"
    text = text.removesuffix("\r")
    indentation = text[: len(text) - len(text.lstrip())]
    return Edit(path, source.location(start, start), f"{indentation}{comment}{line_end}", effect)


def in_comment(reason: str, before: str) -> str:
    """`before` and `reason` as they can stand in a comment that ends with its line; "" without a reason."""
    words = "".join(character if character.isprintable() else " " for character in reason).split()
    return f"{before}{' '.join(words)}" if words else ""


def mutant_diff(source: SourceText | None, mutant: Mutant) -> str:
    """The change of `mutant` in its file, which holds `source`, as a unified diff; "" where that has no such place."""
    try:
        return "" if source is None else unified_diff(mutant.path, source.text, source.apply(mutant))
    except ValueError:
        return ""


def edit_diff(source: SourceText, edit: Edit) -> str:
    """The change of `edit` in its file, which holds `source`, as a unified diff. Raises ValueError."""
    return unified_diff(edit.path, source.text, edit.apply(source))


def unified_diff(path: str, before: str, after: str) -> str:
    """The change from `before` to `after` as `patch -p1` and `git apply` take it; "" when there is none.

    Lines end at `\\n`, and a `\\r` before it is part of the line. What both texts begin or end with costs little.
    """
    if before == after:
        return ""
    old, new = LINE.findall(before), LINE.findall(after)
    head, tail = _common(old, new)
    skipped, tail = max(0, head - CONTEXT), max(0, tail - CONTEXT)
    hunks = _hunks(old[skipped : len(old) - tail], new[skipped : len(new) - tail], skipped)
    return f"--- a/{path}\n+++ b/{path}\n{''.join(hunks)}"


def _common(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many lines both begin with, and how many others both end with."""
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    rest = shorter - head
    return head, next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)


def _hunks(old: Sequence[str], new: Sequence[str], skipped: int) -> Iterator[str]:
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2], skipped)} +{_range(first[3], last[4], skipped)} @@\n"
        for kind, start, end, new_start, new_end in group:
            if kind == "equal":
                yield from (_line(" ", line) for line in old[start:end])
            else:
                yield from (_line("-", line) for line in old[start:end])
                yield from (_line("+", line) for line in new[new_start:new_end])


def _range(start: int, end: int, skipped: int) -> str:
    """The first line (1-based) and how many there are; the line before where there is none."""
    count = end - start
    return f"{start + skipped + (count > 0)},{count}"


def _line(sign: str, line: str) -> str:
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"


def as_discovered(
    root: Path, mutants: Iterable[Mutant], digest: Callable[[Mutant], object] = lambda mutant: mutant.handle.digest
) -> list[Mutant]:
    """The mutants whose file below `root` has the `digest` (`reading.digest`) that it was discovered with. Blocks."""
    found = list(mutants)
    now = {path: reading.digest(root / path) for path in {mutant.path for mutant in found}}
    return [mutant for mutant in found if digest(mutant) == now[mutant.path]]


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
        head, tail = _common(old, new)
        old, new = old[head : len(old) - tail], new[head : len(new) - tail]
        if not old or not new or max(len(old), len(new)) > MAX_COMPARED:
            return cls((Hunk(head, head + len(old), head, head + len(new)),))
        opcodes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        return cls(
            tuple(Hunk(head + a, head + b, head + c, head + d) for kind, a, b, c, d in opcodes if kind != "equal")
        )

    def shift(self, first: int, last: int) -> int | None:
        """The number of lines by which `first` to `last` (1-based, inclusive) have moved; None when one has changed."""
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


def last_line(location: Location) -> int:
    """The last line of which some text is in `location`."""
    start, end = location.start, location.end
    return end.line - (end.column == 1 and end.line > start.line)


def shifted(location: Location, by: int) -> Location:
    """The location `by` lines further down."""
    start, end = location.start, location.end
    return Location(Position(start.line + by, start.column), Position(end.line + by, end.column)) if by else location

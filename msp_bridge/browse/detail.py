"""The texts of one mutant: its source with the change in place, and what is known of its result."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from attrs import frozen
from rich.text import Text

from msp_bridge.reports.kept import LastResult
from msp_bridge.reports.results import lines_of
from msp_bridge.reports.terminal import SIGNS, evidence, missed
from msp_bridge.source import CONTEXT
from msp_bridge.text import visible

STALE = "stale: its lines have changed since; this is the text before"


@frozen
class SourceLine:
    """A line of a file: removed (`-`), added (`+`) or as it is (a blank)."""

    number: int  # 1-based; an added line has that of the line which it replaces
    sign: str
    text: str

    def styled(self, width: int) -> Text:
        """The line after its number, which takes `width` columns."""
        number = "" if self.sign == "+" else str(self.number)
        style = SIGNS.get(self.sign, "")
        return Text(f"{self.sign} {number:>{width}}  {visible(self.text).expandtabs()}", style=style)


@frozen
class ChangedSource:
    """The whole source of a mutant, with its change: the lines `first` to `end` (0-based, exclusive) are - or +."""

    _before: Sequence[str]
    _after: Sequence[str]
    first: int
    _old_end: int  # of the removed lines, after which the added ones stand
    end: int

    @classmethod
    def of(cls, last: LastResult) -> ChangedSource:
        """The text as it is now, or that of before when the mutant is stale."""
        before = lines_of(last.source.text.removesuffix("\n"))
        try:
            after = lines_of(last.source.apply(last.mutant).removesuffix("\n"))
        except ValueError:  # it is not the text that the mutant was found in
            after = before
        head = _same(before, after)
        tail = _same(before[head:][::-1], after[head:][::-1])
        old_end = len(before) - tail
        return cls(before, after, head, old_end, old_end + len(after) - tail - head)

    def lines(self, context: int | None = None) -> list[SourceLine]:
        """The change with so many lines before and after it; None: with all."""
        count = len(self._before) + self.end - self._old_end
        first, end = (0, count) if context is None else (max(0, self.first - context), min(count, self.end + context))
        return [self._line(at) for at in range(first, end)]

    def _line(self, at: int) -> SourceLine:
        removed, added = self._old_end - self.first, self.end - self._old_end
        if at < self._old_end:
            return SourceLine(at + 1, "-" if at >= self.first else " ", self._before[at])
        if at < self.end:
            return SourceLine(self.first + 1, "+", self._after[at - removed])
        return SourceLine(at - added + 1, " ", self._before[at - added])

    @property
    def number_width(self) -> int:
        """Columns that the numbers take."""
        return len(str(len(self._before)))


def detail(root: Path, last: LastResult) -> Text:
    """The mutant with its place, its change, its tests, and why it has its status."""
    text = missed(root, last.result, None, f"  {last.mutant.id}")
    if last.stale:
        text.append(f"{STALE}\n", style="yellow")
    source = ChangedSource.of(last)
    for line in source.lines(CONTEXT):
        text.append_text(line.styled(source.number_width)).append("\n")
    return text.append_text(evidence(last.result))


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))

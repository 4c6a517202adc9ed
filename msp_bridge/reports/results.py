"""What every report says of results: the mutation score, and the lines that a mutant changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from attrs import define, field, frozen

from msp_bridge.model import Mutant, Result, Status
from msp_bridge.source import SourceText

MAX_LINES = 12  # of each side: the beginning of a long replacement is enough to recognise it


@define
class Score:
    """Counts results as they come (mutation-testing-elements, "Mutant states and metrics")."""

    counts: Counter[Status] = field(factory=Counter)
    reused: int = 0  # of them, from an earlier run

    @classmethod
    def of(cls, results: Iterable[Result]) -> Score:
        """The score of `results`."""
        return cls(Counter(result.status for result in results))

    def add(self, result: Result) -> None:
        """Count one more."""
        self.counts[result.status] += 1
        self.reused += result.reused

    @property
    def detected(self) -> int:
        """Mutants that the tests noticed."""
        return sum(count for status, count in self.counts.items() if status.detected)

    @property
    def undetected(self) -> int:
        """Mutants that the tests missed."""
        return sum(count for status, count in self.counts.items() if status.undetected)

    @property
    def percent(self) -> float | None:
        """Detected of detected and undetected; None when there are neither. Errors and ignored mutants don't count."""
        tested = self.detected + self.undetected
        return 100 * self.detected / tested if tested else None


@frozen
class Diff:
    """Whole lines, without their ends."""

    before: tuple[str, ...]
    after: tuple[str, ...]

    @classmethod
    def of(cls, source: SourceText, mutant: Mutant) -> Diff:
        """The lines of `source` that `mutant` touches; raises ValueError when the source has changed since."""
        start, end = source.offset(mutant.location.start), source.offset(mutant.location.end)
        text, replacement = source.text, mutant.replacement
        if text[start:end].endswith("\n") and replacement.endswith("\n"):
            end, replacement = end - 1, replacement[:-1]  # whole lines by whole lines: the next one isn't touched
        first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
        last = len(text) if last < 0 else last
        return cls(_lines(text[first:last]), _lines(text[first:start] + replacement + text[end:last]))

    def lines(self) -> Iterator[tuple[str, str]]:
        """Pairs of sign (`-`, `+`, or a blank) and line; lines that both sides begin or end with are left out."""
        before, after = list(self.before), list(self.after)
        while before and after and before[0] == after[0]:
            del before[0], after[0]
        while before and after and before[-1] == after[-1]:
            del before[-1], after[-1]
        for sign, side in (("-", before), ("+", after)):
            for line in side[:MAX_LINES]:
                yield sign, line
            if len(side) > MAX_LINES:
                yield " ", f"… {len(side) - MAX_LINES} more lines"


def replacement_of(mutant: Mutant, source: SourceText | None) -> str:
    """The replacement in one line; of a mutant that deletes, what it deletes. `source` is the file, if it is known."""
    if (replacement := " ".join(mutant.replacement.split())) or source is None:
        return replacement
    try:
        return f"(deletes {' '.join(source.at(mutant.location).split())})"
    except ValueError:  # the source has changed since
        return ""


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.rstrip("\r") for line in text.split("\n"))

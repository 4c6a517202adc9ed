"""Results as every report shows them: the score, the lines that a mutant changes, and its content without its line."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from attrs import define, field, frozen

from msp_bridge.model import Mutant, Result, Status
from msp_bridge.source import SourceText
from msp_bridge.text import first_of

ACCEPTED_REASON = "accepted: "  # begins the reason of a survivor that is accepted, which is Ignored then
MAX_LINES = 12  # of each side: the beginning of a long replacement is enough to recognise it


@define
class Score:
    """Counts results as they come (mutation-testing-elements, "Mutant states and metrics")."""

    counts: Counter[Status] = field(factory=Counter)
    reused: int = 0  # of them, from an earlier run
    accepted: int = 0  # of the Ignored ones: survivors (`reports.accepted`)

    @classmethod
    def of(cls, results: Iterable[Result]) -> Score:
        """The score of `results`."""
        score = cls()
        for result in results:
            score.add(result)
        return score

    def add(self, result: Result) -> None:
        """Count one more."""
        self.counts[result.status] += 1
        self.reused += result.reused
        self.accepted += is_accepted(result)

    @property
    def detected(self) -> int:
        """Count the mutants that are Killed or Timeout."""
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

    @property
    def text(self) -> str:
        """The score, such as `83.7 %`; `-` when there is none."""
        return "-" if self.percent is None else f"{self.percent:.1f} %"


def by_file(results: Iterable[Result]) -> dict[str, Score]:
    """The score of each file, in the order in which they come."""
    scores: dict[str, Score] = {}
    for result in results:
        scores.setdefault(result.mutant.path, Score()).add(result)
    return scores


def worst_first(results: Iterable[Result]) -> list[tuple[str, Score]]:
    """The score of each file; the file in which most is missed comes first."""
    return sorted(by_file(results).items(), key=lambda each: (-each[1].undetected, each[0]))


def is_accepted(result: Result) -> bool:
    """Whether it is a survivor that is accepted."""
    return result.status is Status.IGNORED and (result.status_reason or "").startswith(ACCEPTED_REASON)


def most_telling(results: Iterable[Result]) -> list[Result]:
    """Survivors, one for each line first, since the others of a line say much the same.

    Survived goes before NoCoverage, and code that more tests run goes first: there a test lacks an assertion, which is
    sooner found than a test that is missing.
    """
    missed = [result for result in results if result.status.undetected]
    missed.sort(
        key=lambda result: (result.status is not Status.SURVIVED, -len(result.covered_by or ()), place(result.mutant))
    )
    lines: set[tuple[str, int]] = set()
    first: list[Result] = []
    others: list[Result] = []
    for result in missed:
        line = (result.mutant.path, result.mutant.location.start.line)
        (others if line in lines else first).append(result)
        lines.add(line)
    return first + others


def place(mutant: Mutant) -> tuple[object, ...]:
    """Sorts mutants by file and position, in the same order each time."""
    return mutant.path, mutant.location.start, mutant.location.end, mutant.mutator, mutant.replacement


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
        return cls(lines_of(text[first:last]), lines_of(text[first:start] + replacement + text[end:last]))

    def lines(self) -> Iterator[tuple[str, str]]:
        """Pairs of sign (`-`, `+`, or a blank) and line; lines that both sides begin or end with are left out."""
        before, after = list(self.before), list(self.after)
        while before and after and before[0] == after[0]:
            del before[0], after[0]
        while before and after and before[-1] == after[-1]:
            del before[-1], after[-1]
        for sign, side in (("-", before), ("+", after)):
            for at, line in enumerate(first_of(side, MAX_LINES, more="… {} more lines")):
                yield sign if at < MAX_LINES else " ", line


def changed_lines(source: SourceText | None, mutant: Mutant) -> Sequence[tuple[str, str]]:
    """The lines of the `Diff`; none where the source is not known, or has changed since."""
    try:
        return () if source is None else tuple(Diff.of(source, mutant).lines())
    except ValueError:
        return ()


def replacement_of(mutant: Mutant, source: SourceText | None) -> str:
    """The replacement in one line; of a mutant that deletes, what it deletes. `source` is the file, if it is known."""
    if (replacement := " ".join(mutant.replacement.split())) or source is None:
        return replacement
    try:
        return f"(deletes {' '.join(source.at(mutant.location).split())})"
    except ValueError:  # the source has changed since
        return ""


def lines_of(text: str) -> tuple[str, ...]:
    """Split `text` at `\\n`, as `SourceText` counts lines; without line ends."""
    return tuple(line.rstrip("\r") for line in text.split("\n"))


@frozen(order=True)
class MutantContent:
    """The lines that a mutant changes, before and after, without indentation; the mutator's name is not part of it.

    `occurrence` counts from 1 the places of the file that have the same lines before.
    """

    path: str
    before: str
    after: str
    occurrence: int = 1


@define(eq=False)
class ContentIndex:
    """Tells the content of mutants of one text."""

    _source: SourceText
    _stripped: list[str] = field(init=False)
    _places: dict[str, list[int]] = field(init=False)  # 0-based lines with the same text

    def __attrs_post_init__(self) -> None:
        self._stripped = [line.strip() for line in self._source.text.split("\n")]
        self._places = defaultdict(list)
        for number, line in enumerate(self._stripped):
            self._places[line].append(number)

    def of(self, mutant: Mutant) -> MutantContent | None:
        """The content of `mutant`; None when the text has no such place."""
        try:
            diff = Diff.of(self._source, mutant)
        except ValueError:
            return None
        before, after = ([line.strip() for line in side] for side in (diff.before, diff.after))
        at = mutant.location.start.line - 1
        earlier = [line for line in self._same(before) if line < at]
        return MutantContent(mutant.path, "\n".join(before), "\n".join(after), len(earlier) + 1)

    def has(self, content: MutantContent) -> bool:
        """Whether the text has the lines of `content`, as often as it says."""
        return len(self._same(content.before.split("\n"))) >= content.occurrence

    def _same(self, lines: list[str]) -> list[int]:
        first = self._places.get(lines[0], [])
        return first if len(lines) == 1 else [at for at in first if self._stripped[at : at + len(lines)] == lines]

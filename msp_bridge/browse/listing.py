"""Listing: which mutants are shown, in the order in which a user works through them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cached_property

from attrs import frozen

from msp_bridge.model import Status
from msp_bridge.reports.kept import LastResult
from msp_bridge.reports.results import Score, worst_first

MISSED = frozenset(status for status in Status if status.undetected)
RANK = {status: (not status.undetected, at) for at, status in enumerate(Status)}  # what the tests miss comes first


def status_of(last: LastResult) -> Status:
    """The status; cheaper than `last.result`, which is made anew each time."""
    return last.entry.result.status


@frozen
class Filter:
    """Which mutants are shown: of these statuses (None: of each), and with `text` somewhere; case doesn't count."""

    statuses: frozenset[Status] | None = MISSED
    text: str = ""

    @property
    def name(self) -> str:
        """The statuses in words."""
        if self.statuses is None:
            return "all"
        if self.statuses == MISSED:
            return "missed"
        return ", ".join(status.value for status in Status if status in self.statuses)


@frozen
class FileResults:
    """A file with the score of all its mutants, and the mutants that are shown."""

    path: str
    score: Score
    shown: tuple[LastResult, ...]


@frozen
class Listing:
    """The last results of a project, or of a part of it."""

    results: Sequence[LastResult]

    @cached_property
    def counts(self) -> Counter[Status]:
        """How many mutants have each status."""
        return self.score.counts

    @cached_property
    def score(self) -> Score:
        """The score of all."""
        return Score.of(last.entry.result for last in self.results)

    def files(self, filter: Filter, also: Collection[str] = ()) -> list[FileResults]:
        """The files in which most is missed first; of each, what `filter` takes, and mutants whose id is in `also`."""
        found = (
            FileResults(path, score, tuple(last for last, text in mutants if _takes(filter, last, text, also)))
            for path, score, mutants in self._ordered
        )
        return [file for file in found if file.shown]

    @cached_property
    def _ordered(self) -> list[tuple[str, Score, list[tuple[LastResult, str]]]]:
        """Each file with its mutants in their order, and what is searched first in each of them."""
        mutants: dict[str, list[tuple[LastResult, str]]] = {}
        for last in sorted(self.results, key=_order):
            text = f"{last.mutant.path}\n{last.mutant.mutator}\n{last.mutant.id}\n{last.entry.diff_text}".casefold()
            mutants.setdefault(last.mutant.path, []).append((last, text))
        scores = worst_first(last.entry.result for last in self.results)
        return [(path, score, mutants[path]) for path, score in scores]


def _takes(filter: Filter, last: LastResult, text: str, also: Collection[str]) -> bool:
    if last.mutant.id in also:
        return True
    if filter.statuses is not None and status_of(last) not in filter.statuses:
        return False
    wanted, result = filter.text.casefold(), last.entry.result
    if wanted in text:
        return True
    return any(wanted in test.casefold() for test in (*(result.killed_by or ()), *(result.covered_by or ())))


def _order(last: LastResult) -> tuple[object, ...]:
    return RANK[status_of(last)], last.mutant.location.start, last.mutant.mutator, last.mutant.replacement

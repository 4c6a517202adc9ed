"""Listing: which mutants are shown, in the order in which a user works through them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from attrs import evolve, field, frozen

from msp_bridge.model import Status
from msp_bridge.reports.kept import LastResult
from msp_bridge.reports.results import Score, by_file, worst_first

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
    """The last results of a project, or of a part of it.

    What is tested again keeps its place, and is still shown, whatever its status is now: mutants are chosen and ordered
    by the statuses that were `seen` at first, by id. So no row goes away from under the user's cursor.
    """

    results: Sequence[LastResult]
    seen: Mapping[str, Status] = field(factory=dict)

    @cached_property
    def score(self) -> Score:
        """The score of all."""
        return Score.of(last.entry.result for last in self.results)

    def followed_by(self, results: Sequence[LastResult]) -> Listing:
        """Newer results, in the order of these."""
        return Listing(results, {**{last.mutant.id: status_of(last) for last in self.results}, **self.seen})

    def with_results(self, results: Mapping[str, LastResult]) -> Listing:
        """The same with some newer results, by id."""
        return self.followed_by(list({**{last.mutant.id: last for last in self.results}, **results}.values()))

    def files(self, filter: Filter) -> list[FileResults]:
        """The files in which most is missed first; of each, what `filter` takes."""
        found = (
            FileResults(path, score, tuple(last for last, text in mutants if self._takes(filter, last, text)))
            for path, score, mutants in self._ordered
        )
        return [file for file in found if file.shown]

    @cached_property
    def _ordered(self) -> list[tuple[str, Score, list[tuple[LastResult, str]]]]:
        """Each file with its mutants in their order, and what is searched first in each of them."""
        mutants: dict[str, list[tuple[LastResult, str]]] = {}
        for last in sorted(self.results, key=self._order):
            text = f"{last.mutant.path}\n{last.mutant.mutator}\n{last.mutant.id}\n{last.entry.diff_text}".casefold()
            mutants.setdefault(last.mutant.path, []).append((last, text))
        scores = by_file(last.entry.result for last in self.results)
        order = worst_first(evolve(last.entry.result, status=self._seen(last)) for last in self.results)
        return [(path, scores[path], mutants[path]) for path, _ in order]

    def _seen(self, last: LastResult) -> Status:
        return self.seen.get(last.mutant.id) or status_of(last)

    def _order(self, last: LastResult) -> tuple[object, ...]:
        mutant = last.mutant
        return RANK[self._seen(last)], mutant.location.start, mutant.mutator, mutant.replacement

    def _takes(self, filter: Filter, last: LastResult, text: str) -> bool:
        if filter.statuses is not None and filter.statuses.isdisjoint((status_of(last), self._seen(last))):
            return False
        wanted, result = filter.text.casefold(), last.entry.result
        if wanted in text:
            return True
        return any(wanted in test.casefold() for test in (*(result.killed_by or ()), *(result.covered_by or ())))

"""Score: how many of the mutants that could be tested the tests have noticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from attrs import define, field

from msp_bridge.model import Result, Status


@define
class Score:
    """Counts results as they come (mutation-testing-elements, "Mutant states and metrics")."""

    counts: Counter[Status] = field(factory=Counter)

    @classmethod
    def of(cls, results: Iterable[Result]) -> Score:
        """The score of `results`."""
        return cls(Counter(result.status for result in results))

    def add(self, result: Result) -> None:
        """Count one more."""
        self.counts[result.status] += 1

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

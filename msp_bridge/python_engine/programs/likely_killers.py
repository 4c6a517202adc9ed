"""The tests that a fresh process runs first: tests that are likely to kill a mutant of code that runs at import.

Theory of operation
-------------------
The problem: which tests such a mutant reaches cannot be measured. So the whole suite in its order decides, in a process
that imports everything with the mutant, and the killer may be the last of it.

Likely to kill it are, in this order: the last killer of the mutants of the same function, tests that run its lines
after the import as well, the last killers of the mutants of the same file, and the other tests of all these functions:
the rows of a parametrized test. The first of them runs always, the others within a `SHARE` of the time of the suite.
They run in a process of their own: in that of the suite they could change what the others find. A test of them that
fails is confirmed by a run alone, but for the first, which nothing ran before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from .baseline import Baseline
from .mutant_jobs import ScheduledMutant

SHARE = 0.2


class LikelyKillers:
    """The tests of one baseline: `numbers` are their indexes, by name."""

    def __init__(self, numbers: Mapping[str, int]) -> None:
        self._numbers, self._rows = numbers, defaultdict[str, list[int]](list)
        for name, number in numbers.items():
            self._rows[_function(name)].append(number)

    def last(self, baseline: Baseline, mutant: ScheduledMutant) -> int | None:
        """The last killer of the mutants of the same function."""
        return self._numbers.get(baseline.killers.get(mutant.place, ""))

    def of(self, baseline: Baseline, mutant: ScheduledMutant, is_useless: Callable[[int], bool]) -> list[int]:
        """Return the tests to run, the likeliest first, without useless ones."""
        left_s, chosen = SHARE * baseline.total, list[int]()
        for test in dict.fromkeys(self._ordered(baseline, mutant)):
            if is_useless(test):
                continue
            left_s -= baseline.durations[test]
            if chosen and left_s < 0:
                break
            chosen.append(test)
        return chosen

    def _ordered(self, baseline: Baseline, mutant: ScheduledMutant) -> Iterator[int]:
        last = self.last(baseline, mutant)
        first = [*([] if last is None else [last]), *baseline.covering(mutant.path, mutant.change.lines)]
        killers = [test for place, test in baseline.killers.items() if place.startswith(f"{mutant.path}:")]
        first += [self._numbers[test] for test in reversed(killers) if test in self._numbers]
        yield from first
        for function in dict.fromkeys(_function(baseline.tests[test]) for test in first):
            yield from self._rows[function]


def _function(test: str) -> str:
    return test.partition("[")[0]

"""The tests that a fresh process runs first: tests that are likely to kill a mutant of code that runs at import.

Theory of operation
-------------------
The problem: which tests such a mutant reaches cannot be measured. So the whole suite in its order decides, in a process
that imports everything with the mutant, and the killer may be the last of it.

Likely to kill it are, in this order: the last killer of the mutants of the same function, tests that run its lines
after the import as well, the last killers of the mutants of the same file, and the other tests of all these functions:
the rows of a parametrized test. The first of them runs always, the others within a `SHARE` of the time that the suite
and its collection take, in which a further test file counts as one of all that are collected.

They run in a process of their own: in that of the suite they could change what the others find. It collects their files
only, and in these the tests that it runs: the collection of all tests takes longer than most mutants. A test that fails
there is confirmed by a run alone, but for the first, which nothing ran before. Its control collects the same files, as
one of them may need what another sets up when it is imported. Where the process ends before its tests, as when a file
can't be imported, that is a kill only if a control has shown that these files can be collected; else the suite decides,
and so it does where none of these tests is there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from .baseline import Baseline, file_of, function_of
from .mutant_jobs import ScheduledMutant

SHARE = 0.2
AT_MOST = 100  # a parametrized test may have thousands of rows


class LikelyKillers:
    """The tests of one baseline: `numbers` are their indexes, by name. `can_be_alone`: see `KillConfirmation`."""

    def __init__(self, numbers: Mapping[str, int], can_be_alone: Callable[[int], bool]) -> None:
        self._numbers, self._rows = numbers, defaultdict[str, list[int]](list)
        self._can_be_alone = can_be_alone
        for name, number in numbers.items():
            self._rows[function_of(name)].append(number)
        self._files = len(set(map(file_of, numbers)))

    def last(self, baseline: Baseline, mutant: ScheduledMutant) -> int | None:
        """The last killer of the mutants of the same function."""
        return self._numbers.get(baseline.killers.get(mutant.place, ""))

    def of(self, baseline: Baseline, mutant: ScheduledMutant, likely: Sequence[int] = ()) -> list[int]:
        """Return the tests to run, the likeliest first. `likely`: by what their texts say."""
        left_s, chosen, files = SHARE * (baseline.total + baseline.collecting), list[int](), set[str]()
        for test in dict.fromkeys(self._ordered(baseline, mutant, likely)):
            excluded = test in mutant.left_out or test in baseline.failing or not self._can_be_alone(test)
            if excluded or len(chosen) == AT_MOST:
                continue
            file = file_of(baseline.tests[test])
            seconds = baseline.durations[test]
            if files and file not in files:
                seconds += baseline.collecting / self._files
            if chosen and seconds > left_s:
                continue
            left_s -= seconds
            chosen.append(test)
            files.add(file)
        return chosen

    def _ordered(self, baseline: Baseline, mutant: ScheduledMutant, likely: Sequence[int]) -> Iterator[int]:
        last = self.last(baseline, mutant)
        first = [*([] if last is None else [last]), *baseline.covering(mutant.path, mutant.change.lines)]
        killers = [test for place, test in baseline.killers.items() if place.startswith(f"{mutant.path}:")]
        first += [*(self._numbers[test] for test in reversed(killers) if test in self._numbers), *likely]
        yield from first
        for function in dict.fromkeys(function_of(baseline.tests[test]) for test in first):
            yield from self._rows[function]

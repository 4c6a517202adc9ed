"""Which tests are likely to kill a mutant, as long as nobody has measured which tests run its code.

A test is the likelier, the more of this holds: its own text names the mutated function (or its class, for a special
method); its file is named like the mutated one; its file names the function; its file names the mutated module. Of
tests that are equally likely the ones of the nearest folder come first. Only files that name the function or the module
are considered.
"""

from __future__ import annotations

import itertools
import os
import re
from bisect import bisect
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from .baseline import Baseline, bits
from .channel import Message
from .dependencies import outermost
from .job_queue import JobQueue
from .mutant_jobs import MutantJobs, ScheduledMutant

AT_ONCE = 100  # tests that are measured in one job
IDS = itertools.count(-(1 << 40), -1)
DEFINITION = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)


class LikelyTests:
    """The tests of one collection; `texts` are the texts of their files, by path."""

    def __init__(self, tests: Sequence[str], texts: Mapping[str, str]) -> None:
        self._tests, self._texts = tests, texts
        self._of_file: dict[str, list[int]] = {}
        for test, name in enumerate(tests):
            self._of_file.setdefault(name.partition("::")[0], []).append(test)
        self._ordered = lru_cache(64)(self._order)

    def next(self, path: str, function: str, left_out: Collection[int]) -> list[int]:
        """The likeliest tests for a mutant in a function of the file `path`, without left-out tests."""
        return [test for test in self._ordered(path, function) if test not in left_out][:AT_ONCE]

    def _order(self, path: str, function: str) -> list[int]:
        module = os.path.basename(path).removesuffix(".py")
        if module == "__init__":
            module = os.path.basename(os.path.dirname(path))
        *around, name = (outermost(function) or module).split(".")
        if name.startswith("__") and around:
            name = around[-1]
        found: list[tuple[int, int, int]] = []
        for file, tests in self._of_file.items():
            text = self._texts.get(file, "")
            naming, is_named = _definitions_with(name, text), module in _words(os.path.basename(file))
            if not naming and not is_named and module not in text:
                continue
            near = len(os.path.commonpath(["/" + file, "/" + path]))
            for test in tests:
                own = re.split(r"\W", self._tests[test].rpartition("::")[2], maxsplit=1)[0] in naming
                score = 4 * own + 2 * is_named + bool(naming)
                found.append((-score, -near, test))
        return [test for _, _, test in sorted(found)]


class Probes:
    """Measures tests before their turn, one job at a time for all mutants that wait."""

    def __init__(self, likely: LikelyTests, jobs: MutantJobs) -> None:
        self._likely, self._jobs = likely, jobs
        self._probed: set[int] = set()
        self.id: int | None = None  # of the job that runs

    def start(self, baseline: Baseline, mutant: ScheduledMutant) -> None:
        """Measure tests that are likely to kill `mutant`, if no job runs."""
        if self.id is not None:
            return
        if baseline.is_unknown:
            tests = self._likely.next(mutant.path, mutant.function, self._probed)
        else:  # tests that have run an edited function
            left = (test for test in bits(baseline.unmeasured) if test not in self._probed)
            tests = sorted(left, key=baseline.durations.__getitem__)[:AT_ONCE]
        if tests:
            self.id = next(IDS)
            self._probed.update(tests)
            self._jobs.run_probe(baseline, self.id, tests)

    def ended(self, answer: Message, baseline: Baseline) -> Baseline:
        """The baseline with what the job has measured: so many of its tests as there was time for."""
        self.id = None
        report = answer["report"]
        return baseline if report is None or not baseline.unmeasured else baseline.measured(report, all=False)

    def stop(self, queue: JobQueue) -> list[int]:
        """The ids of the jobs to stop."""
        ids = [] if self.id is None else [self.id]
        if queue.withdraw(ids):
            self.id = None
        return ids


def _definitions_with(name: str, text: str) -> set[str]:
    """The names of the functions and classes in whose text `name` stands."""
    places = [match.start() for match in re.finditer(rf"\b{re.escape(name)}\b", text)]
    if not places:
        return set()
    definitions = [(match.start(), match[1]) for match in DEFINITION.finditer(text)]
    before = (bisect(definitions, (place, "\U0010ffff")) for place in places)
    return {definitions[index - 1][1] if index else "" for index in before}


def _words(file: str) -> set[str]:
    """The names that the name of a test file may stand for: `test_graph.py` for `graph`."""
    stem = file.removesuffix(".py")
    return {stem, stem.removeprefix("test_"), stem.removesuffix("_test"), stem.removeprefix("test")}

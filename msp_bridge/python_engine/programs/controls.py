"""Runs of single tests without a mutant: controls of the tests that kill mutants, and isolated runs of each.

Theory of operation
-------------------
A test that fails with a mutant says something about the mutant only if it passes without it. A *control* is a run of
the test alone, without the mutant. It is no proof for ever: a test may fail by chance, or by load. So a test's first
kill is controlled, unless this host has run it alone already, then its 4th, its 16th and so on. The first time it is
controlled once more *under load*, while all CPUs are busy: a test that counts seconds passes on a quiet machine, and
fails beside other mutants. A test that takes less than a time slice among others is not disturbed by load (alone it
pays for all that is done once), and one that takes seconds costs too much: for these there is no such run.

States of a test: unknown; *steady*, when its controls passed; *fails alone*, when a control failed before the test was
measured alone (it may need other tests before it): a fresh process then runs it in its place; *unsteady*, when it has
passed alone, and fails now. An unsteady test stays one, also for the next process: each of its kills is confirmed,
while nothing else runs, and the log names it.

A process that collects some test files only says less: one of them may need what another sets up when it is imported.
There a test is steady for these files, and where its control fails it *needs files*: it is run so no more.

*Isolated runs*: each test alone, in a process that has run no other. What one test computes and keeps, later tests use
without running the code: a mutant there would survive if only the first were a candidate. Only survivors need to know,
so these runs are made when the first mutant survives. What a test would run alone may be known from an earlier run
(`Baseline.ran_alone`): then it is run alone only for a survivor in a function that it runs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable

from .dependencies import joined
from .endings import reject_fault
from .messages import Ended, Ran, Report

HOLDS_S = 600.0  # a control; what a process has imported may be too old then for tests that go by the time
NEVER = -math.inf
DISTURBED_S = 0.005  # a test that takes less is over within a time slice
AFFORDABLE_S = 2.0  # a test that takes more is not run under load
Files = frozenset[str] | None  # of tests; None: all


class Controls:
    """The states of the tests of one baseline, by their indexes."""

    def __init__(self) -> None:
        self._kills: dict[int, int] = {}
        self._steady: dict[tuple[int, Files], float] = {}  # with the time of the last control (time.monotonic())
        self._passed_alone: dict[int, float] = {}  # isolated runs
        self.needs_files: set[int] = set()  # have failed where not all test files were collected
        self._loaded: set[int] = set()  # have been run under load
        self.fails_alone: set[int] = set()  # have failed alone, and were not measured alone before

    def due(self, test: int, files: Files, *, timed_out: bool) -> bool:
        """Count one more kill by `test`; whether it needs a control in a process that has collected `files`.

        `timed_out`: the control has to tell how long it takes alone.
        """
        kills = self._kills[test] = self._kills.get(test, 0) + 1
        alone = NEVER if files is not None or timed_out else self._passed_alone.get(test, NEVER)
        known = max(self._steady.get((test, files), NEVER), alone) > time.monotonic() - HOLDS_S
        return not known or (kills > 1 and _is_power_of_four(kills))

    def passed_alone(self, test: int) -> None:
        """An isolated run of `test` has passed."""
        self._passed_alone[test] = time.monotonic()

    def passed(self, test: int, files: Files) -> None:
        """The control of `test` has passed."""
        self._steady[test, files] = time.monotonic()

    def can_collect(self, files: Files) -> bool:
        """Whether the collection of `files` is known to succeed without a mutant."""
        return any(files == collected for _, collected in self._steady)

    def due_under_load(self, test: int, among: float, alone: float) -> bool:
        """Whether `test`, which takes so many seconds among others and alone, needs one under load; asked for once."""
        due = test not in self._loaded and min(among, alone) >= DISTURBED_S and alone <= AFFORDABLE_S
        self._loaded.add(test)
        return due

    def failed(self, test: int, files: Files, *, passed_alone: bool) -> bool:
        """The control of `test` has failed: whether it is unsteady. `passed_alone`: it has passed so in other runs."""
        if passed_alone or (test, files) in self._steady:
            return True
        (self.fails_alone if files is None else self.needs_files).add(test)
        return False


def _is_power_of_four(number: int) -> bool:
    return number & (number - 1) == 0 and number.bit_length() % 2 == 1


class IsolatedRuns:
    """One job for each test, at most `jobs` at once. Their ids are negative."""

    def __init__(self, jobs: int, start: Callable[[int, int], None]) -> None:
        self._jobs, self._start = jobs, start
        self._left: list[int] = []
        self._running: set[int] = set()
        self.reports: dict[int, Report | None] = {}  # None: the test doesn't pass alone

    def want(self, tests: Iterable[int]) -> None:
        """Run each of `tests`, once."""
        known = {*self._left, *self._running, *self.reports}
        self._left += [test for test in tests if test not in known]
        self.advance()

    @property
    def done(self) -> bool:
        """Whether every test that is wanted has been run."""
        return not self._left and not self._running

    def advance(self) -> None:
        """Start what may run now."""
        while self._left and len(self._running) < self._jobs:
            test = self._left.pop()
            self._running.add(test)
            self._start(-1 - test, test)

    @property
    def ids(self) -> list[int]:
        """The ids of the jobs that wait or run."""
        return [-1 - test for test in self._running]

    @property
    def dependencies(self) -> dict[int, Ran]:
        """Dependencies of each test that would run the same again; none that imports files."""
        reports = {test: report for test, report in self.reports.items() if report is not None}
        ran = {test: joined([report.get("ran")]) for test, report in reports.items() if not report["late"]}
        return {test: report for test, report in ran.items() if report is not None}

    def receive(self, answer: Ended, *, skipped: bool) -> None:
        """A job has ended. `skipped`: its test has skipped itself, as it does not in the suite."""
        test = -1 - answer["id"]
        self._running.discard(test)
        if answer["kill_reason"] == "stopped":
            self._left.append(test)
            return
        reject_fault(answer)
        report = answer["report"]
        passed = report is not None and not report["failing"] and not skipped
        self.reports[test] = {**report, "seconds": answer["seconds"]} if report is not None and passed else None

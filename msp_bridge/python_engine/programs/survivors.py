"""How a mutant that has survived its candidate tests is confirmed, and at which cost.

Theory of operation
-------------------
*Survived* means that the whole suite passes with the mutant, in its order. What a mutant leaves behind (an entry in a
registry, a level on a stack) may break a later test that does not run it; what one test computes and keeps, a later one
uses without running the code. One run of the suite with the live mutant shows both.

Where the suite is long and survivors are many, that costs too much. Then each test is run alone once, without a mutant,
which shows what it runs when no other has run before: these are candidates as well, for all survivors. What this may
miss is a mutant that is killed only by a test that runs none of its code in any order.

The suite decides as long as it has cost less, for all survivors together, than the isolated runs would; so the cost is
at most twice that of the cheaper way. What an isolated run takes beyond its test is measured in each of them, and in
each control; at first it is guessed from the size of the process that is forked. What the suite has cost is kept over
edits and for the next process, as the isolated runs are. A suite that takes no longer than a fresh process decides on
every survivor, whatever else the machine does: the time for which its process waited for a CPU is not counted. So does
every suite where the plan says `exact`. Before a suite that takes more than `AGAIN_S`, its fastest tests run that cover
the mutant, for a `SHARE` of its time: they kill most, and a survivor costs little more than the suite.

A mutant with which the whole suite has passed is *known*: as long as the project is the same, so is that verdict. Asked
for again, it is tested for `AGAIN_S`, which shows a kill that would contradict it, and not by the whole suite.

After an edit of functions it is known for the tests that ran none of them, nor the mutant: with that, a test may run
what it does not run else. The others are *left*: they run with the mutant in one process, in the suite's order, and
where they pass it has survived. So it is with each mutant whose lines are the same, those of an edited function
included. What this may miss is a mutant that, since the edit, leaves behind what breaks a test that runs neither.
Before the edit it broke none. So where the whole suite takes less than `AGAIN_S`, it runs instead, as long as it is not
dearer than isolated runs.

A verdict that later runs give again (`dependencies`) has to rest on few tests: there, the isolated runs decide.
"""

from __future__ import annotations

from dataclasses import replace

from .baseline import Baseline
from .channel import TargetPlan
from .messages import Report
from .mutant_jobs import ScheduledMutant, Stage

CHEAP_S = 0.1  # a suite that takes less, but for what others use of the CPU, decides on each survivor
SHARE = 0.25  # of a suite's time, after which it runs itself
AGAIN_S = 2.0  # for the tests of a known survivor, and for all after an edit


class Survivors:
    """Decides for the survivors of one plan."""

    def __init__(self, plan: TargetPlan) -> None:
        self._plan = plan

    def next(self, baseline: Baseline, mutant: ScheduledMutant) -> tuple[Stage | None, list[int]]:
        """The stage of a mutant that has survived `mutant.tried`, and its tests; None: it has survived."""
        if baseline.unmeasured:
            return Stage.UNMEASURED, []
        if baseline.fork_unsafe:
            return Stage.FRESH, []
        if (left := self.left(baseline, mutant)) is not None:
            return (Stage.SUITE if left else None), left
        if self.suite_is_due(baseline, mutant):
            return Stage.SUITE, self.suite(baseline, mutant)
        if unknown := baseline.unknown_for(mutant.path, mutant.change):
            return Stage.ISOLATED, unknown
        if baseline.order_dependent:
            return Stage.FRESH, []
        candidates = baseline.candidates(mutant.path, mutant.change.lines)
        more = [test for test in candidates if test not in mutant.tried]
        return (Stage.LIVE, more) if more else (None, [])

    def left(self, baseline: Baseline, mutant: ScheduledMutant) -> list[int] | None:
        """The tests that edits concern since the whole suite has passed with `mutant`.

        None: it has not, or a test has failed with it since, or that is not enough.
        """
        held = baseline.survivors.get(mutant.survivor)
        survives = mutant.verdict.get("status", "Survived") in ("Survived", "NoCoverage")
        if held is None or not survives or self._plan.dependencies:
            return None
        suite = self.suite(baseline, mutant)
        reached = self._reached(baseline, mutant, suite) if held.edited else set()
        left = [test for test in suite if test in reached or not held.tests >> test & 1]
        is_short = baseline.total <= AGAIN_S or self._plan.exact
        return None if left and is_short and self.suite_is_due(baseline, mutant) else left

    def _reached(self, baseline: Baseline, mutant: ScheduledMutant, suite: list[int]) -> set[int]:
        """The tests that the mutant may have led into what was edited."""
        change = mutant.change
        if change.not_live is not None or not baseline.allows_live_code(mutant.path, change):
            return set(suite)
        return set(baseline.candidates(mutant.path, change.lines))

    def again(self, baseline: Baseline, tests: list[int], at_most: float = AGAIN_S) -> list[int]:
        """Choose the tests of `tests` that a known survivor is tested with, for so many seconds."""
        seconds, chosen = 0.0, []
        for test in tests:
            seconds += baseline.durations[test]
            if seconds > at_most:
                break
            chosen.append(test)
        return chosen

    def before_suite(self, baseline: Baseline, mutant: ScheduledMutant, tests: list[int]) -> list[int]:
        """Choose the tests of `tests` to begin with: where a long suite decides on a survivor, it has the slow ones."""
        if baseline.total <= AGAIN_S or baseline.fork_unsafe or not self.suite_is_due(baseline, mutant):
            return tests
        return self.again(baseline, tests, SHARE * baseline.total) or tests[:1]

    def suite(self, baseline: Baseline, mutant: ScheduledMutant) -> list[int]:
        """All tests in their order, but for tests that say nothing about `mutant`."""
        left_out = mutant.left_out | baseline.failing.keys()
        return [test for test in range(len(baseline.tests)) if test not in left_out]

    def is_doubtful(self, baseline: Baseline, mutant: ScheduledMutant, report: Report | None) -> bool:
        """Whether a known survivor has passed the tests that are left, but one of them needs others before it."""
        return skips_anew(baseline, report) and bool(self.left(baseline, mutant))

    def paid(self, baseline: Baseline, mutant: ScheduledMutant) -> Baseline:
        """The baseline when the suite begins to run with `mutant`: what is left for a known survivor costs nothing."""
        known = self.left(baseline, mutant) is not None
        return baseline if known else replace(baseline, suites_s=baseline.suites_s + baseline.total)

    def suite_is_due(self, baseline: Baseline, mutant: ScheduledMutant) -> bool:
        """Whether the suite decides on a survivor."""
        if self._plan.exact or self._plan.dependencies:
            return self._plan.exact
        unknown = baseline.unknown_for(mutant.path, mutant.change)
        is_cheap = baseline.total * (1 - baseline.waited) <= CHEAP_S
        return is_cheap or baseline.suites_s + baseline.total <= baseline.seconds_alone(unknown)


def skips_anew(baseline: Baseline, report: Report | None) -> bool:
    """Whether a test has skipped itself in a job that does not in the suite: it needs tests before it."""
    return not baseline.skipped.issuperset((report or {}).get("skipped", ()))

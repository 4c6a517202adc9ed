"""Mutants that are tested before all tests are measured: what may be said of them already.

Theory of operation
-------------------
While the tests run without a mutant, which takes as long as the suite, each mutant goes through these, until one of
them says something or all tests are measured:

- Where the whole suite has passed with it before an edit, the tests that are left (`survivors`) decide: they are known.
- For `PATIENCE_S` it waits, unless what is measured is known to take longer: a short suite is measured by then.
- The tests that are known to run it, and the last killer of its function, run with it. The measurement tells of more
  and more tests what they run. Where its code runs at import, that is a fresh process, which begins with tests that are
  likely to kill it: nobody can measure what reaches such code. A further one runs twice as many.
- Tests that are likely to run it are measured before their turn (`Probes`), which makes them known.
- The whole suite runs with it beside the measurement, after `EARLY_S`: for one mutant that all known tests pass with,
  where no other job runs or waits, and several may run at once. It would be run anyway (`survivors`), and where it
  passes, the mutant has survived. Where its limit is not known yet, and it takes longer than the measurement and `LATE`
  times that, it is ended, and the mutant begins again.

Where jobs share the sandbox and have a guard, nothing runs beside the measurement. It takes turns with the mutants
(`job_queue`). It yields to them for `YIELDS` times the collection, and for `EARLY_S` at least. It goes first where it
is known to be short, and where nothing is known, but collecting the tests takes less than `LONG_S`: what it tells
belongs to each result (`coveredBy`). Only tests whose time is known run with a mutant before it: all would wait for the
end of an endless loop with a guessed limit.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping

from .baseline import Baseline, bits
from .endings import reject_fault
from .job_queue import JobQueue, is_ended_by_guard
from .likely_tests import LikelyTests
from .measuring import MEASUREMENT
from .messages import Ended
from .mutant_jobs import MutantJobs, ScheduledMutant, Stage
from .survivors import Survivors

PATIENCE_S = 0.5
EARLY_S = 3.0
LATE = 0.5
LONG_S, YIELDS = 2.0, 2.0  # of the collection: what takes long to collect takes long to run
FEW = 30  # tests that are likely to kill a mutant of code that runs at import
AT_ONCE, AT_MOST = 100, 500  # tests that are measured before their turn: in one job, and for one function
IDS = itertools.count(-(1 << 40), -1)


class Unmeasured:
    """Decides for the mutants of one scheduler."""

    def __init__(
        self,
        survivors: Survivors,
        probes: Probes,
        baseline: Baseline,
        queue: JobQueue,
        send: Callable[[Mapping[str, object]], None],
    ) -> None:
        self._survivors, self.probes, self._queue, self._send = survivors, probes, queue, send
        began = time.monotonic()
        is_short = baseline.collecting < LONG_S
        if not baseline.is_unknown:
            is_short = baseline.seconds(bits(baseline.unmeasured)) <= PATIENCE_S
        self._yields_s = 0.0 if is_short else max(EARLY_S, YIELDS * baseline.collecting)
        waits = is_short or (baseline.is_unknown and not queue.guards)
        moments = [began + (PATIENCE_S if waits else 0.0), began + EARLY_S]
        self._moments = deque(moments if baseline.unmeasured else [])
        self.early: ScheduledMutant | None = None  # for which the suite runs, or has run
        self._is_limited = False  # that run

    def measure(self, begin: Callable[[], None]) -> None:
        """Have all tests measured: beside the mutants, or in turns with them."""
        if self._queue.guards:
            self._queue.submit_measurement(MEASUREMENT, begin, self._yields_s)
        else:
            begin()

    def measured(self) -> None:
        """The measurement has ended: others have their turn."""
        self._queue.release(MEASUREMENT)

    @property
    def ids(self) -> tuple[int, int | None]:
        """The jobs for no mutant alone."""
        return MEASUREMENT, self.probes.id

    @property
    def wait_s(self) -> float | None:
        """When `look` is to be called; None: there is no need to."""
        return max(0.0, self._moments[0] - time.monotonic()) if self._moments else None

    def wait(self, mutant: ScheduledMutant) -> None:
        """Have it wait, and tell the bridge, which then has another one tested."""
        mutant.stage = Stage.UNMEASURED
        if not (mutant.waits or self._is_patient):
            mutant.waits = True
            self._send({"id": None, "waits": mutant.request})

    @property
    def _is_patient(self) -> bool:
        """Whether the measurement may soon be over."""
        return len(self._moments) > 1

    def look(self) -> bool:
        """Whether more may be done now than before."""
        due = bool(self._moments) and time.monotonic() >= self._moments[0]
        if due:
            self._moments.popleft()
        return due

    def complete(self, baseline: Baseline) -> None:
        """All tests are measured."""
        self._moments.clear()
        if self.early is not None and self.early.stage is Stage.SUITE and not self._is_limited:
            self._moments.append(time.monotonic() + LATE * baseline.total)

    def next(self, baseline: Baseline, mutant: ScheduledMutant, last: int | None) -> tuple[Stage, list[int]]:
        """The stage of a mutant whose last killer was `last`, and its tests."""
        if self._is_patient or self._queue.measures:
            return Stage.UNMEASURED, []
        covering = baseline.covering(mutant.path, mutant.change.lines)
        if mutant.is_not_live or not baseline.allows_live_code(mutant.path, mutant.change):
            return Stage.FRESH, []
        if covering and not baseline.fork_unsafe and (left := self._survivors.left(baseline, mutant)):
            return Stage.SUITE, left
        tests = self.timed(baseline, [*([] if last is None else [last]), *covering])
        if tests := [test for test in dict.fromkeys(tests) if test not in mutant.tried]:
            return Stage.LIVE, tests
        self.probes.start(baseline, mutant)
        if covering and self._queue.idle and self._suite_is_due(baseline, mutant):
            self.early, self._is_limited = mutant, not baseline.is_unknown
            return Stage.SUITE, self._survivors.suite(baseline, mutant)
        return Stage.UNMEASURED, []

    def fresh(self, baseline: Baseline, mutant: ScheduledMutant) -> list[int] | None:
        """Tests that a fresh process may begin with, beside its likely killers. None: it waits.

        Each process collects test files: so a further one runs twice as many tests that are known to run the code.
        """
        if not baseline.unmeasured:
            return []
        if self._is_patient or self._queue.measures:
            return None
        covering = baseline.covering(mutant.path, mutant.change.lines)
        tried = len(mutant.tried.intersection(covering))
        if mutant.tried and len(covering) < max(1, 2 * tried):
            if mutant.is_not_live:
                self.probes.start(baseline, mutant)
            return None
        likely = [] if mutant.tried else self.probes.likely.of(mutant.path, mutant.function)[:FEW]
        if likely and not self.timed(baseline, likely):
            self.probes.start(baseline, mutant)
            return None
        mutant.tried.update(covering)
        return likely

    def timed(self, baseline: Baseline, tests: list[int]) -> list[int]:
        """The tests that may run with a mutant now."""
        return [test for test in tests if baseline.is_timed(test)] if self._queue.guards else tests

    def _suite_is_due(self, baseline: Baseline, mutant: ScheduledMutant) -> bool:
        if self._moments or self.early is not None or self._queue.jobs < 2 or baseline.fork_unsafe:
            return False
        return baseline.is_unknown or self._survivors.suite_is_due(baseline, mutant)


class Probes:
    """Measures tests before their turn, one job at a time for all mutants that wait."""

    def __init__(self, likely: LikelyTests, jobs: MutantJobs, queue: JobQueue) -> None:
        self.likely, self._jobs, self._queue = likely, jobs, queue
        self._probed: set[int] = set()
        self._tests: list[int] = []  # of the last job
        self.turns = Counter[str]()  # jobs, by the function of the mutant that each was for: the next one is another's
        self.id: int | None = None  # of the job that runs

    def start(self, baseline: Baseline, mutant: ScheduledMutant) -> None:
        """Measure tests that are likely to kill `mutant`, if no job runs."""
        if self.id is not None:
            return
        if baseline.is_unknown:
            tests = self.likely.of(mutant.path, mutant.function)[:AT_MOST]
        else:  # tests that have run an edited function
            tests = sorted(bits(baseline.unmeasured), key=baseline.durations.__getitem__)[:AT_MOST]
        left = [test for test in tests if test not in self._probed and baseline.unmeasured >> test & 1]
        left = self._queue.without_effects(left)
        if left:
            self.id, self._tests = next(IDS), left[:AT_ONCE]
            self.turns[mutant.place] += 1
            self._jobs.run_probe(self.id, self._tests)

    def ended(self, answer: Ended, baseline: Baseline) -> Baseline:
        """The baseline with what the job has measured: so many of its tests as there was time for."""
        self.id = None
        reject_fault(answer)
        report = answer["report"]
        if is_ended_by_guard(answer):  # others of the same class, or the same file, are likely to do the same
            place = baseline.tests[self._tests[min(answer["tests"], len(self._tests) - 1)]].rpartition("::")[0]
            self._probed.update(test for test in self._tests if baseline.tests[test].rpartition("::")[0] == place)
        elif answer["kill_reason"] != "stopped":
            self._probed.update(map(int, (report or {}).get("durations") or self._tests))
        return baseline if report is None else baseline.measured(report, in_order=False)

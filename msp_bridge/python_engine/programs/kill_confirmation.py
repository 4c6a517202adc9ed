"""The confirmation of a kill: a run of the killing test alone, with the mutant and without it.

Theory of operation
-------------------
A test failed with a mutant, in a job that ran other tests before it, or in a fork. It kills the mutant if it fails with
the mutant, and passes without it, when nothing else can be the reason:

The rows of `transitions` say what follows each run:

- `STEADY` runs the killer alone with the mutant, in a fork, where other tests ran before it in an order that is not
  the suite's. `FRESH_STEADY` runs it alone in a fresh process, for the same reason, or where it is unsteady.
- `CONTROL` runs it alone without the mutant, and `LOADED` once more under load, as often as `Controls` says that it is
  due.
- Each kill by an unsteady test is confirmed with the mutant and without, `CONFIRMATIONS` times, while no other job
  runs. If it is not, the mutant is tested again without that test. So is a kill in the live suite by a test that is not
  known to run the mutant, once it has failed alone, too: it rather fails by chance.
- Where a test was over a time limit, and its control had more to set up than that allowed for, or nobody knew how long
  it takes, the mutant's tests run again (`time_limits`).
- A test may go by the time, and what its file has computed when it was imported be too old by now. So a control holds
  for `HOLDS_S`, and where one fails in a fork of a server that is older, the servers start anew: once for each test,
  until it passes, since it may need others before it. Fork servers of fresh processes are not used any more when they
  are so old.
- A test that fails alone without the mutant needs others before it: a fresh process that runs all tests in their order
  decides. It is asked twice; before the first such kill counts, `SUITE_CONTROL` runs them all without a mutant. A test
  that fails there fails by itself: what was kept of it is no longer true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Protocol

from .answers import ToHost
from .baseline import Baseline
from .controls import Controls, Files
from .messages import Ended, Report, Trace, Verdict
from .mutant_jobs import MutantJobs, ScheduledMutant, Stage
from .server_process import ServerProcess
from .time_limits import longer, were_short
from .transitions import Action, Seen

CONFIRMATIONS = 2  # runs with and without the mutant that a kill by an unsteady test takes


class Way(Protocol):
    """The scheduler, which leads a mutant on when its kill is confirmed or is none."""

    baseline: Baseline

    def killer(self, mutant: ScheduledMutant) -> int | None:
        """The index of the test that killed it; None where nothing or no test did."""

    def killed(self, mutant: ScheduledMutant, killer: int) -> None:
        """Its kill is confirmed."""

    def survived(self, mutant: ScheduledMutant) -> None:
        """It has survived the tests that say something about it."""

    def start_live(self, mutant: ScheduledMutant, tests: list[int]) -> None:
        """Run `tests` in a fork."""

    def start_fresh(self, mutant: ScheduledMutant) -> None:
        """Run all tests in a fresh process."""


class KillConfirmation:
    """Confirms the kills of one scheduler. `note` is called when a test turns out to be unsteady."""

    def __init__(
        self, way: Way, jobs: MutantJobs, controls: Controls, host: ToHost, live: ServerProcess | None
    ) -> None:
        self._way, self._jobs, self._controls, self._live = way, jobs, controls, live
        self._note, self._late = host.note, host.late
        self._suite_passes = False  # in a fresh process, as it is now
        self._ran_without: dict[tuple[int, Files], Trace | None] = {}  # what the last control of a test depends on

    def _begin(self, mutant: ScheduledMutant, killer: int) -> None:
        """Confirm a kill. In its suite's order in a fresh process, or as the first one, the test need not run again."""
        is_fresh = mutant.stage is Stage.FRESH
        mutant.from_fresh |= is_fresh
        is_enough = (is_fresh and mutant.in_order) or killer == mutant.tests[0]
        if self._is_unsteady(killer) or not is_enough:
            self._run_alone(mutant, killer)
        else:
            self._control(mutant, killer)

    def _run_alone(self, mutant: ScheduledMutant, killer: int) -> None:
        """Run the killer once more, alone, with the mutant."""
        if self._live is not None and not mutant.from_fresh:
            mutant.stage = Stage.STEADY
            self._jobs.run_live(mutant, [killer])
            return
        mutant.stage = Stage.FRESH_STEADY
        mutant.files = None if mutant.in_order else self._way.baseline.files_of([killer])
        self._jobs.run_fresh(mutant, [killer])

    def actions(self) -> dict[Action, Callable[[ScheduledMutant], None]]:
        """The actions that are done here, with a mutant that a test has killed."""
        found: dict[Action, Callable[[ScheduledMutant, int], None]] = {
            Action.CONFIRM: self._begin,
            Action.CONTROL: self._control_alone,
            Action.LOADED: partial(self._run_control, loaded=True),
            Action.AGAIN: self._confirm,
            Action.DISTRUST: partial(self._fails_without, loaded=False),
            Action.DISTURBED: partial(self._fails_without, loaded=True),
            Action.LEAVE_OUT: self._without,
            Action.KILLED: self._killed,
        }
        return {action: partial(self._act, act) for action, act in found.items()}

    def _act(self, act: Callable[[ScheduledMutant, int], None], mutant: ScheduledMutant) -> None:
        act(mutant, self._killer(mutant))

    def _killer(self, mutant: ScheduledMutant) -> int:
        killer = self._way.killer(mutant)
        assert killer is not None
        return killer

    def seen(self, mutant: ScheduledMutant, answer: Ended) -> Seen:
        """Tell what the end of a job in one of the stages above has shown."""
        killer, report = self._killer(mutant), answer["report"]
        if mutant.stage is Stage.SUITE_CONTROL:
            return self._seen_of_suite(killer, report)
        if report is None or report.get("failure", True) or not report.get("tests"):  # or it did not come to the test
            mutant.timed_out |= answer["kill_reason"] == "timeout"
            return Seen.FAILED_LATE if self._may_be_late(mutant, killer) else Seen.FAILED
        if mutant.stage in (Stage.STEADY, Stage.FRESH_STEADY):
            again = mutant.confirmations > 0 and self._is_doubtful(mutant, killer)
            return Seen.UNSTEADY_PASSED if again or self._is_unsteady(killer) else Seen.PASSED
        self._controls.passed(killer, mutant.files)
        self._late.discard(self._way.baseline.tests[killer])
        self._ran_without[killer, mutant.files] = mutant.ran[-1]
        if mutant.stage is Stage.CONTROL:
            in_fork = self._runs_in_fork(mutant)
            self._note_set_up(killer, report, in_fork=in_fork)
            if in_fork:
                self._way.baseline = self._way.baseline.with_runs_alone({killer: answer["seconds"]})
        if mutant.stage is Stage.CONTROL and self._is_due_under_load(killer, report["seconds"]):
            return Seen.DUE_UNDER_LOAD
        unconfirmed = self._is_doubtful(mutant, killer) and mutant.confirmations < CONFIRMATIONS
        return Seen.UNCONFIRMED if unconfirmed else Seen.PASSED

    def _may_be_late(self, mutant: ScheduledMutant, killer: int) -> bool:
        """Whether a control has failed in an old process: once for each test, where nothing is to be measured again."""
        baseline, test = self._way.baseline, self._way.baseline.tests[killer]
        if mutant.stage is not Stage.CONTROL or not self._runs_in_fork(mutant) or baseline.unmeasured:
            return False
        if self._live is None or not self._live.is_old or test in self._late:
            return False
        self._late.add(test)
        return True

    def _seen_of_suite(self, killer: int, report: Report | None) -> Seen:
        """Note a test that fails in the suite without a mutant, by itself or by ending it."""
        self._suite_passes = report is not None and not report.get("failure", True)
        if self._suite_passes:
            return Seen.PASSED
        test, text = (report or {}).get("failure") or ("", "it does not come to its end")
        baseline = self._way.baseline
        failing = baseline.tests.index(test) if test in baseline.tests else killer
        self._way.baseline = replace(baseline, failing={**baseline.failing, failing: text})
        self._note()
        return Seen.FAILED

    def passed_alone(self, reports: Mapping[int, Report | None]) -> None:
        """Isolated runs are as good as controls. None: the test did not pass."""
        for test, report in reports.items():
            if report is not None:
                self._controls.passed_alone(test)
                self._ran_without[test, None] = report.get("ran")

    def _is_due_under_load(self, test: int, alone: float | None = None) -> bool:
        """`alone`: what the test takes then, where that is known; it pays for all that is done once."""
        if self._is_unsteady(test):
            return False
        baseline = self._way.baseline
        among = baseline.durations[test] if alone is None or baseline.is_timed(test) else alone
        return self._controls.due_under_load(test, among, among if alone is None else alone)

    def _runs_in_fork(self, mutant: ScheduledMutant) -> bool:
        """Whether its controls do: a fork has collected all files."""
        return self._live is not None and mutant.files is None

    def _note_set_up(self, test: int, report: Report, *, in_fork: bool) -> None:
        baseline = self._way.baseline
        if not baseline.is_timed(test):
            return
        seconds = baseline.durations[test] + (0.0 if in_fork else baseline.collecting)
        self._way.baseline = replace(baseline, set_up=longer(baseline.set_up, report, seconds))
        if were_short(baseline.set_up, self._way.baseline.set_up):
            self._note()

    def _is_unsteady(self, test: int) -> bool:
        return test in self._way.baseline.unsteady

    def _is_doubtful(self, mutant: ScheduledMutant, killer: int) -> bool:
        """Whether the killer is unsteady, or, in a fork, not known to run the mutant."""
        known = mutant.from_fresh or killer in self._way.baseline.candidates(mutant.path, mutant.change.lines)
        return self._is_unsteady(killer) or not known

    def needs_others(self, test: int) -> bool:
        """Whether a test fails alone, as far as is known."""
        return test in self._controls.fails_alone or test in self._way.baseline.order_dependent

    def can_be_alone(self, test: int) -> bool:
        """Whether a process may run the test first, and collect its file alone, as far as is known."""
        return not self.needs_others(test) and test not in self._controls.needs_files

    def ended_by(self, mutant: ScheduledMutant, answer: Ended) -> bool:
        """Whether it is the mutant that has ended the process of its likely killers, which collects some files only."""
        return mutant.files is None or (answer["report"] is not None and self._controls.can_collect(mutant.files))

    def _control_alone(self, mutant: ScheduledMutant, killer: int) -> None:
        """The killer has failed alone with the mutant: what ran before it only led to the test that kills."""
        mutant.ran = mutant.ran[-1:]
        self._control(mutant, killer)

    def _control(self, mutant: ScheduledMutant, killer: int) -> None:
        if self.needs_others(killer):
            self._after_failed_control(mutant, killer)
            return
        due = self._controls.due(killer, mutant.files, timed_out=mutant.timed_out)
        if due or self._is_doubtful(mutant, killer):
            self._run_control(mutant, killer, loaded=False)
        elif self._is_due_under_load(killer):
            self._run_control(mutant, killer, loaded=True)
        else:
            self._killed(mutant, killer)

    def _run_control(self, mutant: ScheduledMutant, killer: int, *, loaded: bool) -> None:
        mutant.stage = Stage.LOADED if loaded else Stage.CONTROL
        if self._runs_in_fork(mutant):
            self._jobs.run_live(mutant, [killer], mutated=False, loaded=loaded)
        else:
            self._jobs.run_fresh(mutant, [killer], mutated=False, loaded=loaded)

    def _fails_without(self, mutant: ScheduledMutant, killer: int, *, loaded: bool) -> None:
        baseline = self._way.baseline
        passed_alone = loaded or (mutant.files is None and killer in baseline.alone)
        unsteady = self._controls.failed(killer, mutant.files, passed_alone=passed_alone)
        if unsteady and killer not in baseline.unsteady:
            self._way.baseline = baseline.with_unsteady([killer])
            self._note()
        if loaded:
            self._confirm(mutant, killer)
        else:
            self._after_failed_control(mutant, killer)

    def _confirm(self, mutant: ScheduledMutant, killer: int) -> None:
        mutant.confirmations += 1
        self._run_alone(mutant, killer)

    def _after_failed_control(self, mutant: ScheduledMutant, killer: int) -> None:
        """The killer does not pass alone without the mutant either."""
        if self._is_unsteady(killer):
            self._without(mutant, killer)
        elif mutant.in_order and mutant.confirmations:  # it needs others before it, and failed after them twice
            self._control_suite(mutant, killer)
        else:
            mutant.confirmations += mutant.in_order
            self._way.start_fresh(mutant)

    def _control_suite(self, mutant: ScheduledMutant, killer: int) -> None:
        if killer in self._way.baseline.failing:  # as another mutant has shown meanwhile
            self._way.start_fresh(mutant)
        elif self._suite_passes:
            self._killed(mutant, killer)
        else:
            mutant.stage = Stage.SUITE_CONTROL
            self._jobs.run_fresh(mutant, None, mutated=False)

    def _without(self, mutant: ScheduledMutant, killer: int) -> None:
        """Test the mutant again without a test whose failure says nothing."""
        mutant.left_out.add(killer)
        mutant.confirmations = 0
        if mutant.from_fresh:
            self._way.start_fresh(mutant)
            return
        rest = [test for test in mutant.tests[mutant.tests.index(killer) + 1 :] if test not in mutant.left_out]
        if rest:
            self._way.start_live(mutant, rest)
        else:
            mutant.verdict = {"status": "Survived", "tests": mutant.completed, "seconds": 0.0}
            self._way.survived(mutant)

    def _killed(self, mutant: ScheduledMutant, killer: int) -> None:
        if mutant.timed_out and (mutant.guessed or were_short(mutant.set_up, self._way.baseline.set_up)):
            self._again(mutant)
            return
        mutant.ran.append(self._ran_without.get((killer, mutant.files)))
        self._way.killed(mutant, killer)

    def _again(self, mutant: ScheduledMutant) -> None:
        """Run its tests with the mutant again, with the limits of now, or when all tests are measured."""
        mutant.timed_out, mutant.verdict = False, Verdict()
        if mutant.from_fresh or self._way.baseline.unmeasured:
            self._way.start_fresh(mutant)
        else:
            self._way.start_live(mutant, mutant.tests)

"""The way of a mutant: for each row of the table, what the scheduler does when the job of a stage ends so."""

import contextlib
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from msp_bridge.isolation import guard
from msp_bridge.python_engine.programs.answers import ToHost
from msp_bridge.python_engine.programs.baseline import Baseline, FileFacts, Held
from msp_bridge.python_engine.programs.channel import IN_SUITE, TargetPlan
from msp_bridge.python_engine.programs.controls import HOLDS_S, Controls
from msp_bridge.python_engine.programs.early_jobs import EarlyJobs
from msp_bridge.python_engine.programs.file_edit import FileEdit
from msp_bridge.python_engine.programs.fork_servers import Servers
from msp_bridge.python_engine.programs.job_queue import JobQueue, Sharing
from msp_bridge.python_engine.programs.mutant_jobs import MutantJobs, ScheduledMutant, Stage
from msp_bridge.python_engine.programs.scheduler import MutantScheduler
from msp_bridge.python_engine.programs.source_file import SourceFile
from msp_bridge.python_engine.programs.survivors import Survivors
from msp_bridge.python_engine.programs.transitions import TRANSITIONS, Seen
from msp_bridge.python_engine.programs.unmeasured import Unmeasured

CODE = "def f(a):\n    return a + 1\n"
TESTS = ["test_a", "test_b", "test_c"]
KILLER = 1
UNSTEADY = frozenset({KILLER})
PASSED = {"failure": None, "tests": 1, "seconds": 0.0, "cpu": 0.0}
SLOW = {**PASSED, "seconds": 1.0}  # is to be run under load
NEAR = frozenset({"near.py"})
FAILED = {"failure": [TESTS[KILLER], "no"], "tests": 1, "seconds": 0.0}
REPORTS: dict[Seen, dict[str, Any] | None] = {
    Seen.NOT_LIVE: {"not_live": "a closure"},
    Seen.SKIPPED: {**PASSED, "skipped": [TESTS[KILLER]]},
    Seen.FAILED: FAILED,
    Seen.FAILED_LATE: FAILED,
    Seen.ENDED: None,
    Seen.ENDED_ALONE: {"exit": 1, "broken": [["far.py", "ImportError"]], "seconds": 0.0},
    Seen.DUE_UNDER_LOAD: SLOW,
}
ROWS: dict[tuple[Stage, Seen], Stage | str] = {
    (Stage.LIVE, Seen.NOT_LIVE): Stage.FRESH,
    (Stage.LIVE, Seen.PASSED): Stage.SUITE,
    (Stage.LIVE, Seen.FAILED): Stage.STEADY,
    (Stage.LIVE, Seen.ENDED): "RuntimeError",
    (Stage.SUITE, Seen.NOT_LIVE): Stage.FRESH,
    (Stage.SUITE, Seen.PASSED): "Survived",
    (Stage.SUITE, Seen.SKIPPED): Stage.FRESH,
    (Stage.SUITE, Seen.FAILED): Stage.STEADY,
    (Stage.SUITE, Seen.ENDED): "RuntimeError",
    (Stage.FRESH, Seen.NOT_LIVE): Stage.FRESH,
    (Stage.FRESH, Seen.PASSED_ALONE): Stage.FRESH,
    (Stage.FRESH, Seen.ENDED_ALONE): Stage.FRESH,
    (Stage.FRESH, Seen.PASSED): "Survived",
    (Stage.FRESH, Seen.SKIPPED): Stage.FRESH,
    (Stage.FRESH, Seen.FAILED): Stage.CONTROL,
    (Stage.FRESH, Seen.ENDED): "RuntimeError",
    (Stage.STEADY, Seen.FAILED): Stage.CONTROL,
    (Stage.STEADY, Seen.PASSED): Stage.FRESH,
    (Stage.STEADY, Seen.UNSTEADY_PASSED): Stage.LIVE,
    (Stage.FRESH_STEADY, Seen.FAILED): Stage.CONTROL,
    (Stage.FRESH_STEADY, Seen.PASSED): Stage.FRESH,
    (Stage.FRESH_STEADY, Seen.UNSTEADY_PASSED): Stage.FRESH,
    (Stage.CONTROL, Seen.PASSED): "Killed",
    (Stage.CONTROL, Seen.DUE_UNDER_LOAD): Stage.LOADED,
    (Stage.CONTROL, Seen.UNCONFIRMED): Stage.STEADY,
    (Stage.CONTROL, Seen.FAILED): Stage.FRESH,
    (Stage.CONTROL, Seen.FAILED_LATE): "stopped",
    (Stage.LOADED, Seen.PASSED): "Killed",
    (Stage.LOADED, Seen.UNCONFIRMED): Stage.STEADY,
    (Stage.LOADED, Seen.FAILED): Stage.STEADY,
    (Stage.SUITE_CONTROL, Seen.PASSED): "Killed",
    (Stage.SUITE_CONTROL, Seen.FAILED): Stage.FRESH,
}


def test_each_row_of_the_table_is_tested() -> None:
    assert ROWS.keys() == TRANSITIONS.keys()


class Trial:
    """A scheduler whose servers only note what they are sent, and one mutant whose job in `stage` runs."""

    def __init__(self, stage: Stage, seen: Seen, unsteady: frozenset[int]) -> None:
        self.sent: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []
        old = seen is Seen.FAILED_LATE
        server: Any = SimpleNamespace(channel=SimpleNamespace(send=self.sent.append), has_ended=False, is_old=old)
        plan = target_plan(cpu_limited=True)
        known, servers = replace(baseline(), unsteady=unsteady), Servers(server, server)
        self.late: set[str] = set()
        host = ToHost(self.answers.append, lambda: None, lambda: None, self._start_anew, self.late)
        self.scheduler = MutantScheduler(known, plan, servers, (), 2, host, {})
        asked = mutant(1)
        self.scheduler.test(1, asked.edit, asked.change, 0)
        if seen is Seen.SKIPPED:  # an edit concerns the killer
            survivors = {asked.survivor: Held(0b101)}
            self.scheduler.baseline = replace(known, durations=[1.0] * 3, survivors=survivors)
        self.mutant = self.scheduler._mutants[1]
        self.mutant.stage, self.mutant.tests = stage, [0, 1, 2]
        self.mutant.in_order = stage is Stage.FRESH and seen not in (Seen.PASSED_ALONE, Seen.ENDED_ALONE)
        self.mutant.files = NEAR if seen is Seen.ENDED_ALONE else None
        if stage is Stage.FRESH_STEADY:
            self.mutant.from_fresh = True
        if stage not in (Stage.LIVE, Stage.SUITE, Stage.FRESH):
            self.mutant.verdict = {"status": "Killed", "killed_by": TESTS[KILLER], "reason": "no"}

    def _start_anew(self) -> None:
        self.scheduler.end()

    def ends(self, seen: Seen) -> None:
        """Its job ends."""
        self.sent.clear()
        self.reports(REPORTS.get(seen, PASSED))

    def reports(self, report: dict[str, Any] | None, request: int = 1) -> None:
        """Its job ends with this report, or with none."""
        self.scheduler.receive(
            {"id": request, "exit": 1, "kill_reason": "", "report": report, "tests": 0, "seconds": 0.1}
        )

    def times_out(self, ended: int) -> None:
        """Its job is over a limit when so many tests have ended."""
        self.sent.clear()
        self.scheduler.receive(
            {"id": 1, "exit": -9, "kill_reason": "timeout", "report": None, "tests": ended, "seconds": 9.0}
        )

    def stopped(self, id: int) -> None:
        """This job was killed, as it was to be."""
        killed: Any = {"id": id, "exit": -9, "kill_reason": "stopped", "report": None, "tests": 0, "seconds": 0.1}
        self.scheduler.receive(killed)

    def close(self) -> None:
        """End the busy processes, which a job under load has beside it."""
        self.scheduler.end()


@pytest.mark.parametrize(("stage", "seen"), ROWS, ids=lambda part: part.name)
def test_what_follows(stage: Stage, seen: Seen) -> None:
    unsteady = UNSTEADY if seen in (Seen.UNSTEADY_PASSED, Seen.UNCONFIRMED) else frozenset()
    expected = ROWS[stage, seen]
    with contextlib.closing(Trial(stage, seen, unsteady)) as trial:
        trial.ends(seen)
        if isinstance(expected, Stage):
            assert (trial.mutant.stage, [job["id"] for job in trial.sent]) == (expected, [1])
        else:
            assert [answer["status"] for answer in trial.answers if answer["id"] == 1] == [expected]
            assert trial.sent == []


def test_of_runs_of_the_suite_beside_each_other_the_first_is_counted() -> None:
    with contextlib.closing(Trial(Stage.LIVE, Seen.PASSED, frozenset())) as trial:
        asked = mutant(1)
        trial.scheduler.test(2, asked.edit, asked.change, 0)
        for request in (1, 2):
            trial.reports(PASSED, request)
        assert [(job["id"], job["counts"]) for job in trial.sent[2:]] == [(1, IN_SUITE), (2, None)]


@pytest.mark.parametrize(
    ("before", "measured"), [(frozenset(), UNSTEADY), (UNSTEADY, frozenset())], ids=["measurement", "mutants before"]
)
def test_a_test_that_was_found_to_be_unsteady_is_taken_as_such(
    before: frozenset[int], measured: frozenset[int]
) -> None:
    with contextlib.closing(Trial(Stage.LIVE, Seen.FAILED, before)) as trial:
        trial.mutant.tests = [KILLER]
        trial.scheduler.complete(replace(baseline(), unsteady=measured))
        trial.ends(Seen.FAILED)
        assert trial.mutant.stage is Stage.STEADY


def test_a_stop_answers_what_has_not_begun_at_once_and_all_else_when_it_is_gone() -> None:
    with contextlib.closing(Trial(Stage.LIVE, Seen.FAILED, frozenset())) as trial:
        asked = mutant(1)
        for request in (2, 3):  # the third one waits: two jobs run at once
            trial.scheduler.test(request, asked.edit, asked.change, 0)
        trial.scheduler.stop([1, 3])
        assert [(answer["id"], answer["status"]) for answer in trial.answers] == [(3, "stopped")]
        trial.stopped(1)
        assert [(answer["id"], answer["status"]) for answer in trial.answers] == [(3, "stopped"), (1, "stopped")]


def test_runs_for_no_mutant_that_are_stopped_are_made_again_when_somebody_waits_for_them() -> None:
    """One has begun, and the other has not; of the probes, too."""
    with contextlib.closing(Trial(Stage.LIVE, Seen.FAILED, frozenset())) as trial:
        scheduler, isolated = trial.scheduler, trial.scheduler._isolated
        probes = scheduler.unmeasured.probes
        trial.sent.clear()
        isolated.want([0, 1, 2])
        probes.start(replace(baseline(), unmeasured=0b111, durations=[0.1] * 3), trial.mutant)
        assert [job["tests"] for job in trial.sent] == [[2]]
        scheduler.stop([1])
        assert probes.id is None
        trial.stopped(1)
        trial.stopped(-3)
        assert scheduler.idle
        trial.sent.clear()
        isolated.want([0, 1, 2])
        assert sorted(job["tests"] for job in trial.sent) == [[1], [2]]


def test_an_unsteady_killer_of_a_fresh_process_that_passes_alone_is_left_out_there() -> None:
    with contextlib.closing(Trial(Stage.FRESH, Seen.FAILED, UNSTEADY)) as trial:
        trial.mutant.tests = []  # its code runs at import: no test was run in a fork
        trial.ends(Seen.FAILED)
        assert trial.mutant.stage is Stage.FRESH_STEADY
        trial.ends(Seen.PASSED)
        assert (trial.mutant.stage, trial.sent[0]["left_out"]) == (Stage.FRESH, [TESTS[KILLER]])


def test_a_killer_that_fails_without_a_mutant_as_another_has_shown_kills_nothing() -> None:
    with contextlib.closing(Trial(Stage.CONTROL, Seen.FAILED, frozenset())) as trial:
        trial.mutant.from_fresh = trial.mutant.in_order = True
        trial.mutant.confirmations = 1
        trial.ends(Seen.FAILED)
        assert trial.mutant.stage is Stage.SUITE_CONTROL
        trial.mutant.stage = Stage.CONTROL
        trial.scheduler.baseline = replace(trial.scheduler.baseline, failing={KILLER: "no"})
        trial.ends(Seen.FAILED)
        assert (trial.mutant.stage, trial.sent[0]["left_out"]) == (Stage.FRESH, [TESTS[KILLER]])


def test_of_likely_killers_the_first_needs_no_run_alone() -> None:
    with contextlib.closing(Trial(Stage.FRESH, Seen.PASSED_ALONE, frozenset())) as trial:
        trial.mutant.tests = [KILLER, 0]
        trial.ends(Seen.FAILED)
        assert trial.mutant.stage is Stage.CONTROL


def test_a_likely_killer_that_passes_alone_leaves_it_to_the_suite() -> None:
    """Another one ran before it in the same process, and may have left something behind."""
    with contextlib.closing(Trial(Stage.FRESH, Seen.PASSED_ALONE, frozenset())) as trial:
        trial.mutant.tests = [0, KILLER]
        trial.ends(Seen.FAILED)
        assert (trial.mutant.stage, trial.sent[0]["only"]) == (Stage.FRESH_STEADY, [TESTS[KILLER]])
        trial.ends(Seen.PASSED)
        assert (trial.mutant.stage, trial.mutant.in_order, trial.sent[0]["only"]) == (Stage.FRESH, True, None)


def test_a_known_survivor_of_code_that_runs_at_import_meets_its_likely_killers_alone() -> None:
    with contextlib.closing(Trial(Stage.LIVE, Seen.NOT_LIVE, frozenset())) as trial:
        known = trial.scheduler.baseline.with_kill(("m.py", (0, 1, "")), trial.mutant.place, KILLER)
        trial.scheduler.baseline = known.with_survivor(trial.mutant.survivor)
        trial.ends(Seen.NOT_LIVE)
        [job] = trial.sent
        assert job["only"][0] == TESTS[KILLER]
        trial.ends(Seen.PASSED_ALONE)
        assert ([answer["status"] for answer in trial.answers], trial.sent) == (["Survived"], [])


@pytest.mark.parametrize("stage", [Stage.LIVE, Stage.SUITE, Stage.FRESH, Stage.STEADY, Stage.CONTROL])
def test_a_fault_of_our_own_is_no_verdict(stage: Stage) -> None:
    """In the confirmation of a kill it is no failure of a test either."""
    with contextlib.closing(Trial(stage, Seen.FAILED, frozenset())) as trial:
        trial.reports({"fault": "ZeroDivisionError: 0", "begun": True})
        [answer] = trial.answers
        assert (answer["status"], "killed_by" in answer) == ("RuntimeError", False)
        assert answer["reason"] == "msp-bridge itself has failed in the process of the tests: ZeroDivisionError: 0"


def test_a_job_that_could_not_begin_ends_the_host_and_is_asked_again() -> None:
    with contextlib.closing(Trial(Stage.LIVE, Seen.FAILED, frozenset())) as trial:
        with pytest.raises(SystemExit, match="could not enter its world: OSError: gone"):
            trial.reports({"fault": "OSError: gone", "begun": False})


def test_a_time_limit_that_was_too_short_for_what_a_test_sets_up_is_no_verdict() -> None:
    with contextlib.closing(Trial(Stage.LIVE, Seen.FAILED, frozenset())) as trial:
        trial.times_out(0)
        assert (trial.mutant.stage, "cpu_limits" in trial.sent[0]) == (Stage.CONTROL, False)
        trial.sent.clear()
        trial.reports({**PASSED, "seconds": 4.01, "cpu": 3.01})  # 0.01 in the suite
        [again] = trial.sent
        assert (trial.mutant.stage, again["tests"]) == (Stage.LIVE, [0, 1, 2])
        assert (again["limit"], again["cpu_limits"]) == (
            pytest.approx(15 * (1 + 0.03 + 4)),
            pytest.approx([2 + 3 * 3] * 3),
        )
        trial.times_out(0)
        assert [(answer["status"], answer["killed_by"]) for answer in trial.answers] == [("Timeout", TESTS[0])]


@pytest.mark.parametrize("measured", ["during the control", "after it"])
def test_a_time_limit_of_a_test_whose_time_is_not_known_is_no_verdict(measured: str) -> None:
    """The suite runs with a mutant while its tests are measured, and the machine is busy."""
    with contextlib.closing(Trial(Stage.SUITE, Seen.FAILED, frozenset())) as trial:
        scheduler, known = trial.scheduler, replace(baseline(), durations=[0.01, 70.0, 0.01], suites_s=1e6)
        scheduler.baseline = replace(known, durations=[0.01, 0.0, 0.0], unmeasured=0b110, is_unknown=True)
        scheduler._start_suite(trial.mutant, [0, 1, 2])
        assert trial.sent[-1]["cpu_limits"] == [2, 60, 60]
        trial.times_out(KILLER)
        assert (trial.mutant.stage, trial.sent[0]["cpu_limits"]) == (Stage.STEADY, [60])
        trial.times_out(0)
        assert trial.mutant.stage is Stage.CONTROL
        trial.sent.clear()
        if measured == "during the control":
            scheduler.complete(known)
        trial.reports({**PASSED, "seconds": 70.0, "cpu": 30.0})
        if measured == "after it":
            assert (trial.mutant.stage, trial.sent) == (Stage.UNMEASURED, [])
            scheduler.complete(known)
        [again] = trial.sent
        assert (trial.mutant.stage, KILLER in again["tests"]) == (Stage.LIVE, True)
        assert (max(again["cpu_limits"]), scheduler.baseline.set_up) == (20 * 70, (0.0, 0.0))
        assert [answer for answer in trial.answers if answer["id"] is not None] == []


def making(jobs: list[dict[str, Any]], queue: JobQueue, known: Baseline) -> MutantJobs:
    """Makes jobs whose servers only note them."""
    server: Any = SimpleNamespace(channel=SimpleNamespace(send=jobs.append), has_ended=False)
    return MutantJobs(target_plan(cpu_limited=True), Servers(server, server), (), queue, lambda: known)


def mutant(request: int) -> ScheduledMutant:
    start = CODE.index("a + 1")
    change = SourceFile("/project/m.py", CODE).change(start, start + 5, "a - 1")
    return ScheduledMutant(request, FileEdit("m.py", "", start, start + 5, "a - 1"), change)


def test_a_slow_test_gives_no_other_more_time() -> None:
    jobs: list[dict[str, Any]] = []
    known = replace(baseline(), durations=[0.01, 3.0, 0.2], collecting=1.0)
    made = making(jobs, JobQueue(Sharing.APART, 9), known)
    for tests in ([0, 2, 1], [0, 1, 2]):
        made.run_live(mutant(1), tests)
    made.run_fresh(mutant(1), None)
    assert [job["cpu_limits"] for job in jobs] == [[2, 4, 60], [2, 60, 4], [80, 60]]
    assert [job["test_limits"] for job in jobs] == [
        pytest.approx(limits) for limits in ([15.15, 18, 60], [15.15, 60, 18], [75, 60])
    ]


@pytest.mark.parametrize(("tests", "is_alone"), [([KILLER], True), ([0], False), ([0, KILLER], False)])
def test_an_unsteady_test_runs_alone_and_beside_no_other_job(tests: list[int], is_alone: bool) -> None:
    jobs: list[dict[str, Any]] = []
    queue = JobQueue(Sharing.APART, 9)
    made = making(jobs, queue, replace(baseline(), unsteady=UNSTEADY))
    made.run_live(mutant(1), tests)
    made.run_live(mutant(2), [0])
    assert [job["id"] for job in jobs] == ([1] if is_alone else [1, 2])
    queue.ended({"id": 1, "exit": 0, "kill_reason": "", "report": {}, "tests": 1, "seconds": 0.1})
    assert [job["id"] for job in jobs] == [1, 2]


def test_the_early_server_is_started_while_no_job_has_its_mutant_in_the_file() -> None:
    jobs: list[dict[str, Any]] = []
    started: list[float] = []
    queue, known = JobQueue(Sharing.GUARD, 9), replace(baseline(), collecting=1.0)
    made = making(jobs, queue, known)
    early = EarlyJobs(made, started.append)

    def end(id: int, exit: int = 0, report: dict[str, Any] | None = PASSED) -> None:
        answer: Any = {"id": id, "exit": exit, "kill_reason": "", "report": report, "tests": 0, "seconds": 0.1}
        if queue.ended(answer) and id == early.trial:
            early.tried(answer, known)

    early.collect()
    made.run_live(mutant(1), [0])
    [trial, _] = jobs
    end(1, exit=guard.ENDED, report=None)  # and later jobs with this test are exclusive at once
    end(trial["id"], report={"collected": {"tests": TESTS, "seconds": 1.0, "elsewhere": None}})
    assert (early.is_starting, started, jobs[2:]) == (True, [], [jobs[1]])
    end(1)
    assert started == [trial["limit"]]
    made.run_live(mutant(2), [0])
    assert jobs[3:] == []
    early.start_ended()
    assert [job["id"] for job in jobs[3:]] == [2]


def test_a_time_out_after_other_tests_is_that_of_the_test_that_ran_if_it_is_one_alone() -> None:
    with contextlib.closing(Trial(Stage.LIVE, Seen.FAILED, frozenset())) as trial:
        trial.times_out(KILLER)
        assert (trial.mutant.stage, trial.sent[0]["tests"]) == (Stage.STEADY, [KILLER])
        trial.ends(Seen.PASSED)
        assert trial.mutant.stage is Stage.FRESH


@pytest.mark.parametrize(
    ("seconds", "timed_out", "expected"),
    [(0.001, False, None), (0.01, False, Stage.LOADED), (9.0, False, None), (0.001, True, Stage.CONTROL)],
    ids=["short", "disturbed by load", "too long for it", "over a time limit"],
)
def test_a_test_that_has_run_alone_here_needs_no_control_at_its_first_kill(
    seconds: float, timed_out: bool, expected: Stage | None
) -> None:
    with contextlib.closing(Trial(Stage.LIVE, Seen.FAILED, frozenset())) as trial:
        scheduler, trial.mutant.tests = trial.scheduler, [KILLER]
        scheduler.baseline = replace(scheduler.baseline, durations=[seconds] * 3)
        scheduler._confirmation.passed_alone({KILLER: {"failing": {}}})
        if timed_out:
            trial.times_out(0)
        else:
            trial.ends(Seen.FAILED)
        assert trial.mutant.stage is (expected or Stage.LIVE)
        assert [answer["status"] for answer in trial.answers] == ([] if expected else ["Killed"])


def test_a_test_that_has_failed_alone_is_controlled() -> None:
    with contextlib.closing(Trial(Stage.LIVE, Seen.FAILED, frozenset())) as trial:
        trial.mutant.tests = [KILLER]
        trial.scheduler._confirmation.passed_alone({KILLER: None})
        trial.ends(Seen.FAILED)
        assert trial.mutant.stage is Stage.CONTROL


def test_tests_that_are_known_to_take_long_are_not_waited_for() -> None:
    """After an edit, the last killer is run at once."""
    plan, probes = target_plan(), SimpleNamespace()
    known = replace(baseline(), unmeasured=0b110, durations=[9.0, 0.3, 0.3])
    queue = JobQueue(Sharing.APART, 2)
    unmeasured: Any = Unmeasured(Survivors(plan), probes, known, queue, print)  # type: ignore[arg-type]
    assert unmeasured.wait_s == 0.0


@pytest.mark.parametrize(("sharing", "expected"), [(Sharing.GUARD, [0, 1]), (Sharing.APART, [0, 1, 2])])
def test_no_guessed_limit_keeps_the_measurement_waiting(sharing: Sharing, expected: list[int]) -> None:
    known, queue = replace(baseline(), unmeasured=0b110, durations=[0.1, 0.3, 0.0]), JobQueue(sharing, 2)
    unmeasured: Any = Unmeasured(Survivors(target_plan()), SimpleNamespace(), known, queue, print)  # type: ignore[arg-type]
    assert unmeasured.timed(known, [0, 1, 2]) == expected


def target_plan(**more: bool) -> TargetPlan:
    return TargetPlan("/project", (), ("m.py",), (1.0, 15.0), "content", "environment", **more)


def baseline() -> Baseline:
    report = {"durations": dict.fromkeys(range(3), 0.01), "failing": {}, "lines": {"m.py": {"2": "0x7"}}}
    live = FileFacts(frozenset({("f", 1)}), frozenset(), frozenset(), read=False)
    return replace(Baseline.of(report, {"tests": TESTS, "seconds": 0.0}), facts={"m.py": live})


def test_a_control_holds_for_some_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    controls, now = Controls(), time.monotonic()
    controls.passed(KILLER, None)
    controls.passed_alone(0)
    assert not any(controls.due(test, None, timed_out=False) for test in (0, KILLER))
    monkeypatch.setattr(time, "monotonic", lambda: now + 2 * HOLDS_S)
    assert all(controls.due(test, None, timed_out=False) for test in (0, KILLER))


def test_a_control_that_fails_in_an_old_process_again_starts_nothing_anew() -> None:
    """Such a test may need others before it, in a new process as well; one that passes may be late another time."""
    with contextlib.closing(Trial(Stage.CONTROL, Seen.FAILED_LATE, frozenset())) as trial:
        trial.late.add(TESTS[KILLER])
        trial.ends(Seen.FAILED_LATE)
        assert trial.mutant.stage is Stage.FRESH
    with contextlib.closing(Trial(Stage.CONTROL, Seen.FAILED_LATE, frozenset())) as trial:
        trial.late.add(TESTS[KILLER])
        trial.ends(Seen.PASSED)
        assert trial.late == set()

"""Probes: which tests are measured before their turn, and when that ends."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from msp_bridge.isolation import guard
from msp_bridge.python_engine.programs.baseline import Baseline
from msp_bridge.python_engine.programs.job_queue import JobQueue, Sharing
from msp_bridge.python_engine.programs.likely_tests import LikelyTests
from msp_bridge.python_engine.programs.unmeasured import AT_MOST, AT_ONCE, Probes

TESTS = [f"tests/test_m.py::test_{number}" for number in range(2 * AT_MOST)]
MUTANT: Any = SimpleNamespace(path="m.py", function="f", place="m.py:f")


class Jobs:
    """Notes the tests of each job."""

    def __init__(self) -> None:
        self.ran: list[list[int]] = []

    def run_probe(self, _id: int, tests: list[int]) -> None:
        self.ran.append(tests)


def unknown() -> Baseline:
    return Baseline.unknown({"tests": TESTS, "seconds": 0.0})


def queue() -> JobQueue:
    return JobQueue(Sharing.APART, 9)


def probes(jobs: Any) -> Probes:
    return Probes(LikelyTests(TESTS, {"tests/test_m.py": "import m"}), jobs, queue())


def ended(durations: dict[int, float] | None, kill_reason: str = "") -> Any:
    report = None if durations is None else {"durations": durations, "failing": {}}
    return {"report": report, "kill_reason": kill_reason, "exit": 0}


def test_tests_that_there_was_no_time_for_are_measured_by_the_next_job() -> None:
    jobs = Jobs()
    before = probes(jobs)
    before.start(unknown(), MUTANT)
    before.start(unknown(), MUTANT)  # one job at a time
    assert before.turns == {MUTANT.place: 1}
    before.ended(ended({0: 1.5, 1: 0.0}), unknown())  # the last one was interrupted
    before.start(unknown(), MUTANT)
    before.ended(ended(None), unknown())  # one of them ends the process
    before.start(unknown(), MUTANT)
    assert jobs.ran == [[*range(AT_ONCE)], [*range(2, AT_ONCE + 2)], [*range(AT_ONCE + 2, 2 * AT_ONCE + 2)]]


def test_tests_of_a_job_that_was_stopped_are_measured_by_the_next() -> None:
    jobs = Jobs()
    before = probes(jobs)
    before.start(unknown(), MUTANT)
    before.ended(ended(None, "stopped"), unknown())
    before.start(unknown(), MUTANT)
    assert jobs.ran == [[*range(AT_ONCE)]] * 2


def test_no_job_begins_with_the_class_or_file_in_which_a_guard_has_ended_another() -> None:
    jobs, names = Jobs(), [*TESTS[:2], "tests/test_n.py::test_writes", "tests/test_n.py::test_other"]
    before = Probes(
        LikelyTests(names, dict.fromkeys(("tests/test_m.py", "tests/test_n.py"), "import m")), jobs, queue()
    )  # type: ignore[arg-type]
    known = Baseline.unknown({"tests": names, "seconds": 0.0})
    before.start(known, MUTANT)
    [[*tests]] = jobs.ran
    before.ended({**ended(None), "exit": guard.ENDED, "tests": tests.index(2)}, known)
    before.start(known, MUTANT)
    assert jobs.ran[1:] == [[0, 1]]


def test_of_one_function_no_more_are_measured_so_than_are_likely() -> None:
    jobs = Jobs()
    before = probes(jobs)
    for _ in range(3 * AT_MOST // AT_ONCE):
        before.start(unknown(), MUTANT)
        if before.id is not None:
            before.ended(ended(dict.fromkeys(jobs.ran[-1], 0.1)), unknown())
    assert [len(tests) for tests in jobs.ran] == [AT_ONCE] * (AT_MOST // AT_ONCE)


def test_tests_that_the_measurement_has_come_to_are_left_out() -> None:
    jobs = Jobs()
    probes(jobs).start(replace(unknown(), unmeasured=0b1001), MUTANT)
    assert jobs.ran == [[0, 3]]

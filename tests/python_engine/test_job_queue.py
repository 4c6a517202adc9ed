"""Which job is next, which has a guard, and which runs while no other does."""

import time
from collections.abc import Callable, Sequence

import pytest

from msp_bridge.isolation import guard
from msp_bridge.python_engine.programs.job_queue import ALONE_S, QUIET_S, WAIT_S, JobQueue, Queued, Sharing
from msp_bridge.python_engine.programs.messages import Ended


def noting(started: list[int], id: int) -> Callable[[bool], None]:
    return lambda guarded: started.append(id)


def ended(id: int, exit: int = 0, tests: int = 0, reason: str = "") -> Ended:
    report: dict[str, int] | None = {} if not exit else None
    return {"id": id, "exit": exit, "kill_reason": reason, "report": report, "tests": tests, "seconds": 0.1}


class Trial:
    """A queue, and what it has started: with a guard or exclusively."""

    def __init__(self, sharing: Sharing) -> None:
        self.queue, self.started = JobQueue(sharing, 9), list[str]()

    def submit(self, id: int, *, batch: int = 0, tests: Sequence[int] = ()) -> None:
        self.queue.submit(Queued(id, lambda guarded: self.started.append(f"{id} {guarded}"), batch=batch, tests=tests))

    def measure(self, *, yields_s: float) -> None:
        self.queue.submit_measurement(0, lambda: self.started.append("0"), yields_s)

    @property
    def news(self) -> list[str]:
        found, self.started = self.started, []
        return found


def test_no_job_waits_for_an_endless_one_and_none_is_alone_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue, started = JobQueue(Sharing.APART, 9), list[int]()
    for id in (1, 2, 3):
        queue.submit(Queued(id, noting(started, id), alone=id == 2))
    assert started == [1]
    assert queue.wait_s is not None
    now = time.monotonic()
    monkeypatch.setattr("time.monotonic", lambda: now + WAIT_S)
    queue.look()
    assert started == [1, 2]
    monkeypatch.setattr("time.monotonic", lambda: now + WAIT_S + ALONE_S)
    queue.look()
    assert started == [1, 2, 3]
    assert queue.wait_s is None


def test_a_job_that_must_be_alone_has_no_other_beside_it() -> None:
    queue, started = JobQueue(Sharing.APART, 9), list[int]()

    def submit(id: int, *, alone: bool = False) -> None:
        queue.submit(Queued(id, noting(started, id), alone=alone))

    submit(1)
    submit(2)
    submit(3, alone=True)
    submit(4)
    submit(5)
    assert started == [1, 2]
    queue.ended(ended(1))
    assert started == [1, 2]
    queue.ended(ended(2))
    assert started == [1, 2, 3]
    assert [answer["id"] for answer in queue.withdraw([3, 5])] == [5]
    queue.ended(ended(3))
    assert started == [1, 2, 3, 4]
    queue.ended(ended(4))
    assert queue.idle


def test_a_job_that_its_guard_has_ended_runs_again_while_no_other_does() -> None:
    trial = Trial(Sharing.GUARD)
    for id in (1, 2):
        trial.submit(id)
    assert trial.news == ["1 True", "2 True"]
    assert not trial.queue.ended(ended(1, guard.ENDED))
    trial.submit(3)
    assert trial.news == []
    assert trial.queue.wait_s is None  # it waits for as long as the other runs
    assert trial.queue.ended(ended(2))
    assert trial.news == ["1 False"]
    assert trial.queue.ended(ended(1, guard.ENDED))  # by itself: there is no guard
    assert trial.news == ["3 True"]
    assert trial.queue.ended(ended(3))
    assert trial.queue.idle


def test_a_job_with_a_test_that_a_guard_has_ended_is_exclusive_at_once() -> None:
    trial = Trial(Sharing.GUARD)
    trial.submit(1, tests=[4, 5, 6])
    assert not trial.queue.ended(ended(1, guard.ENDED, tests=1))
    assert trial.queue.ended(ended(1))
    assert trial.news == ["1 True", "1 False"]
    trial.submit(2, tests=[4, 6])
    trial.submit(3, tests=[5])
    assert trial.news == ["2 True"]
    trial.queue.ended(ended(2))
    assert trial.news == ["3 False"]
    assert trial.queue.without_effects([4, 5, 6]) == [4, 6]


@pytest.mark.parametrize(("exit", "reason"), [(-9, "timeout"), (-11, ""), (1, ""), (guard.ENDED, "timeout")])
def test_another_end_is_no_reason_to_run_again(exit: int, reason: str) -> None:
    trial = Trial(Sharing.GUARD)
    trial.submit(1)
    assert trial.queue.ended(ended(1, exit, reason=reason))


def test_a_job_that_nobody_waits_for_does_not_run_again() -> None:
    trial = Trial(Sharing.GUARD)
    trial.submit(1)
    assert trial.queue.withdraw([1]) == []
    assert trial.queue.ended(ended(1, guard.ENDED))
    assert trial.queue.idle


def test_without_a_guard_one_job_runs_at_a_time_and_the_newest_request_goes_first() -> None:
    trial = Trial(Sharing.NONE)
    for id, batch in ((1, 0), (2, 0), (3, 0), (4, 1), (5, 2)):
        trial.submit(id, batch=batch)
    assert [answer["id"] for answer in trial.queue.withdraw([5])] == [5]
    for id in (1, 4, 2, 3):
        assert trial.news == [f"{id} False"]
        trial.queue.ended(ended(id))
    assert trial.queue.idle


def test_a_newer_request_does_not_wait_for_an_exclusive_job_that_waits() -> None:
    """Nor for the endless loop that this one waits for."""
    trial = Trial(Sharing.GUARD)
    trial.submit(1)
    trial.submit(2)
    trial.queue.ended(ended(2, guard.ENDED))
    trial.submit(3)
    trial.submit(4, batch=1)
    assert trial.news == ["1 True", "2 True", "4 True"]


def test_a_measurement_comes_after_jobs_with_a_guard_and_before_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """No mutant has left anything behind then, and no kill has waited for the whole suite."""
    trial = Trial(Sharing.GUARD)
    trial.submit(1)
    trial.measure(yields_s=9.0)
    trial.submit(2, batch=1)
    trial.queue.ended(ended(2, guard.ENDED))
    trial.submit(3)
    assert trial.news == ["1 True", "2 True", "3 True"]
    trial.queue.ended(ended(1))
    trial.queue.ended(ended(3))
    assert (trial.news, trial.queue.measures, trial.queue.idle) == ([], False, False)  # the next job of 1 may follow
    now = time.monotonic()
    monkeypatch.setattr("time.monotonic", lambda: now + QUIET_S)
    assert trial.queue.wait_s == 0.0
    trial.queue.look()
    assert (trial.news, trial.queue.measures) == (["0"], True)
    trial.submit(4)
    trial.queue.release(0)
    assert (trial.news, trial.queue.measures) == (["2 False"], False)
    trial.queue.ended(ended(2))
    assert trial.news == ["4 True"]


def test_a_measurement_waits_no_longer_than_it_yields_but_for_jobs_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Trial(Sharing.GUARD)
    trial.submit(1)
    trial.measure(yields_s=1.0)
    now = time.monotonic()
    monkeypatch.setattr("time.monotonic", lambda: now + 1.0)
    trial.submit(2)
    assert (trial.news, trial.queue.measures, trial.queue.wait_s) == (["1 True"], True, None)
    trial.queue.ended(ended(1))
    assert trial.news == ["0"]
    trial.queue.release(0)
    assert trial.news == ["2 True"]


def test_a_job_that_has_waited_to_be_alone_does_not_keep_the_host_busy_while_a_measurement_is_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trial = Trial(Sharing.GUARD)
    trial.submit(1)
    trial.queue.submit(Queued(2, noting([], 2), alone=True))
    trial.measure(yields_s=WAIT_S)
    now = time.monotonic()
    monkeypatch.setattr("time.monotonic", lambda: now + WAIT_S)
    trial.queue.look()
    assert (trial.news, trial.queue.wait_s) == (["1 True"], None)


def test_a_measurement_that_is_withdrawn_does_not_begin() -> None:
    trial = Trial(Sharing.GUARD)
    trial.measure(yields_s=9.0)
    assert trial.queue.withdraw([0]) == []
    assert trial.queue.idle
    trial.measure(yields_s=0.0)
    assert trial.news == ["0"]


def test_a_job_that_runs_once_has_ended_when_its_guard_has_ended_it() -> None:
    trial = Trial(Sharing.GUARD)
    trial.queue.submit(Queued(1, noting([], 1), tests=[7], once=True))
    assert trial.queue.ended(ended(1, guard.ENDED))
    assert trial.queue.without_effects([7, 8]) == [8]


def test_no_more_run_than_may_but_one_of_each_request_and_a_mutants_next_job_goes_first() -> None:
    queue, started = JobQueue(Sharing.APART, 2), list[int]()
    for id in (4, 5, 6):
        queue.submit(Queued(id, noting(started, id)))
    assert started == [4, 5]
    queue.submit(Queued(7, noting(started, 7), batch=1))
    queue.submit(Queued(8, noting(started, 8), batch=1))
    assert started == [4, 5, 7]
    queue.ended(ended(4))
    queue.submit(Queued(4, noting(started, 4)))
    assert started == [4, 5, 7]
    queue.ended(ended(5))
    assert started == [4, 5, 7, 8, 4]
    queue.ended(ended(7))
    assert started == [4, 5, 7, 8, 4]
    queue.ended(ended(8))
    assert started == [4, 5, 7, 8, 4, 6]


def test_a_mutants_job_waits_for_no_queue_of_runs_of_single_tests() -> None:
    queue, started = JobQueue(Sharing.APART, 1), list[int]()
    for id in (1, -2, -1, 2):
        queue.submit(Queued(id, noting(started, id)))
    for id in (1, 2, -2):
        queue.ended(ended(id))
    assert started == [1, 2, -2, -1]

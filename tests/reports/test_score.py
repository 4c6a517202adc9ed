"""The mutation score counts what the tests could have noticed, and nothing else."""

from __future__ import annotations

from msp_bridge.model import Location, Mutant, Position, Result, Status
from msp_bridge.reports.score import Score

MUTANT = Mutant("a.py", "number", Location(Position(1, 1), Position(1, 2)), "2")


def score(*statuses: Status) -> Score:
    return Score.of(Result(MUTANT, status) for status in statuses)


def test_killed_and_timeout_are_detected() -> None:
    assert score(Status.KILLED, Status.TIMEOUT, Status.SURVIVED, Status.NO_COVERAGE).percent == 50


def test_errors_and_ignored_mutants_do_not_count() -> None:
    assert score(Status.KILLED, Status.COMPILE_ERROR, Status.RUNTIME_ERROR, Status.IGNORED).percent == 100


def test_there_is_no_score_of_nothing() -> None:
    assert score(Status.IGNORED).percent is None

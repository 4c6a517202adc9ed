"""How survivors are confirmed: each row says what is known, and which stage comes next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from msp_bridge.python_engine.programs.baseline import Baseline
from msp_bridge.python_engine.programs.channel import TargetPlan
from msp_bridge.python_engine.programs.file_edit import FileEdit
from msp_bridge.python_engine.programs.live_code import SourceFile
from msp_bridge.python_engine.programs.mutant_jobs import ScheduledMutant, Stage
from msp_bridge.python_engine.programs.survivors import Survivors

CODE = "def f(a):\n    return a + 1\n"
TESTS = ["test_a", "test_b", "test_c"]
EVERYTHING = [0, 1, 2]


def plan(**more: bool) -> TargetPlan:
    return TargetPlan("/project", (), ("m.py",), (1.0, 15.0), "content", "environment", **more)


def mutant() -> ScheduledMutant:
    start = CODE.index("a + 1")
    change = SourceFile("/project/m.py", CODE).change(start, start + 5, "a - 1")
    return ScheduledMutant(1, FileEdit("m.py", "", start, start + 5, "a - 1"), change, tried={0})


def baseline(seconds: float, **more: object) -> Baseline:
    report = {"durations": dict.fromkeys(EVERYTHING, seconds), "failing": {}, "lines": {"m.py": {"2": "0x1"}}}
    return replace(Baseline.of(report, {"tests": TESTS, "seconds": 0.0}), **more)


ALONE = frozenset(EVERYTHING)


@pytest.mark.parametrize(
    ("known", "asked", "stage", "tests"),
    [
        (baseline(0.01), plan(), Stage.SUITE, EVERYTHING),
        (baseline(1.0), plan(), Stage.SUITE, EVERYTHING),  # one run costs less than three forks and the same tests
        (baseline(0.01, failing={1: "no"}), plan(), Stage.SUITE, [0, 2]),
        (baseline(1.0, alone=ALONE), plan(), None, []),
        (baseline(1.0, alone=ALONE), plan(exact=True), Stage.SUITE, EVERYTHING),
        (baseline(0.01, alone=ALONE), plan(), Stage.SUITE, EVERYTHING),
        (baseline(1.0, survivors=frozenset({mutant().digest})), plan(exact=True), None, []),
        (baseline(1.0, alone=ALONE, lines={"m.py": {2: 0b101}}), plan(), Stage.LIVE, [2]),
        (baseline(1.0, alone=ALONE - {1}, order_dependent=frozenset({1})), plan(), Stage.FRESH, []),
        (baseline(0.01), plan(dependencies=True), Stage.ISOLATED, EVERYTHING),
        (baseline(0.01, fork_unsafe=frozenset({1})), plan(), Stage.FRESH, []),
        (baseline(0.01, unmeasured=0b10), plan(), Stage.UNMEASURED, []),
    ],
)
def test_what_comes_next(known: Baseline, asked: TargetPlan, stage: Stage | None, tests: list[int]) -> None:
    assert Survivors(asked).next(known, mutant()) == (stage, tests)


def test_the_suite_decides_until_it_has_cost_what_isolated_runs_cost() -> None:
    spent = [baseline(1.0, suites_s=seconds) for seconds in (0.0, 3.0, 6.0)]
    stages = [Survivors(plan()).next(known, mutant())[0] for known in spent]
    assert stages == [Stage.SUITE, Stage.ISOLATED, Stage.ISOLATED]


@pytest.mark.parametrize(
    ("asked", "verdict", "is_known"),
    [
        (plan(), {}, True),
        (plan(), {"status": "Survived"}, True),
        (plan(), {"status": "Killed"}, False),  # a test has failed with it meanwhile
        (plan(dependencies=True), {}, False),  # has to show what its verdict rests on
    ],
)
def test_a_mutant_that_the_whole_suite_passed_with_is_known(
    asked: TargetPlan, verdict: dict[str, str], is_known: bool
) -> None:
    known, survivor = baseline(1.0, survivors=frozenset({mutant().digest})), replace(mutant(), verdict=verdict)
    assert Survivors(asked).is_known(known, survivor) is is_known
    assert not Survivors(asked).is_known(baseline(1.0), survivor)


def test_a_known_survivor_is_tested_for_two_seconds() -> None:
    assert Survivors(plan()).again(baseline(0.9), EVERYTHING) == [0, 1]
    assert Survivors(plan()).again(baseline(2.1), EVERYTHING) == []

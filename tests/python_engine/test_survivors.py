"""How survivors are confirmed: each row says what is known, and which stage comes next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from msp_bridge.python_engine.programs.baseline import Baseline
from msp_bridge.python_engine.programs.channel import TargetPlan
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
    return ScheduledMutant(1, "m.py", change, {"m.py": ""}, tried={0})


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
    survivors, known = Survivors(plan()), baseline(1.0)
    assert [survivors.next(known, mutant())[0] for _ in range(3)] == [Stage.SUITE, Stage.ISOLATED, Stage.ISOLATED]

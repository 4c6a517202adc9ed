"""How survivors are confirmed: each row says what is known, and which stage comes next."""

from dataclasses import replace

import pytest

from msp_bridge.python_engine.programs.baseline import Baseline, FileFacts, Held
from msp_bridge.python_engine.programs.channel import TargetPlan
from msp_bridge.python_engine.programs.file_edit import FileEdit
from msp_bridge.python_engine.programs.mutant_jobs import ScheduledMutant, Stage
from msp_bridge.python_engine.programs.source_file import SourceFile
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


def survived(seconds: float, tests: int, *, edited: bool = False, **more: object) -> Baseline:
    """The mutant is known as a survivor of these tests."""
    return baseline(seconds, survivors={mutant().survivor: Held(tests, edited)}, **more)


ALONE = frozenset(EVERYTHING)
RUN = FileFacts(frozenset(), frozenset(), frozenset({("f", 1)}), False)  # at import


@pytest.mark.parametrize(
    ("known", "asked", "stage", "tests"),
    [
        (baseline(0.01), plan(), Stage.SUITE, EVERYTHING),
        (baseline(1.0), plan(), Stage.SUITE, EVERYTHING),  # one run costs less than three forks and the same tests
        (baseline(0.01, failing={1: "no"}), plan(), Stage.SUITE, [0, 2]),
        (baseline(1.0, alone=ALONE), plan(), None, []),
        (baseline(1.0, alone=ALONE), plan(exact=True), Stage.SUITE, EVERYTHING),
        (baseline(0.01, alone=ALONE), plan(), Stage.SUITE, EVERYTHING),
        (baseline(0.1, alone=ALONE), plan(), None, []),
        (baseline(0.1, alone=ALONE, waited=0.8), plan(), Stage.SUITE, EVERYTHING),  # the machine was busy
        (survived(1.0, 0b111), plan(exact=True), None, []),
        (survived(1.0, 0b010, edited=True), plan(exact=True), Stage.SUITE, EVERYTHING),
        (survived(1.0, 0b010), plan(), Stage.SUITE, [0, 2]),
        (survived(1.0, 0b011, edited=True), plan(), Stage.SUITE, [0, 2]),  # the first runs it
        (survived(1.0, 0b011, edited=True, facts={"m.py": RUN}), plan(), Stage.SUITE, EVERYTHING),
        (survived(0.5, 0b010, edited=True), plan(), Stage.SUITE, EVERYTHING),  # it takes 1.5 s
        (survived(0.5, 0b010, edited=True, suites_s=9.0), plan(), Stage.SUITE, [0, 2]),
        (survived(0.01, 0b010, edited=True), plan(dependencies=True), Stage.ISOLATED, EVERYTHING),
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
    ("alone_s", "suites"),
    [((0.0, 1), 1), ((0.6, 6), 1), ((2.0, 2), 2), ((30.0, 10), 4)],  # one run takes 0, 0.1, 1 and 3 s beyond its test
)
def test_the_dearer_a_run_of_one_test_is_the_more_often_the_suite_decides(
    alone_s: tuple[float, int], suites: int
) -> None:
    known, stages = baseline(1.0, alone_s=alone_s), []
    while Survivors(plan()).next(known, mutant())[0] is Stage.SUITE:
        stages.append(Stage.SUITE)
        known = replace(known, suites_s=known.suites_s + known.total)
    assert len(stages) == suites


def test_what_a_run_of_one_test_takes_is_guessed_by_the_size_of_the_process_until_some_were_made() -> None:
    report = {"durations": dict.fromkeys(EVERYTHING, 1.0), "failing": {}}
    small, large = (Baseline.of(report, {"tests": TESTS, "seconds": 0.0, "megabytes": size}) for size in (40.0, 400.0))
    assert 3.0 < small.seconds_alone(EVERYTHING) < large.seconds_alone(EVERYTHING)
    known = replace(large, alone_s=(0.2, 1)).with_runs_alone({0: 1.4, 1: 0.5})  # the second took no longer than before
    assert known.seconds_alone(EVERYTHING) == pytest.approx(3.0 + 3 * 0.2)
    alone = known.with_isolated_runs({2: {"late": [], "lines": {}, "seconds": 2.0}, 1: None})
    assert alone.alone_s == pytest.approx((1.6, 4))
    unmeasured = replace(known, durations=[1.0, 0.0, 1.0])
    assert unmeasured.with_runs_alone({1: 30.0}).alone_s == known.alone_s


@pytest.mark.parametrize(
    ("asked", "verdict", "left"),
    [
        (plan(), {}, []),
        (plan(), {"status": "Survived"}, []),
        (plan(), {"status": "Killed"}, None),  # a test has failed with it meanwhile
        (plan(dependencies=True), {}, None),  # has to show what its verdict rests on
    ],
)
def test_no_test_is_left_of_a_mutant_that_the_whole_suite_passed_with(
    asked: TargetPlan, verdict: dict[str, str], left: list[int] | None
) -> None:
    known, survivor = baseline(1.0).with_survivor(mutant().survivor), replace(mutant(), verdict=verdict)
    assert Survivors(asked).left(known, survivor) == left
    assert Survivors(asked).left(baseline(1.0), survivor) is None


def test_a_kill_ends_what_is_known_of_a_survivor() -> None:
    known = baseline(1.0).with_survivor(mutant().survivor).with_kill(mutant().survivor, "f", 1)
    assert (known.survivors, known.killers) == ({}, {"f": "test_b"})


def test_a_known_survivor_is_tested_for_two_seconds() -> None:
    assert Survivors(plan()).again(baseline(0.9), EVERYTHING) == [0, 1]
    assert Survivors(plan()).again(baseline(2.1), EVERYTHING) == []


def test_before_a_long_suite_only_the_fastest_tests_run_that_cover_the_mutant() -> None:
    survivors, tests = Survivors(plan()), [0, 1, 2]
    assert survivors.before_suite(baseline(0.1), mutant(), tests) == tests  # a short one
    assert survivors.before_suite(baseline(1.0), mutant(), tests) == [0]
    assert survivors.before_suite(replace(baseline(1.0), durations=[0.2, 0.3, 9.0]), mutant(), tests) == [0, 1]
    assert survivors.before_suite(baseline(1.0, alone=ALONE), mutant(), tests) == tests  # it does not decide

"""Likely killers: which tests a fresh process runs first, for a mutant of code that runs at import."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from msp_bridge.python_engine.programs.baseline import Baseline
from msp_bridge.python_engine.programs.likely_killers import LikelyKillers

TESTS = [f"t.py::{name}" for name in ["other", "row[1]", "row[2]", "slow", "runs_it", "near", "fails_alone"]]
OTHER, ROW_1, ROW_2, SLOW, RUNS_IT, NEAR, FAILS_ALONE = range(len(TESTS))
MUTANT: Any = SimpleNamespace(path="m.py", place="m.py:f", left_out=(), change=SimpleNamespace(lines=[2]))


def likely(
    killers: dict[str, str],
    slow_s: float = 10.0,
    tests: Sequence[str] = TESTS,
    collecting_s: float = 0.1,
    by_text: Sequence[int] = (),
    **known: Any,
) -> list[int]:
    durations = dict.fromkeys(range(len(TESTS)), 0.1) | {SLOW: slow_s}
    measured = {"durations": durations, "failing": {}, "lines": {"m.py": {"2": hex(1 << RUNS_IT)}}, **known}
    facts = {"live": [], "suspended": [], "called": [], "read": False}
    baseline = Baseline.of(measured, {"tests": tests, "seconds": collecting_s, "files": {"m.py": facts}})
    for place, test in killers.items():
        baseline = baseline.with_kill(("m.py", (0, 1, place)), place, tests.index(test))
    numbers = {name: number for number, name in enumerate(tests)}
    return LikelyKillers(numbers, lambda test: test != FAILS_ALONE).of(baseline, MUTANT, by_text)


def test_the_likeliest_tests_come_first() -> None:
    killers = {"m.py:f": "t.py::row[2]", "m.py:g": "t.py::near", "n.py:f": "t.py::other"}
    assert likely(killers) == [ROW_2, RUNS_IT, NEAR, ROW_1]


def test_likely_tests_follow_and_thousands_of_rows_do_not() -> None:
    assert likely({"m.py:g": "t.py::near"}, by_text=[ROW_1]) == [RUNS_IT, NEAR, ROW_1, ROW_2]
    rows = [*TESTS, *(f"t.py::near[{row}]" for row in range(200))]
    assert len(likely({"m.py:g": "t.py::near[0]"}, tests=rows)) == 100


def test_a_test_that_fails_alone_is_none() -> None:
    assert likely({"m.py:f": "t.py::fails_alone"}) == [RUNS_IT]


def test_no_more_run_than_a_share_of_the_suite_takes_but_the_first() -> None:
    assert likely({"m.py:f": "t.py::slow", "m.py:g": "t.py::near"}) == [SLOW]
    assert likely({"m.py:f": "t.py::row[2]", "m.py:g": "t.py::near"}, slow_s=0.5) == [ROW_2, RUNS_IT]


def test_another_test_file_counts_as_much_as_it_takes_to_collect() -> None:
    tests = [*TESTS[:NEAR], "far.py::near", *TESTS[NEAR + 1 :]]
    killers = {"m.py:f": "t.py::row[2]", "m.py:g": "far.py::near"}
    assert likely(killers, slow_s=2.0, tests=tests) == [ROW_2, RUNS_IT, NEAR, ROW_1]
    assert likely(killers, slow_s=2.0, tests=tests, collecting_s=9.0) == [ROW_2, RUNS_IT, ROW_1]

"""The baseline: which tests have to be run alone for a survivor."""

from __future__ import annotations

from attrs import frozen

from msp_bridge.python_engine.programs.baseline import Baseline
from msp_bridge.python_engine.programs.live_code import CodeChange, SourceFile

CODE = """def whole(a):
    def inner(b):
        return b + 1
    return inner(a) - 2


class Box:
    size = lambda self: 3 * 4

    def area(self):
        return self.size() / 5
"""
TESTS = ["test_whole", "test_area", "test_nothing", "test_new"]
FUNCTIONS = [("box.py", "whole"), ("box.py", "Box.area"), ("other.py", "whole")]
RAN = {"test_whole": [0], "test_area": [1, 2], "test_nothing": [], "test_gone": [0]}


@frozen
class Case:
    baseline: Baseline

    def unknown_for(self, code: str, replacement: str) -> list[str]:
        found = self.baseline.unknown_for("box.py", change(code, replacement))
        return [TESTS[test] for test in found]


def change(code: str, replacement: str) -> CodeChange:
    start = CODE.index(code)
    return SourceFile("/project/box.py", CODE).change(start, start + len(code), replacement)


def baseline() -> Baseline:
    report = {"durations": {}, "failing": {}}
    return Baseline.of(report, {"tests": TESTS, "seconds": 0.0})


def test_without_an_earlier_run_each_test_has_to_run_alone() -> None:
    assert Case(baseline()).unknown_for("b + 1", "b - 1") == TESTS
    assert baseline().unknown_alone == [0, 1, 2, 3]


def test_a_test_that_is_known_runs_alone_for_the_functions_that_it_runs() -> None:
    known = baseline().knowing(FUNCTIONS, RAN)
    assert known.unknown_alone == [3]
    assert Case(known).unknown_for("b + 1", "b - 1") == ["test_whole", "test_new"]  # what is nested belongs to it
    assert Case(known).unknown_for("- 2", "+ 2") == ["test_whole", "test_new"]
    assert Case(known).unknown_for("/ 5", "* 5") == ["test_area", "test_new"]


def test_of_functions_that_are_not_told_apart_nothing_is_known() -> None:
    known = baseline().knowing(FUNCTIONS, RAN)
    assert Case(known).unknown_for("3 * 4", "3 / 4") == TESTS
    assert Case(baseline().knowing(FUNCTIONS[:1], {"test_area": [0]})).unknown_for("/ 5", "* 5") == TESTS


def test_what_has_been_run_alone_need_not_be_known() -> None:
    known = baseline().knowing(FUNCTIONS, RAN)
    report = {"subprocess_tests": "0x0", "late": [], "lines": {}}
    run = known.with_isolated_runs({0: report, 3: report})
    assert run.unknown_alone == []
    assert Case(run).unknown_for("b + 1", "b - 1") == []
    assert Case(run).unknown_for("/ 5", "* 5") == ["test_area"]


def test_an_edit_makes_what_was_known_unknown() -> None:
    known = baseline().knowing(FUNCTIONS, RAN)
    assert known.edited("box.py", None, {}, 0).unknown_alone == [0, 1, 2, 3]

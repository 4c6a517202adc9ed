"""The baseline: which tests have to be run alone for a survivor."""

from dataclasses import replace

import pytest
from attrs import frozen

from msp_bridge.python_engine.programs.baseline import Baseline, FileFacts, Held
from msp_bridge.python_engine.programs.live_code import CodeChange
from msp_bridge.python_engine.programs.source_file import SourceFile

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


def test_code_in_a_function_that_is_suspended_is_not_live_nor_are_its_tests_known() -> None:
    """It goes on with the code that it had, whatever the function gets."""
    found = [(name, line) for (name, line), _ in change("b + 1", "b - 1").changed]
    facts = FileFacts(frozenset([("whole", 1), *found]), frozenset([("whole", 1)]), frozenset(), read=False)
    known = replace(baseline(), facts={"box.py": facts})
    for code, replacement in (("b + 1", "b - 1"), ("- 2", "+ 2")):
        assert not known.allows_live_code("box.py", change(code, replacement))
        assert known.is_unseen("box.py", change(code, replacement))
    running = replace(known, facts={"box.py": replace(facts, suspended=frozenset())})
    assert running.allows_live_code("box.py", change("b + 1", "b - 1"))


def test_of_functions_that_are_not_told_apart_nothing_is_known() -> None:
    known = baseline().knowing(FUNCTIONS, RAN)
    assert Case(known).unknown_for("3 * 4", "3 / 4") == TESTS
    assert Case(baseline().knowing(FUNCTIONS[:1], {"test_area": [0]})).unknown_for("/ 5", "* 5") == TESTS


def test_what_has_been_run_alone_need_not_be_known() -> None:
    known = baseline().knowing(FUNCTIONS, RAN)
    report = {"late": [], "lines": {}}
    run = known.with_isolated_runs({0: report, 3: report})
    assert run.unknown_alone == []
    assert Case(run).unknown_for("b + 1", "b - 1") == []
    assert Case(run).unknown_for("/ 5", "* 5") == ["test_area"]


def test_time_in_which_others_used_the_cpu_counts_by_the_time_of_the_tests() -> None:
    report = {"failing": {}, "durations": dict.fromkeys(range(4), 0.1), "waited": 0.8}
    busy = replace(baseline(), unmeasured=0b1111).measured(report, all=True)
    assert busy.waited == pytest.approx(0.8)
    again = replace(busy, unmeasured=0b0001).measured({"failing": {}, "durations": {0: 0.1}, "waited": 0.0}, all=True)
    assert again.waited == pytest.approx(0.6)


def test_of_a_test_that_was_interrupted_some_lines_are_known_and_no_time() -> None:
    known = replace(baseline(), durations=[0.5, 0.0, 0.0, 0.0], unmeasured=0b0011)
    report = {"failing": {}, "durations": {0: 0.0, 1: 0.2}, "lines": {"box.py": {"3": "0x3"}}}
    assert replace(known, durations=[0.0] * 4).measured(report, in_order=False).covering("box.py", [3]) == [1, 0]
    known = known.measured(report, in_order=False)
    assert (known.durations[:2], known.unmeasured) == ([0.5, 0.2], 0b0011)


@pytest.mark.parametrize("name", ["alone", "order_dependent", "fork_unsafe", "unsteady"])
def test_what_is_known_of_a_test_is_known_of_it_by_another_number(name: str) -> None:
    moved = replace(baseline(), **{name: frozenset({0, 1})}).of_tests(["test_other", "test_area", "test_whole"])
    assert getattr(moved, name) == {1, 2}
    moved = replace(baseline(), **{name: frozenset({0, 2})}).of_tests(["test_other", "test_area", "test_whole"])
    assert getattr(moved, name) == {2}


def test_an_edit_makes_what_was_known_unknown() -> None:
    known = baseline().knowing(FUNCTIONS, RAN)
    assert known.edited("box.py", None, {}, 0).unknown_alone == [0, 1, 2, 3]


def survivors_after(new: str, tests: int) -> dict[str, Held]:
    """Of two survivors, in `whole` and in `Box.area`, after an edit that concerns `tests`: by their new code."""
    known = baseline()
    for code in ("a) - 2", "/ 5"):
        start = CODE.index(code)
        known = known.with_survivor(("box.py", (start, start + len(code), "None")))
    edited = known.edited("box.py", None, {}, tests, (CODE, new))
    return {new[start:end]: held for (_, (start, end, _)), held in edited.survivors.items()}


def test_after_an_edit_survivors_hold_for_the_tests_that_it_does_not_concern() -> None:
    above = CODE.replace("    def inner", "    a = +a\n    a = -a\n    def inner")
    assert survivors_after(above, 0b0011) == {"a) - 2": Held(0b1100, True), "/ 5": Held(0b1100, True)}
    assert survivors_after(CODE.replace("- 2", "- 3"), 0b0001) == {"/ 5": Held(0b1110, True)}
    assert survivors_after(CODE.replace("self.size() /", "self.size()  /"), 0b0010) == {"a) - 2": Held(0b1101, True)}
    assert survivors_after(CODE + "\n", 0) == {"a) - 2": Held(0b1111, True), "/ 5": Held(0b1111, True)}


def test_a_survivor_holds_for_no_test_of_which_is_not_known_what_it_runs() -> None:
    known = replace(baseline().with_survivor(("other.py", (0, 1, ""))), unmeasured=0b0100)
    assert set(known.edited("box.py", None, {}, 0b0001, (CODE, CODE)).survivors.values()) == {Held(0b1010, True)}


def test_a_survivor_holds_for_no_test_that_has_another_name_now() -> None:
    known = baseline().with_survivor(("box.py", (0, 1, ""))).of_tests(["test_other", "test_area", "test_whole"])
    assert known is not None
    assert set(known.survivors.values()) == {Held(0b110)}

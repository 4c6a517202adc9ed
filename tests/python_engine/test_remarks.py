"""What the user is told of tests that explain the verdicts, or make the run long."""

from typing import Any

from msp_bridge.python_engine.remarks import of_tests

NOTHING: Any = {"unsteady": [], "always_fresh": None, "fork_unsafe": [], "starting": {}}


def test_tests_that_start_processes_are_named_when_they_make_every_survivor_slow() -> None:
    assert not [*of_tests(NOTHING | {"starting": {"test_a": 4.8}})]
    [remark] = of_tests(NOTHING | {"starting": {"test_a": 1.5, "test_b": 4.2}})
    assert str(remark).startswith("2 tests with Python processes (such as test_b) take 6 s for each mutant")
    [remark] = of_tests(NOTHING | {"starting": {"test_a": 21.0}})
    assert str(remark).startswith("1 test with Python processes (test_a) takes 21 s for each mutant")


def test_each_cause_has_a_remark() -> None:
    found = of_tests({"unsteady": ["test_a"], "always_fresh": "a reason", "fork_unsafe": ["test_b"], "starting": {}})  # type: ignore[typeddict-item]
    assert [str(remark).partition(" ")[0] for remark in found] == ["test_a", "every", "test_b"]

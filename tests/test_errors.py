"""Errors as values: what they say, and what they keep when a project's name is put before them."""

from msp_bridge.errors import BaselineError, BridgeError, ToolError


def test_an_error_reads_as_problem_and_remedy() -> None:
    assert str(BridgeError("git failed", "install git")) == "git failed: install git"
    assert str(BridgeError("git failed")) == "git failed"
    assert str(BridgeError("git says: no repository.", "run `git init`")) == "git says: no repository: run `git init`"


def test_a_label_keeps_the_class_and_what_it_carries() -> None:
    error = BaselineError("the tests fail", "fix the tests first", ["test_a", "test_b"], "assert 1 == 2")
    labelled = error.labelled("mutmut in api/")
    assert isinstance(labelled, ToolError)
    assert str(labelled) == "mutmut in api/: the tests fail: fix the tests first"
    assert (labelled.failing, labelled.first_failure) == (("test_a", "test_b"), "assert 1 == 2")
    assert str(error) == "the tests fail: fix the tests first"

import traceback

import pytest
from subject.stack_frames import caller, depth, failing, named, place


def test_caller():
    assert caller() == "test_caller"


def test_named():
    assert named() == "named!"


def test_depth():
    assert depth() == 1


def test_place():
    assert place() == "test_place"


def test_frames():
    with pytest.raises(ZeroDivisionError) as caught:
        failing(1)
    assert [frame.name for frame in traceback.extract_tb(caught.tb)] == ["test_frames", "failing"]

from subject.core import clamp, middle


def test_clamp():
    assert clamp(5, 1, 9) == 5
    assert clamp(0, 1, 9) == 1
    assert clamp(12, 1, 9) == 9


def test_middle():
    assert middle(2, 4) == 3

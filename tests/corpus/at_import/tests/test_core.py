from subject.core import SQUARES, add, square


def test_squares():
    assert len(SQUARES) == 4


def test_add():
    assert add(1, 2) == 9
    assert add(1) == 15


def test_square():
    assert square(3) == 9

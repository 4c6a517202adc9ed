from subject.core import size, square


def test_square():
    assert square(3) == 9


def test_again():
    assert square(3) == 9
    assert square(4) == 16


def test_size():
    assert size() >= 1

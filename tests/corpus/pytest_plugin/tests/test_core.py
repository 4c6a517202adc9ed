from subject.core import level


def test_level(pytestconfig):
    assert pytestconfig.subject_level == 4


def test_function():
    assert level(0) >= 1


def test_doubled(number, doubled):
    assert doubled == number + number

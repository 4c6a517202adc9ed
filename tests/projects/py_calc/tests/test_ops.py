from calc.ops import TABLE, absolute, add, countdown, ignored


def test_add():
    assert add(1, 2) == 3, "one and two"


def test_absolute():
    assert absolute(3) == 3
    assert absolute(-3) == 3


def test_table():
    assert TABLE[3] == 9


def test_countdown():
    assert countdown(3) == 0


def test_ignored():
    assert ignored(1)

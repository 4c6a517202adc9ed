from calc.core import clamp, countdown


def test_clamp():
    assert clamp(-1, 0, 9) == 0
    assert clamp(5, 0, 9) == 5


def test_clamp_at_the_top():
    assert clamp(11, 0, 9) == 9


def test_countdown():
    assert countdown(3) == 0

from iniconfig import LIMITS, within


def test_limits():
    assert LIMITS["low"] == 1
    assert LIMITS["high"] == 10


def test_within():
    assert within(5)
    assert not within(0)

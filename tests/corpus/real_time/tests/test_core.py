import time

from subject.core import Clock


def test_a_tick_is_not_late():
    clock, start = Clock(), time.monotonic()
    assert clock.tick(2) == 2
    assert 0.02 <= time.monotonic() - start < 0.9


def test_late():
    clock = Clock()
    clock.tick(7)
    assert clock.late(1)

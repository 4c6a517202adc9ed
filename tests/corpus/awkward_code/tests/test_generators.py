from subject.generators import RUNNING, SHARED, accumulate, countdown


def test_first():
    assert next(SHARED) == 4
    assert RUNNING.send(2) == 2


def test_next():
    assert next(SHARED) in (3, 4)
    assert RUNNING.send(3) in (3, 5)


def test_fresh():
    assert list(countdown(2)) == [2, 1]
    fresh = accumulate()
    assert (next(fresh), fresh.send(1)) == (0, 1)

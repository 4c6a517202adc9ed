from subject.core import POOL


def test_first():
    assert POOL.first() == 1

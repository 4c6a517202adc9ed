from subject.core import READY, capped, doubled, total


def test_total():
    assert total([1, 2, 3]) == 12


def test_doubled():
    assert doubled(2) == 4


def test_capped():
    assert READY == 5
    assert capped(3) == 3
    assert capped(12) == 10

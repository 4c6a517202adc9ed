from subject.core import double, triple
from subject.plugin import half


def test_half():
    assert half(6) == 3


def test_double():
    assert double(4) == 8


def test_triple():
    assert triple(2) == 6

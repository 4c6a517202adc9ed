from subject.core import quarter, third
from subject.inner.deep import half


def test_quarter():
    assert quarter(8) == 2


def test_third():
    assert third(9) == 3


def test_half():
    assert half(4) == 2

import os

from subject.core import label, price


def test_price():
    assert price(2) == 20


def test_label():
    assert label(5) == "many"


def test_by_chance():
    assert label(1) in ("many", "few")
    assert os.urandom(1)[0] % 16

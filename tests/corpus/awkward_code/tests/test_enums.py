import pytest
from subject.enums import Level, Planet


def test_missing():
    assert Level(7) is Level.HIGH
    with pytest.raises(ValueError):
        Level(0)


def test_opposite():
    assert Level.LOW.opposite is Level.HIGH


def test_louder():
    assert Level.HIGH.louder() == 3


def test_planet():
    assert Planet.EARTH.density == 2

import pytest
from subject.metaclasses import Big, Registry, Thing


def test_label():
    assert Thing.label == "thing!"
    assert len(Thing) == 5


def test_names():
    assert Registry.names == ["Thing", "Big"]


def test_factor():
    assert Big.factor == 4


def test_size():
    thing = Thing()
    thing.size = 0
    assert thing.size == 0
    with pytest.raises(ValueError):
        thing.size = -1

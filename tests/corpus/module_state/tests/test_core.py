from subject.core import REGISTRY, known, lookup, register


def test_register():
    register("a", 1)
    assert "a" in REGISTRY


def test_lookup():
    assert lookup("a") == 4


def test_known():
    assert known() == 1

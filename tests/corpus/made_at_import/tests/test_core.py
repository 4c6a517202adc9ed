from subject.core import LEVELS, level


def test_level():
    assert level() == 6
    assert (LEVELS / "high").exists()

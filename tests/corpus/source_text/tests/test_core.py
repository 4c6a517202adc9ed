import inspect

from subject import core


def test_add():
    assert core.add(1, 2) == 3


def test_source():
    assert "one and other" in inspect.getsource(core.both)
    assert core.both(1, 1) in (1, 2)


def test_lines():
    lines, first = inspect.getsourcelines(core.add)
    assert (len(lines), first) == (2, 1)

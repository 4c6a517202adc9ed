import inspect

from subject import source_text


def test_add():
    assert source_text.add(1, 2) == 3


def test_source():
    assert "one and other" in inspect.getsource(source_text.both)
    assert source_text.both(1, 1) in (1, 2)


def test_lines():
    lines, first = inspect.getsourcelines(source_text.add)
    assert (len(lines), first) == (2, 2)

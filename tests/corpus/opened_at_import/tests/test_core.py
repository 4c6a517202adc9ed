from subject.core import add, log, logged, names


def test_add():
    add("a")
    assert "a" in names()


def test_log():
    log("x")
    assert "x" in logged()

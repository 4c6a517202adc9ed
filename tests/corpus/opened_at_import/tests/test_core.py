from subject.core import add, log, logged, names, save, saved


def test_add():
    add("a")
    assert "a" in names()


def test_log():
    log("x")
    assert "x" in logged()


def test_save():
    save("b")
    assert saved() == ["b"]

from subject.dispatch import shown, wrapped


def test_shown():
    assert shown(1) == "2"
    assert shown([1, 2]) == "2,3"


def test_wrapped():
    assert wrapped(None).startswith("<")

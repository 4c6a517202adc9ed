from subject.core import added, applied


def test_added():
    assert added(1, 2) == 3


def test_applied():
    assert applied(3) == 7

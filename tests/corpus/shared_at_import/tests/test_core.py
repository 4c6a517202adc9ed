from subject.core import bump, has_any, push


def test_bump():
    assert bump() >= 1


def test_push():
    push(3)
    assert has_any()

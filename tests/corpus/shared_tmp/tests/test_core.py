from subject.core import load, store


def test_store():
    store(3)
    assert load() == 12

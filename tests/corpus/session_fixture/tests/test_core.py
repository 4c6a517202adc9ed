import pytest
from subject.core import Store


@pytest.fixture(scope="session")
def store():
    store = Store().open(4)
    yield store
    assert store.close() == 4


@pytest.fixture(scope="module")
def row(store):
    return store.last()


def test_row(row):
    assert row == 6


def test_rows(store):
    assert len(store.rows) == 4


def test_first(store):
    assert store.rows[0] == 0

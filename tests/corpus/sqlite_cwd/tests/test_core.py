import pytest
from subject.core import add, clear, connect, total


@pytest.fixture
def connection():
    connection = connect()
    yield connection
    clear(connection)
    connection.close()


def test_one(connection):
    add(connection, "bread", 3)
    assert total(connection) == 3


def test_two(connection):
    add(connection, "bread", 3)
    add(connection, "milk", 2)
    assert total(connection) == 5

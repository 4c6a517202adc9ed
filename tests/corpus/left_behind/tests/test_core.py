import pytest
from subject.core import begin, count, end


@pytest.fixture
def lock():
    begin("work.lock")
    yield "work.lock"
    end("work.lock")


def test_begin(lock):
    assert count(lock) == 2


def test_end():
    begin("other.lock")
    end("other.lock")

import time

import pytest
from subject.core import ask, start

PORT = 17653  # below those that the system gives to connections


@pytest.fixture
def server():
    with start(PORT):
        time.sleep(0.05)
        yield


def test_small(server):
    assert ask(PORT, 2) == 3


def test_large(server):
    assert ask(PORT, 7) == 2

import pytest
from subject.core import ITEMS, pop, push


@pytest.fixture(autouse=True)
def _clear():
    ITEMS.clear()


def test_push():
    assert push(1) == 1


def test_pop():
    push(2)
    assert pop() == 3


def test_both():
    push(1)
    assert push(2) == 2

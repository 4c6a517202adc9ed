import asyncio

from subject.core import both, total


def test_total():
    assert asyncio.run(total(4)) == 6


def test_both():
    assert asyncio.run(both(4, 3)) == 3

import time

import pytest
from subject import core

PASSED = set()


@pytest.fixture
def after_area():
    if "area" not in PASSED:
        pytest.skip("needs test_area")


def test_area():
    time.sleep(0.2)  # the suite does not decide on each survivor
    assert core.area(2, 3) == 6
    assert core.price("kind")
    PASSED.add("area")


def test_volume(after_area):
    assert core.volume(2, 3, 4) == 24


def test_price(after_area):
    assert core.PRICES == {"kind": 8}


def test_weight():
    if "area" not in PASSED:
        pytest.xfail("needs test_area")
    assert core.weight(2) == 5

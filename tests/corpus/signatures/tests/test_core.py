import inspect

import pytest
from subject import core


def test_power():
    assert core.power(3) == 9
    assert core.power(2, 3) == 8


def test_wrong():
    with pytest.raises(TypeError, match="base"):
        core.power("x")


def test_registered():
    assert str(core.REGISTERED["power"]) == "(base: int, exponent: int = 2)"


def test_scaled():
    assert core.scaled(2) == 20
    assert inspect.signature(core.scaled).parameters["factor"].default == 10

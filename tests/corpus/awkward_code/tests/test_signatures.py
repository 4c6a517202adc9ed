import inspect

import pytest
from subject import signatures


def test_power():
    assert signatures.power(3) == 9
    assert signatures.power(2, 3) == 8


def test_wrong():
    with pytest.raises(TypeError, match="base"):
        signatures.power("x")


def test_registered():
    assert str(signatures.REGISTERED["power"]) == "(base: int, exponent: int = 2)"


def test_scaled():
    assert signatures.scaled(2) == 20
    assert inspect.signature(signatures.scaled).parameters["factor"].default == 10

"""What the tests with whole tools share."""

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from msp_bridge import python_engine
from msp_bridge.adapter import Surroundings

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def verdicts_depend_on_no_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bridge is installed editable here, so verdicts depend on this checkout: an edit meanwhile has all tested again."""
    found = python_engine.python_surroundings

    async def without_ours(*arguments: Any) -> Surroundings:
        surroundings = await found(*arguments)
        return evolve(surroundings, trees=tuple(tree for tree in surroundings.trees if tree != CHECKOUT))

    monkeypatch.setattr(python_engine, "python_surroundings", without_ours)

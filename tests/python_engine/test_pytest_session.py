"""How the tests are run: a test of hypothesis fails with the first example that does."""

from types import SimpleNamespace

import pytest
from hypothesis import given, settings, strategies

from msp_bridge.python_engine.programs.pytest_session import PytestSession


class Examples:
    @settings(database=None, max_examples=60)
    @given(number=strategies.integers())
    def all_are_small(self, number: int) -> None:
        SEEN.append(number)
        assert number < 100


SEEN: list[int] = []


def test_a_failing_example_is_not_made_smaller() -> None:
    items = [SimpleNamespace(), *(SimpleNamespace(function=Examples.all_are_small) for _ in range(2))]
    PytestSession().pytest_collection_finish(SimpleNamespace(items=items))
    with pytest.raises(AssertionError):
        Examples().all_are_small()
    large = [number for number in SEEN if number >= 100]
    assert large == large[:1] * 2, "it is run once more, for the message"
    assert Examples.all_are_small._hypothesis_internal_use_settings.max_examples == 60

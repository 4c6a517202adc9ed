"""How the tests are run: plug-ins do not repeat them, nor give them to other processes."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace

import pytest
from hypothesis import given, settings, strategies

from msp_bridge.python_engine.programs.pytest_session import PytestSession

XDIST = {"numprocesses": 8, "dist": "load", "tx": ["8*popen"]}
BENCHMARK = {
    "benchmark_min_time": Decimal("0.000005"),
    "benchmark_max_time": Decimal("1.0"),
    "benchmark_min_rounds": 5,
    "benchmark_warmup": True,
}
ONCE = {
    "benchmark_min_time": 0,
    "benchmark_max_time": 0,
    "benchmark_min_rounds": 1,
    "benchmark_warmup": False,
}


@pytest.mark.parametrize(
    ("given", "used"),
    [({}, {}), (XDIST, {"numprocesses": 0, "dist": "no", "tx": []}), (BENCHMARK, ONCE)],
    ids=["plain", "pytest-xdist", "pytest-benchmark"],
)
def test_plugins_neither_repeat_tests_nor_run_them_elsewhere(given, used) -> None:
    option = SimpleNamespace(**given)
    PytestSession().pytest_cmdline_main(SimpleNamespace(option=option))
    assert vars(option) == used


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

"""Which parts of isolation a tool's runs have, after its run without a mutant."""

from collections.abc import Collection
from pathlib import Path

import pytest

from msp_bridge.toolkit import Isolation, wanted_isolation

ALL, FEW = frozenset({"tmp", "overlay"}), frozenset({"overlay"})


@pytest.mark.parametrize(
    ("passing", "wanted", "tries"),
    [
        ((ALL, FEW, frozenset()), ALL, [ALL]),
        ((FEW, frozenset()), FEW, [ALL, frozenset(), FEW]),
        ((frozenset(),), frozenset(), [ALL, frozenset(), FEW]),
        ((), ALL, [ALL, frozenset()]),
    ],
)
async def test_the_most_parts_are_on_with_which_the_tests_pass(
    passing: Collection[frozenset[str]], wanted: frozenset[str], tries: list[frozenset[str]]
) -> None:
    isolation, tried = Isolation("a tool", Path("/"), (ALL, FEW)), list[frozenset[str]]()

    async def passes() -> bool:
        tried.append(isolation.wanted)
        return isolation.wanted in passing

    assert await isolation.decide(passes) is bool(passing)
    assert (isolation.wanted, tried) == (wanted, tries)


@pytest.mark.parametrize(("value", "parts"), [("", None), ("off", []), ("overlay, pid", ["overlay", "pid"])])
def test_the_variable_names_the_parts(value: str, parts: list[str] | None) -> None:
    assert wanted_isolation({}) is None
    assert wanted_isolation({"MSP_BRIDGE_ISOLATION": value}) == parts


async def test_a_try_that_is_broken_off_decides_nothing() -> None:
    isolation = Isolation("a tool", Path("/"), (ALL, FEW))

    async def passes() -> bool:
        if isolation.is_on:
            return False
        raise InterruptedError

    with pytest.raises(InterruptedError):
        await isolation.decide(passes)
    assert isolation.wanted == ALL

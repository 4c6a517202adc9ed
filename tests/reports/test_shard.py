"""Shards have every mutant once, and the same number of them; a missing one is noticed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.viewers import mutant

from msp_bridge.reports.shard import Shard, incomplete


@given(count=st.integers(0, 60), of=st.integers(1, 9))
def test_every_mutant_is_in_one_shard_and_all_shards_are_alike(count: int, of: int) -> None:
    mutants = [mutant(f"{line % 3}.py", line + 1) for line in range(count)]
    parts = [Shard(number, of).take(mutants) for number in range(1, of + 1)]
    assert sorted(found.id for part in parts for found in part) == sorted(found.id for found in mutants)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_the_order_of_discovery_changes_nothing() -> None:
    mutants = [mutant(line=line) for line in range(1, 20)]
    assert Shard(2, 3).take(mutants) == Shard(2, 3).take(reversed(mutants))


def test_a_file_is_spread_over_the_shards() -> None:
    mutants = [mutant(f"{file}.py", line) for file in range(2) for line in range(1, 101)]
    for number in (1, 2):
        part = Shard(number, 2).take(mutants)
        assert 30 < sum(found.path == "0.py" for found in part) < 70


@pytest.mark.parametrize("text", ["", "1", "0/3", "4/3", "1/0", "a/b", "-1/3", "1/3/5", "1.0/3"])
def test_what_is_no_shard_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="is not K/N"):
        Shard.parse(text)


def test_a_shard_is_written_as_k_of_n() -> None:
    assert Shard.parse("2/12") == Shard(2, 12)


MUTANTS = [mutant(line=1), mutant(line=2)]


def test_all_shards_are_complete_and_so_are_reports_of_none() -> None:
    assert incomplete([Shard(number, 2).config(MUTANTS) for number in (1, 2)]) is None
    assert incomplete([{}, {}]) is None


def test_a_missing_shard_is_named() -> None:
    reason = incomplete([Shard(2, 4).config(MUTANTS), Shard(4, 4).config(MUTANTS)])
    assert reason == "the reports of shards 1/4, 3/4 are missing"


def test_shards_of_other_mutants_are_not_taken_for_the_rest() -> None:
    reason = incomplete([Shard(1, 2).config(MUTANTS), Shard(2, 2).config(MUTANTS[:1])])
    assert reason is not None
    assert "different sets of mutants" in reason

"""Shard: which part of the mutants one of several CI jobs tests, and whether their reports make up the whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from itertools import islice
from typing import Any

from attrs import frozen

from msp_bridge.model import Mutant

TEXT = re.compile(r"(\d+)/(\d+)")
KEY = "shard"  # in a report's `config`
MAX_NAMED = 10  # of the shards that are missing


@frozen
class Shard:
    """Part `number` (from 1) of `of`.

    In the order of their ids, which is random, the mutants are dealt out like cards. So every shard has the same
    number, give or take one, and its fair part of each file: files differ in how long their mutants take. Each shard
    must be dealt from the same mutants, as on the same commit: `fingerprint` shows whether that was so.
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """From `K/N`; raises ValueError."""
        match = TEXT.fullmatch(text.strip())
        shard = cls(int(match[1]), int(match[2])) if match else None
        if shard is None or not 1 <= shard.number <= shard.of:
            raise ValueError(f"{text!r} is not K/N, part K of N, as 1/4")
        return shard

    def take(self, mutants: Iterable[Mutant]) -> set[Mutant]:
        """The mutants of this part."""
        return set(sorted(mutants, key=lambda mutant: mutant.id)[self.number - 1 :: self.of])

    def config(self, mutants: Iterable[Mutant]) -> dict[str, Any]:
        """What a report says of it; `mutants` are those of all parts."""
        return {KEY: {"number": self.number, "of": self.of, "of mutants": fingerprint(mutants)}}


def fingerprint(mutants: Iterable[Mutant]) -> str:
    """The same for the same mutants."""
    ids = "\n".join(sorted(mutant.id for mutant in mutants))
    return blake2b(ids.encode(), digest_size=8).hexdigest()


def incomplete(configs: Iterable[Mapping[str, Any]]) -> str | None:
    """Why the reports with these `config`s are no whole; None when they are, or when none is of a shard."""
    shards = [shard for shard in map(_shard_of, configs) if shard is not None]
    if not shards:
        return None
    if len({(shard.of, of_mutants) for shard, of_mutants in shards}) > 1:
        return "they are shards of different sets of mutants: run every shard on the same commit, with the same options"
    of = shards[0][0].of
    present = {shard.number for shard, _ in shards}
    missing = (f"{number}/{of}" for number in range(1, of + 1) if number not in present)
    match list(islice(missing, MAX_NAMED)):
        case []:
            return None
        case [one]:
            return f"the report of shard {one} is missing"
        case several:
            return f"the reports of shards {', '.join(several)} are missing"


def _shard_of(config: Mapping[str, Any]) -> tuple[Shard, str] | None:
    """The shard, and the fingerprint of all its mutants; None when another tool has written the `config`."""
    match config.get(KEY):
        case {"number": int(number), "of": int(of), "of mutants": str(of_mutants)}:
            return Shard(number, of), of_mutants
    return None

"""The code that each test runs when it runs alone: kept for the next run, in one row for each tool.

An edit may lead other tests to a survivor's code, and some would show that only when they run alone. A test that met,
when it ran alone, nothing that has changed would run the same again: `rule` says why. So it need not run alone once
more. The row is found again while the rest of the code is the same. It names for each test the sets of code it ran.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from attrs import frozen

from msp_bridge.adapter import RanAlone
from msp_bridge.incremental.code import Code
from msp_bridge.incremental.rows import hex_names, row_of_code, unchanged_sets
from msp_bridge.model import Ran
from msp_bridge.toolkit.kept_answers import KeptAnswers


@frozen
class RunsAlone:
    """Runs of single tests of one tool, of which an earlier run has shown the code, and that has not changed."""

    _key: bytes
    _sets: Mapping[str, Sequence[str]]  # by test, the names of the sets of code that it ran
    known: RanAlone

    @classmethod
    def of(cls, label: str, answers: KeptAnswers, code: Code) -> RunsAlone:
        """Read the runs of the tool `label`. Blocks."""
        key = blake2b(code.rest + json.dumps([label]).encode("ascii"), digest_size=16, person=b"alone").digest()
        row = answers.get(key, _read) or {}
        there = unchanged_sets({name for names in row.values() for name in names}, answers, code)
        sets = {test: names for test, names in row.items() if there.keys() >= set(names)}
        functions = code.functions()
        index = {digest: number for number, digest in enumerate(functions)}
        tests = {
            test: frozenset(index[digest] for name in names for digest in there[name] if digest in index)
            for test, names in sets.items()
        }
        return cls(key, sets, RanAlone(tuple(functions.values()), tests))

    def rows(self, code: Code, ran_alone: Mapping[str, tuple[Ran, ...]]) -> dict[bytes, Any]:
        """Rows of these runs, and of the ones that came since."""
        rows, sets = dict[bytes, Any](), dict(self._sets)
        for test, processes in ran_alone.items():
            found = [row_of_code(code.digests(ran)) for ran in processes]
            rows.update(found)
            sets[test] = [name.hex() for name, _ in found]
        return {**rows, self._key: sets}


def _read(row: Any) -> dict[str, tuple[str, ...]]:
    """Raises ValueError for what was not written here."""
    if not isinstance(row, dict):
        raise ValueError("a row does not say what tests ran")
    return {test: hex_names(names) for test, names in row.items()}

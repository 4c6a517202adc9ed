"""Rows: what is kept of a verdict, of the code and of the tests that verdicts depend on; and back, with each checked.

Every function that reads raises ValueError for what can't have been written here.

An edit may lead other tests to a survivor's code, and some would show that only when they run alone. A test that met,
when it ran alone, nothing that has changed would run the same again: `rule` says why. So it need not run alone once
more. The row is found again while the rest of the code is the same. It names for each test the sets of code it ran.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from attrs import frozen

from msp_bridge.adapter import RanAlone
from msp_bridge.incremental.code import SIZE, Code
from msp_bridge.model import Ran, Status
from msp_bridge.rows import names_of, result_fields
from msp_bridge.toolkit.kept_answers import KeptAnswers

REUSABLE = frozenset({Status.KILLED, Status.SURVIVED, Status.NO_COVERAGE, Status.COMPILE_ERROR, Status.TIMEOUT})


@frozen
class DependentVerdict:
    """A verdict that says what it depends on."""

    fields: Mapping[str, Any]  # see `verdict_fields`
    ran: tuple[str, ...]  # names of sets of code
    tests: str | None  # the name of a set of tests; None: it holds whatever tests there are

    @classmethod
    def of(cls, row: Any) -> DependentVerdict:
        """Read what is kept."""
        match row:
            case [verdict, ran, None]:
                return cls(verdict_fields(verdict), hex_names(ran), None)
            case [verdict, ran, tests]:
                return cls(verdict_fields(verdict), hex_names(ran), *hex_names([tests]))
        raise ValueError("a row is no verdict that says what it depends on")


def row_of_code(digests: frozenset[bytes]) -> tuple[bytes, Any]:
    """The row of a set of code, and its name."""
    joined = b"".join(sorted(digests))
    return blake2b(joined, digest_size=16, person=b"code").digest(), joined.hex()


def code_of(row: Any) -> frozenset[bytes]:
    """The digests of a set of code."""
    [name] = hex_names([row])
    joined = bytes.fromhex(name)
    if len(joined) % SIZE:
        raise ValueError("a row is no set of code")
    return frozenset(joined[at : at + SIZE] for at in range(0, len(joined), SIZE))


def unchanged_sets(names: Iterable[str], answers: KeptAnswers, code: Code) -> dict[str, frozenset[bytes]]:
    """The named sets of code that are unchanged. Blocks."""
    sets = answers.find(map(bytes.fromhex, names), code_of)
    return {name.hex(): digests for name, digests in sets.items() if code.has(digests)}


def row_of_tests(tests: Iterable[str]) -> tuple[bytes, Any]:
    """The row of a set of tests, and its name."""
    names = sorted(tests)
    joined = "\0".join(names).encode("utf-8", "surrogatepass")
    return blake2b(joined, digest_size=16, person=b"tests").digest(), names


def verdict_fields(row: Any) -> dict[str, Any]:
    """The fields of the `Result` of a verdict that is reused, all but the mutant."""
    fields = {**result_fields(row), "reused": True}
    if fields["status"] not in REUSABLE:
        raise ValueError("a row is no verdict that is reused")
    return fields


def hex_names(row: Any) -> tuple[str, ...]:
    """The names of rows, or digests, as hexadecimal digits."""
    names = names_of(row)
    for name in names:
        bytes.fromhex(name)
    return names


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

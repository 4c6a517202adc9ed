"""Rows: what the store holds of a verdict, and of the code that verdicts depend on. What is damaged is no row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

from msp_bridge.incremental.code import SIZE, Code
from msp_bridge.incremental.store import Store
from msp_bridge.model import Mutant, Result, Status

FIELDS = ("duration", "covered_by", "killed_by", "static", "status_reason", "tests_completed")  # of Result
REUSABLE = frozenset({Status.KILLED, Status.SURVIVED, Status.NO_COVERAGE, Status.COMPILE_ERROR})


def row_of_code(digests: frozenset[bytes]) -> tuple[bytes, Any]:
    """What is stored of a set of code, and under which name."""
    joined = b"".join(sorted(digests))
    return blake2b(joined, digest_size=16, person=b"code").digest(), joined.hex()


def code_of(row: Any) -> frozenset[bytes]:
    """From what is stored. What can't have been written here is no code that there is."""
    try:
        joined = bytes.fromhex(row)
    except (TypeError, ValueError):
        return frozenset({b""})
    return frozenset(joined[at : at + SIZE] for at in range(0, len(joined), SIZE))


def unchanged_sets(names: Iterable[str], store: Store, code: Code) -> dict[str, frozenset[bytes]]:
    """Those of the sets of code of these names whose code is all there. Blocks."""
    rows = store.find([bytes.fromhex(name) for name in names])
    sets = {key.hex(): code_of(row) for key, row in rows.items()}
    return {name: digests for name, digests in sets.items() if code.has(digests)}


def row_of_tests(tests: Iterable[str]) -> tuple[bytes, Any]:
    """What is stored of a set of tests, and under which name."""
    names = sorted(tests)
    joined = "\0".join(names).encode("utf-8", "surrogatepass")
    return blake2b(joined, digest_size=16, person=b"tests").digest(), names


def row_of(result: Result) -> dict[str, Any]:
    """What is stored of a verdict."""
    fields = {name: getattr(result, name) for name in FIELDS}
    return {"status": result.status.value, **{name: value for name, value in fields.items() if value is not None}}


def result_of(mutant: Mutant, value: Mapping[str, Any]) -> Result | None:
    """The verdict that was stored; None for what can't have been written here."""
    try:
        fields = {name: value[name] for name in FIELDS if name in value}
        tests: dict[str, Any] = {name: tuple(fields[name]) for name in ("covered_by", "killed_by") if name in fields}
        result = Result(mutant, Status(value["status"]), reused=True, **{**fields, **tests})
    except (TypeError, ValueError, KeyError):
        return None
    return result if result.status in REUSABLE else None

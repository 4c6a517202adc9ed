"""What the benchmarked servers report: the same mutants and details whoever sends them."""

from __future__ import annotations

from typing import Any

MUTANTS_PER_FILE = 200
MUTATOR = "number"
REPLACEMENT = "total + 1"
DESCRIPTION = "replaced total - 1"
COVERED_BY = ("tests/test_cart.py::test_total", "tests/test_cart.py::test_empty", "tests/test_cart.py::test_discount")
KILLED_BY = ("tests/test_cart.py::test_total",)
REASON = "AssertionError: assert 42 == 41"
DURATION = 12.5
TESTS = 3


def path_of(number: int) -> str:
    """The file that mutant `number` is in."""
    return f"shop/cart_{number // MUTANTS_PER_FILE}.py"


def line_of(number: int) -> int:
    """The line that it is on."""
    return number % MUTANTS_PER_FILE + 1


def reason(now: int) -> str:
    """A status reason that says when the result was ready (ns of CLOCK_MONOTONIC, which all processes share)."""
    return f"{REASON} @{now}"


def ready_at(status_reason: str) -> int:
    """The other way round."""
    return int(status_reason.rpartition("@")[2])


def on_the_wire(number: int, id: str, now: int) -> dict[str, Any]:
    """A MutantResult as JSON: what the bridge makes of the same result."""
    line = line_of(number)
    return {
        "id": id,
        "location": {"start": {"line": line, "column": 5}, "end": {"line": line, "column": 14}},
        "mutatorName": MUTATOR,
        "status": "Killed",
        "description": DESCRIPTION,
        "replacement": REPLACEMENT,
        "coveredBy": list(COVERED_BY),
        "duration": DURATION,
        "killedBy": list(KILLED_BY),
        "static": False,
        "statusReason": reason(now),
        "testsCompleted": TESTS,
    }

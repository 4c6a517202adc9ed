"""cattrs' preconf back ends for JSON: orjson, which the bridge uses, beside msgspec, on what it sends and receives."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from attrs import asdict, frozen

from benchmarks.laboratory import Laboratory, RealProject, SetUpFailed
from benchmarks.measuring import Comparison, Go, Values, alternate, compare
from msp_bridge.dialects import msp
from msp_bridge.model import Location, Position, Status

ROUNDS = 15
MUTANTS = 1000
CPU = "CPU \N{MICRO SIGN}s a mutant"


@frozen
class MutantResult:
    """A mutant after its test, as MSP has it."""

    id: str
    location: Location
    mutator_name: str
    status: Status
    description: str | None = None
    replacement: str | None = None
    covered_by: list[str] | None = None
    duration: float | None = None
    killed_by: list[str] | None = None
    status_reason: str | None = None
    tests_completed: int | None = None


@frozen
class Backend:
    """One back end: cattrs' converter, and the bare functions that it is built upon."""

    dump: Callable[[Any], bytes]
    parse: Callable[[bytes], Any]
    unstructure_and_dump: Callable[[Any], bytes]
    parse_and_structure: Callable[[bytes, type[Any]], Any]


def measure(_: Laboratory, project: RealProject, rounds: int | None) -> list[Comparison]:
    """A thousand results as one notification, a discovery of a thousand mutants as params; both ways."""
    del project
    backends = {"orjson": _orjson(), "msgspec": _msgspec()}
    results, wanted = _results(), _wanted()
    plain = {
        path: [
            asdict(one, value_serializer=lambda _, __, value: value.value if isinstance(value, Status) else value)
            for one in found
        ]
        for path, found in results.items()
    }
    received = backends["orjson"].unstructure_and_dump(wanted)
    parsed = backends["msgspec"].parse_and_structure(received, msp.MutationTestParams)
    assert asdict(parsed) == asdict(wanted)  # classes of the wire are not compared
    jobs: dict[str, Callable[[Backend], Callable[[], Any]]] = {
        "send: unstructure and dump": lambda backend: lambda: backend.unstructure_and_dump(results),
        "send: dump alone": lambda backend: lambda: backend.dump(plain),
        "receive: parse and structure": lambda backend: (
            lambda: backend.parse_and_structure(received, msp.MutationTestParams)
        ),
        "receive: parse alone": lambda backend: lambda: backend.parse(received),
    }
    comparisons = []
    for what, job in jobs.items():
        measured = alternate(rounds or ROUNDS, {name: _timed(job(backend)) for name, backend in backends.items()})
        comparisons += compare(what, measured, "orjson", "msgspec", {CPU: "\N{LESS-THAN OR EQUAL TO} 1"})
    return comparisons


def _timed(job: Callable[[], Any]) -> Go:
    def go() -> Values:
        began = time.process_time()
        for _ in range(5):
            job()
        return {CPU: (time.process_time() - began) / 5 / MUTANTS * 1e6}

    return go


def _orjson() -> Backend:
    import orjson as module
    from cattrs.preconf.orjson import make_converter

    converter = make_converter()
    return Backend(module.dumps, module.loads, converter.dumps, converter.loads)


def _msgspec() -> Backend:
    try:
        from cattrs.preconf.msgspec import make_converter
        from msgspec import json as module
    except ImportError as error:
        raise SetUpFailed(f"{error}: {sys.executable} -m pip install msgspec") from None
    converter = make_converter()
    return Backend(module.encode, module.decode, converter.dumps, converter.loads)


def _location(line: int) -> Location:
    return Location(Position(line, 5), Position(line, 14))


def _results() -> dict[str, list[MutantResult]]:
    results = [
        MutantResult(
            id=str(2**52 + number),
            location=_location(number + 1),
            mutator_name="number",
            status=Status.KILLED,
            description="replaced total - 1",
            replacement="total + 1",
            covered_by=["tests/test_cart.py::test_total", "tests/test_cart.py::test_empty"],
            duration=12.5,
            killed_by=["tests/test_cart.py::test_total"],
            status_reason="AssertionError: assert 42 == 41",
            tests_completed=2,
        )
        for number in range(MUTANTS)
    ]
    return {"shop/cart.py": results}


def _wanted() -> msp.MutationTestParams:
    mutants = [
        msp.DiscoveredMutant(str(2**52 + number), _location(number + 1), "number", "replaced total - 1", "total + 1")
        for number in range(MUTANTS)
    ]
    return msp.MutationTestParams(mutants={"shop/cart.py": msp.DiscoveredFile(mutants)})

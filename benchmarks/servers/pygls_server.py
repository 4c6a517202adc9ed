"""A mutation server as one would write it with pygls 2, as small as can be: one notification for each result.

Its arguments are MUTANTS and PAUSE_MS, as the settings of `instant_adapter`, and `dicts` or `types`. With `dicts` its
results are ready for JSON; with `types` they are attrs classes for pygls' converter, as lsprotocol's are, which is the
faster of the two: what is no class is looked at value by value.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import attrs
from pygls.protocol import JsonRPCProtocol, default_converter
from pygls.server import JsonRPCServer

sys.path.insert(0, str(Path(__file__).parents[1] / "scripted"))
import payload

server = JsonRPCServer(JsonRPCProtocol, default_converter)


@attrs.define
class Position:
    """MSP 0.4."""

    line: int
    column: int


@attrs.define
class Location:
    """MSP 0.4."""

    start: Position
    end: Position


@attrs.define
class MutantResult:
    """MSP 0.4; the fields are named as on the wire, so that pygls needs no renaming."""

    id: str
    location: Location
    mutatorName: str  # noqa: N815
    status: str
    description: str
    replacement: str
    coveredBy: list[str]  # noqa: N815
    duration: float
    killedBy: list[str]  # noqa: N815
    static: bool
    statusReason: str  # noqa: N815
    testsCompleted: int  # noqa: N815


@attrs.define
class MutantResultFile:
    """MSP 0.4."""

    mutants: list[MutantResult]


@attrs.define
class MutationTestResult:
    """MSP 0.4."""

    files: dict[str, MutantResultFile]


@server.feature("configure")
def configure(_: Any) -> Any:
    """The handshake."""
    return {"version": "0.4.0"}


@server.feature("mutationTest")
async def mutation_test(_: Any) -> Any:
    """Reports as many results as the command line says."""
    mutants, pause, progress = int(sys.argv[1]), float(sys.argv[2]) / 1000, PROGRESS[sys.argv[3]]
    for number in range(mutants):
        await asyncio.sleep(pause)  # also when it is 0: other requests must have their turn
        server.protocol.notify("reportMutationTestProgress", progress(number, time.monotonic_ns()))
    return {"files": {}}


def as_dicts(number: int, now: int) -> Any:
    """The params of one notification, ready for JSON."""
    return {"files": {payload.path_of(number): {"mutants": [payload.on_the_wire(number, id_of(number), now)]}}}


def as_types(number: int, now: int) -> Any:
    """The params of one notification, for the converter."""
    line = payload.line_of(number)
    result = MutantResult(
        id=id_of(number),
        location=Location(Position(line, 5), Position(line, 14)),
        mutatorName=payload.MUTATOR,
        status="Killed",
        description=payload.DESCRIPTION,
        replacement=payload.REPLACEMENT,
        coveredBy=list(payload.COVERED_BY),
        duration=payload.DURATION,
        killedBy=list(payload.KILLED_BY),
        static=False,
        statusReason=payload.reason(now),
        testsCompleted=payload.TESTS,
    )
    return MutationTestResult({payload.path_of(number): MutantResultFile([result])})


def id_of(number: int) -> str:
    """As long as the bridge's."""
    return str(number + 2**52)


PROGRESS = {"dicts": as_dicts, "types": as_types}

if __name__ == "__main__":
    server.start_io()

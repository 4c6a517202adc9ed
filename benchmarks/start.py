"""From the start of the process to the answer of `configure`, against StrykerJS's server and a pygls 2 server."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.client import Client
from benchmarks.laboratory import HERE, Laboratory, RealProject
from benchmarks.measuring import Comparison, Values, alternate, compare, cpu_of

ROUNDS = 15


def measure(laboratory: Laboratory, project: RealProject, rounds: int | None) -> list[Comparison]:
    """The bridge finds its tool meanwhile, in a real project; the others look for nothing."""
    bridge, pygls, stryker = laboratory.bridge(project), laboratory.pygls(), laboratory.stryker()
    with laboratory.copy_of(project) as root, laboratory.javascript() as javascript:
        measured = alternate(
            rounds or ROUNDS,
            {
                "msp-bridge": lambda: start([bridge, "serve", "stdio"], root),
                "StrykerJS": lambda: start([*stryker, "serve", "stdio"], javascript),
                "pygls": lambda: start([pygls, HERE / "servers" / "pygls_server.py", "0", "0", "types"], root),
            },
        )
    what = "start to `configure`"
    aims = {"CPU ms": "< 150 ms", "wall ms": "\N{LESS-THAN OR EQUAL TO} 0.2"}
    return [
        *compare(what, measured, "msp-bridge", "StrykerJS", aims),
        *compare(what, measured, "msp-bridge", "pygls", {"CPU ms": "", "wall ms": ""}),
    ]


def start(argv: Sequence[str | Path], root: Path, method: str = "configure", params: Any = None) -> Values:
    """One start, until the request is answered; the CPU is the server's own until then."""
    began = time.perf_counter()
    with Client.of(argv, root) as client:
        answer = client.request(method, params or {})
        wall = time.perf_counter() - began
        cpu = cpu_of(client.pid)
    assert "version" in str(answer), f"{argv} answered {answer}"
    return {"wall ms": wall * 1000, "CPU ms": cpu * 1000}

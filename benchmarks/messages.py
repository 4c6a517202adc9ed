"""Results through the front end, with an adapter whose results cost nothing, against a pygls 2 server.

`flowing` leaves out what comes before the first notification: the bridge discovers and selects the mutants of each
request, pygls has nothing to select. `paced` results are 2 ms apart, so that each is alone.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.client import Client
from benchmarks.laboratory import HERE, SCRIPTED, Laboratory, RealProject
from benchmarks.measuring import Comparison, Values, alternate, compare, cpu_of
from benchmarks.scripted import payload

ROUNDS = 7
FLOOD = 20_000
PACED = 300
PAUSE_MS = 2


def measure(laboratory: Laboratory, project: RealProject, rounds: int | None) -> list[Comparison]:
    """Against pygls with attrs types, which is how one writes it and the faster of the two, and with dicts."""
    comparisons = []
    with ExitStack() as servers:
        for mutants, pause, what in ((FLOOD, 0, "flood"), (PACED, PAUSE_MS, "paced")):
            sides = {"msp-bridge": servers.enter_context(bridge(laboratory, project, mutants, pause))}
            for kind in ("types", "dicts"):
                sides[f"pygls, {kind}"] = servers.enter_context(pygls(laboratory, mutants, pause, kind))
            goes = {name: lambda client=client, mutants=mutants: go(client, mutants) for name, client in sides.items()}
            measured = alternate(rounds or ROUNDS, goes)
            for other in ("pygls, types", "pygls, dicts"):
                comparisons += compare(what, measured, "msp-bridge", other, AIMS[what])
    return comparisons


AIMS = {
    "flood": {
        "CPU \N{MICRO SIGN}s a result": "",
        "CPU \N{MICRO SIGN}s a result, flowing": "\N{LESS-THAN OR EQUAL TO} 0.33",
        "latency ms, median": "",
        "results/s": "\N{GREATER-THAN OR EQUAL TO} 3",
        "results/s, flowing": "\N{GREATER-THAN OR EQUAL TO} 3",
    },
    "paced": {
        "latency ms, median": "",
        "latency ms, p99": "",
        "CPU \N{MICRO SIGN}s a result": "",
    },
}


@contextmanager
def bridge(laboratory: Laboratory, project: RealProject, mutants: int, pause: float = 0) -> Iterator[Client]:
    """The bridge with the instant adapter, configured."""
    argv: list[str | Path] = [laboratory.bridge(project), "serve", "stdio"]
    with laboratory.instant(mutants, pause) as root:
        with Client.of(argv, root, {"PYTHONPATH": str(SCRIPTED)}) as client:
            client.request("configure", {})
            yield client


@contextmanager
def pygls(laboratory: Laboratory, mutants: int, pause: float, kind: str) -> Iterator[Client]:
    """The pygls server, configured."""
    argv: list[str | Path] = [laboratory.pygls(), HERE / "servers" / "pygls_server.py", str(mutants), str(pause), kind]
    with laboratory.directory() as root, Client.of(argv, root) as client:
        client.request("configure", {})
        yield client


def go(client: Client, mutants: int) -> Values:
    """One `mutationTest` of everything; every result must have come, with the whole payload."""
    flow = Flow(client)
    began, cpu = time.perf_counter(), cpu_of(client.pid)
    client.request("mutationTest", {}, flow.progress)
    ended, cpu_ended = time.perf_counter(), cpu_of(client.pid)
    assert len(flow.latencies) == mutants, f"{len(flow.latencies)} results of {mutants}"
    after_first = mutants - flow.in_first
    return {
        "results/s": mutants / (ended - began),
        "results/s, flowing": after_first / (ended - flow.first_at),
        "CPU \N{MICRO SIGN}s a result": (cpu_ended - cpu) / mutants * 1e6,
        "CPU \N{MICRO SIGN}s a result, flowing": (cpu_ended - flow.first_cpu) / after_first * 1e6,
        "latency ms, median": statistics.median(flow.latencies),
        "latency ms, p99": statistics.quantiles(flow.latencies, n=100)[98],
    }


class Flow:
    """The results of one request, and when they came."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.latencies: list[float] = []  # ms from the adapter to here
        self.in_first, self.first_at, self.first_cpu = 0, 0.0, 0.0

    def progress(self, params: Any) -> None:
        """Take one notification."""
        now = time.monotonic_ns()
        for file in params["files"].values():
            self.latencies += [(now - payload.ready_at(mutant["statusReason"])) / 1e6 for mutant in file["mutants"]]
        if not self.in_first:
            self._check(params)
            self.in_first = len(self.latencies)
            self.first_at, self.first_cpu = time.perf_counter(), cpu_of(self._client.pid)

    def _check(self, params: Any) -> None:
        """Both sides must send the same."""
        (path, file), *_ = params["files"].items()
        first = file["mutants"][0]
        assert path == payload.path_of(0)
        assert first == payload.on_the_wire(0, first["id"], payload.ready_at(first["statusReason"])), first

"""Discovery of a real project per 1,000 mutants: by a server that has just started, and by one that did it before."""

from __future__ import annotations

import time

from benchmarks.client import Client
from benchmarks.laboratory import Laboratory, RealProject
from benchmarks.measuring import Comparison, Values, alternate, compare, cpu_of_tree
from benchmarks.whole import count

ROUNDS = 7


def measure(laboratory: Laboratory, project: RealProject, rounds: int | None) -> list[Comparison]:
    """Cold: new process, empty cache. Warm: the same server again. There is nothing else to compare: no tool has it."""
    discovery = Discovery(laboratory, project)
    measured = alternate(rounds or ROUNDS, {"warm": discovery.warm, "cold": discovery.cold}, warm_up=False)
    aims = {"wall ms per 1,000": "", "CPU ms per 1,000": ""}
    return compare("discover everything, warm", measured, "warm", "cold", aims)


class Discovery:
    """Each go has a server of its own."""

    def __init__(self, laboratory: Laboratory, project: RealProject) -> None:
        self._laboratory, self._project = laboratory, project
        self._bridge = laboratory.bridge(project)

    def cold(self) -> Values:
        """The first discovery."""
        return self._nth(1)

    def warm(self) -> Values:
        """The second."""
        return self._nth(2)

    def _nth(self, number: int) -> Values:
        with self._laboratory.copy_of(self._project) as root, self._laboratory.directory() as cache:
            with Client.of([self._bridge, "serve", "stdio"], root, {"MSP_BRIDGE_CACHE": str(cache)}) as client:
                client.request("configure", {})
                for _ in range(number):
                    values = discover(client)
        return values


def discover(client: Client) -> Values:
    """One `discover` of everything; CPU of the server and of all that it has running."""
    began, cpu = time.perf_counter(), cpu_of_tree(client.pid)
    found = client.request("discover", {})
    wall, cpu_ended = time.perf_counter() - began, cpu_of_tree(client.pid)
    thousands = count(found) / 1000
    assert thousands, "nothing was discovered"
    return {"wall ms per 1,000": wall * 1000 / thousands, "CPU ms per 1,000": (cpu_ended - cpu) * 1000 / thousands}

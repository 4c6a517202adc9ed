"""Testing one mutant again, as an editor does after an edit: a warm server against `mutmut run <that mutant>`."""

from __future__ import annotations

import asyncio
import itertools
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

from benchmarks.client import Client, run
from benchmarks.laboratory import Laboratory, RealProject
from benchmarks.measuring import Comparison, Values, alternate, compare, cpu_of_tree
from benchmarks.whole import count
from msp_bridge.model import Mutant
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.selection import Selection
from msp_bridge.workspace.workspace import Workspace

ROUNDS = 9
MUTMUT = "mutmut run NAME"


def measure(laboratory: Laboratory, project: RealProject, rounds: int | None) -> list[Comparison]:
    """Another mutant each round, spread over the project, the same for both; both are as warm as they get."""
    bridge, goes = laboratory.bridge(project), rounds or ROUNDS
    with laboratory.copy_of(project) as root, laboratory.copy_of(project) as mutmuts:
        mutants = asyncio.run(_discovered(root, bridge.with_name("python")))
        chosen = mutants[:: max(1, len(mutants) // (goes + 1))][: goes + 1]  # one is for the warm-up
        ours, theirs = itertools.cycle(chosen), itertools.cycle(chosen)
        with laboratory.directory() as cache:
            with Client.of([bridge, "serve", "stdio"], root, {"MSP_BRIDGE_CACHE": str(cache)}) as client:
                client.request("configure", {})
                measured = alternate(
                    goes,
                    {
                        "msp-bridge": lambda: by_bridge(client, next(ours)),
                        MUTMUT: lambda: by_mutmut(bridge.with_name("mutmut"), mutmuts, next(theirs)),
                    },
                )
    aims = {"wall ms": "\N{LESS-THAN OR EQUAL TO} 0.03", "CPU ms": ""}
    return compare("one mutant again", measured, "msp-bridge", MUTMUT, aims)


def by_bridge(client: Client, mutant: Mutant) -> Values:
    """One `mutationTest` with one mutant; CPU of the server and of all that it has running."""
    results: list[Any] = []
    start, end = mutant.location.start, mutant.location.end
    known = {
        "id": mutant.id,
        "location": {
            "start": {"line": start.line, "column": start.column},
            "end": {"line": end.line, "column": end.column},
        },
        "mutatorName": mutant.mutator,
        "replacement": mutant.replacement,
    }
    began, cpu = time.perf_counter(), cpu_of_tree(client.pid)
    client.request("mutationTest", {"mutants": {mutant.path: {"mutants": [known]}}}, results.append)
    wall, cpu_ended = time.perf_counter() - began, cpu_of_tree(client.pid)
    assert sum(map(count, results)) == 1, f"{mutant.id}: {results}"
    return {"wall ms": wall * 1000, "CPU ms": (cpu_ended - cpu) * 1000}


def by_mutmut(mutmut: Path, root: Path, mutant: Mutant) -> Values:
    """mutmut keeps what it can between runs in `mutants/`."""
    spent, _ = run([mutmut, "run", mutant.description or ""], root)  # mutmut's own name of it
    return {"wall ms": spent.wall * 1000, "CPU ms": spent.cpu * 1000}


async def _discovered(root: Path, python: Path) -> list[Mutant]:
    """With their handles, which are mutmut's names for them and no part of the protocol."""
    configuration = Configuration(adapters=("mutmut",), python=python)
    async with aclosing(Workspace.open(root, configuration)) as workspace:
        async with aclosing(workspace.discover(Selection())) as mutants:
            return [mutant async for mutant in mutants if isinstance(mutant, Mutant)]

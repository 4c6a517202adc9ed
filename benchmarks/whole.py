"""A whole run of a real project through the bridge, against `mutmut run` on a copy of the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.client import Client, Spent, run
from benchmarks.laboratory import Laboratory, RealProject
from benchmarks.measuring import Comparison, Values, alternate, compare

ROUNDS = 3
MUTMUT = "mutmut run"


def measure(laboratory: Laboratory, project: RealProject, rounds: int | None) -> list[Comparison]:
    """Nothing is cached for anyone: each go has a fresh copy and a fresh cache. The mutants must be as many."""
    whole = Whole(laboratory, project)
    sides = {"MSP client": whole.by_msp, "msp-bridge run": whole.by_command, MUTMUT: whole.by_mutmut}
    measured = alternate(rounds or ROUNDS, sides, warm_up=False)
    counts = {go["mutants"] for goes in measured.values() for go in goes}
    assert len(counts) == 1, f"not the same mutants: {measured}"
    mutants = f"{next(iter(counts)):.0f} mutants"
    aims = {"wall s": "\N{LESS-THAN OR EQUAL TO} 1", "CPU s": "\N{LESS-THAN OR EQUAL TO} 1"}
    return [
        *compare(f"discover + mutationTest, {mutants}", measured, "MSP client", MUTMUT, aims),
        *compare(f"msp-bridge run, {mutants}", measured, "msp-bridge run", MUTMUT, aims),
    ]


class Whole:
    """The ways to test everything."""

    def __init__(self, laboratory: Laboratory, project: RealProject) -> None:
        self._laboratory, self._project = laboratory, project
        self._bridge = laboratory.bridge(project)

    def by_msp(self) -> Values:
        """As an editor does: discover everything, test everything."""
        with self._fresh() as (root, env):
            with Client.of([self._bridge, "serve", "stdio"], root, env) as client:
                client.request("configure", {})
                found = count(client.request("discover", {}))
                results: list[Any] = []
                client.request("mutationTest", {}, results.append)
                spent = client.end()
        tested = sum(count(params) for params in results)
        assert tested == found, f"{tested} results for {found} mutants"
        return _values(spent, tested)

    def by_command(self) -> Values:
        """As one does in a terminal."""
        with self._fresh() as (root, env):
            report = root.parent / "report.json"
            spent, _ = run([self._bridge, "run", "--json", report], root, env)
            return _values(spent, count(json.loads(report.read_bytes())))

    def by_mutmut(self) -> Values:
        """With mutmut itself."""
        with self._fresh() as (root, env):
            spent, _ = run([self._bridge.with_name("mutmut"), "run"], root, env)
            statuses = (json.loads(meta.read_bytes()) for meta in root.glob("mutants/**/*.meta"))
            codes = [code for status in statuses for code in status["exit_code_by_key"].values()]
        return _values(spent, sum(code is not None for code in codes))

    @contextmanager
    def _fresh(self) -> Iterator[tuple[Path, dict[str, str]]]:
        """A copy of the project, and the environment that gives the bridge an empty cache."""
        with self._laboratory.copy_of(self._project) as root, self._laboratory.directory() as cache:
            yield root, {"MSP_BRIDGE_CACHE": str(cache)}


def count(report: Any) -> int:
    """The mutants in a DiscoverResult, a MutationTestResult or a report."""
    return sum(len(file["mutants"]) for file in report["files"].values())


def _values(spent: Spent, mutants: int) -> Values:
    return {"wall s": spent.wall, "CPU s": spent.cpu, "mutants": mutants}

"""cosmic-ray: a whole run of a real project through the bridge, against `cosmic-ray exec`, local distributor.

`cosmic-ray exec` starts pytest for each mutant: an hour for a library of some size. Of more mutants than SAMPLE it
tests evenly spread ones, and what they cost is scaled; the bridge tests all.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.client import Client, run
from benchmarks.laboratory import Laboratory, RealProject
from benchmarks.measuring import Comparison, Series, Values, alternate, compare, series

ROUNDS = 1  # of minutes each
SAMPLE = 200  # mutants
AIM = "\N{LESS-THAN OR EQUAL TO} 0.15; inflection, of which 71 % runs at import, 0.3"
EXEC = "cosmic-ray exec"
COMMAND = "python -m pytest -x -q -p no:cacheprovider"

Found = Counter[tuple[str, int, int, str]]  # how many mutants of a file end at a line and column, with a status


def measure(laboratory: Laboratory, project: RealProject, rounds: int | None) -> list[Comparison]:
    """Nothing is cached for anyone. The statuses are compared, too; none should differ, apart from CompileError."""
    ways = Ways(laboratory, project)
    sides = {"one worker": ways.one_worker, "two workers": ways.two_workers, EXEC: ways.by_exec}
    measured = alternate(rounds or ROUNDS, sides, warm_up=False)
    killed_or_not = f"{measured[EXEC][0]['mutants']:.0f} mutants"
    return [
        *compare(f"{killed_or_not}, one worker", measured, "one worker", EXEC, {"wall s": "", "CPU s": ""}),
        *compare(f"{killed_or_not}, two workers", measured, "two workers", EXEC, {"wall s": AIM, "CPU s": AIM}),
        *compare("discovery per 1,000 mutants", measured, "two workers", EXEC, {"discovery s": ""}),
        Comparison("one mutant again, warm", "ms", series(measured["two workers"], "again ms")),
        Comparison("statuses that differ", "count", Series([float(ways.differences())])),
    ]


class Ways:
    """The ways to test everything, and what each of them found."""

    def __init__(self, laboratory: Laboratory, project: RealProject) -> None:
        self._laboratory, self._project = laboratory, project
        self._bridge = laboratory.bridge(project)
        self._found: dict[str, Found] = {}

    def one_worker(self) -> Values:
        """Through the bridge, one mutant at a time, as cosmic-ray does it."""
        return self._by_msp(1)

    def two_workers(self) -> Values:
        """Through the bridge, two mutants at a time."""
        return self._by_msp(2)

    def by_exec(self) -> Values:
        """With cosmic-ray itself."""
        with self._fresh() as (root, _):
            tool, session = self._bridge.with_name("cosmic-ray"), root / "session.sqlite"
            path = {"PATH": f"{self._bridge.parent}:/usr/bin:/bin", "PYTHONPATH": f"{root}:{root / 'src'}"}
            run([tool, "baseline", "cosmic-ray.toml"], root, path)  # fails where the tests do: all would be killed
            initialised, _ = run([tool, "init", "cosmic-ray.toml", session], root, path)
            mutants, sample = _sampled(session)
            executed, _ = run([tool, "exec", "cosmic-ray.toml", session], root, path)
            with contextlib.closing(sqlite3.connect(session)) as database:
                rows = database.execute(
                    "select module_path, end_pos_row, end_pos_col, test_outcome, output "
                    "from mutation_specs natural join work_results"
                ).fetchall()
        self._found[EXEC] = Counter(
            (path, line, column + 1, _status(*verdict)) for path, line, column, *verdict in rows
        )
        return {
            "wall s": initialised.wall + executed.wall * mutants / sample,
            "CPU s": initialised.cpu + executed.cpu * mutants / sample,
            "discovery s": 1000 * initialised.wall / mutants,
            "mutants": mutants,
        }

    def differences(self) -> int:
        """How many statuses of the last run through the bridge aren't cosmic-ray's, place by place."""
        return (self._found[EXEC] - self._found["bridge"]).total()

    def _by_msp(self, jobs: int) -> Values:
        with self._fresh() as (root, env):
            argv: list[str | Path] = [
                self._bridge,
                "serve",
                "stdio",
                "--",
                "--adapter",
                "cosmic-ray",
                "--jobs",
                str(jobs),
            ]
            with Client.of(argv, root, env) as client:
                began = time.perf_counter()
                discovered = client.request("discover", {})["files"]
                found = time.perf_counter()
                results: list[Any] = []
                client.request("mutationTest", {}, results.append)
                ended = time.perf_counter()
                path, file = next((path, file) for path, file in discovered.items() if file["mutants"])
                client.request("mutationTest", {"mutants": {path: {"mutants": file["mutants"][:1]}}})
                again = time.perf_counter() - ended
                spent = client.end()
        tested = [
            (path, mutant) for params in results for path, file in params["files"].items() for mutant in file["mutants"]
        ]
        self._found["bridge"] = Counter(
            (path, *_end(mutant), _as_cosmic_ray(mutant["status"])) for path, mutant in tested
        )
        return {
            "wall s": ended - began,
            "CPU s": spent.cpu,
            "discovery s": 1000 * (found - began) / len(tested),
            "mutants": len(tested),
            "again ms": 1000 * again,
        }

    @contextlib.contextmanager
    def _fresh(self) -> Iterator[tuple[Path, dict[str, str]]]:
        with self._laboratory.copy_of(self._project) as root, self._laboratory.directory() as cache:
            (root / "cosmic-ray.toml").write_text(_configuration(self._project))
            yield root, {"MSP_BRIDGE_CACHE": str(cache), "PATH": f"{self._bridge.parent}:/usr/bin:/bin"}


def _configuration(project: RealProject) -> str:
    settings = tomllib.loads(project.settings)
    sources, excluded = settings["source_paths"], settings.get("do_not_mutate", [])
    command = " ".join([COMMAND, *settings.get("pytest_add_cli_args_test_selection", ())])
    return (
        f"[cosmic-ray]\nmodule-path = {sources}\nexcluded-modules = {excluded}\n"
        f'test-command = "{command}"\ntimeout = 30.0\n[cosmic-ray.distributor]\nname = "local"\n'
    )


def _sampled(session: Path) -> tuple[int, int]:
    """How many mutants the session had, and how many are left: evenly spread ones."""
    with contextlib.closing(sqlite3.connect(session)) as database, database:
        jobs = [job for (job,) in database.execute("select job_id from mutation_specs order by rowid")]
        step = -(-len(jobs) // SAMPLE)
        left_out = [(job,) for place, job in enumerate(jobs) if place % step]
        for table in ("mutation_specs", "work_items"):
            database.executemany(f"delete from {table} where job_id = ?", left_out)
    return len(jobs), len(jobs) - len(left_out)


def _status(outcome: str, output: str) -> str:
    return {"SURVIVED": "Survived", "KILLED": "Timeout" if output == "timeout" else "Killed"}.get(outcome, outcome)


def _as_cosmic_ray(status: str) -> str:
    """cosmic-ray runs the tests on what is no valid Python, and says killed."""
    return "Killed" if status == "CompileError" else status


def _end(mutant: Any) -> tuple[int, int]:
    """Where both agree: a mutant that changes the white space before its token begins earlier than cosmic-ray says."""
    end = mutant["location"]["end"]
    return end["line"], end["column"]

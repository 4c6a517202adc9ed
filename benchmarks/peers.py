"""Peers: mutmut, irradiate and pytest-gremlins beside the bridge: what a tested mutant costs, and which verdicts hold.

Each has all cores, and a fresh copy of the project. A verdict holds if a fresh process with the mutant in it gives the
same. pytest-gremlins reports a line and words such as "+ to -": which mutant that was is known only where these
words stand once in the line, or where the line is a whole `return`. Only such verdicts of it are drawn.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.client import Spent, run
from benchmarks.laboratory import Laboratory, RealProject
from benchmarks.measuring import Comparison, Values, alternate, compare, series
from msp_bridge.adapter import Mutant, Result, Status
from msp_bridge.reports.standard import entries
from msp_bridge.source import SourceText
from msp_bridge.testing import Oracle, pytest_command

ROUNDS = 1  # of half an hour, where a peer is slow
DRAWN = 30
AIMS = {"mutmut": "", "irradiate": "\N{LESS-THAN OR EQUAL TO} 0.25", "pytest-gremlins": ""}
OF_MUTMUT = {0: Status.SURVIVED, 5: Status.NO_COVERAGE, 33: Status.NO_COVERAGE}  # any other exit code is a kill
OF_GREMLINS = {"zapped": Status.KILLED, "survived": Status.SURVIVED, "timeout": Status.TIMEOUT}


def measure(laboratory: Laboratory, project: RealProject, rounds: int | None) -> list[Comparison]:
    """Everything from nothing, in turns."""
    peers = Peers(laboratory, project)
    sides = {
        "bridge": peers.by_bridge,
        "mutmut": peers.by_mutmut,
        "irradiate": peers.by_irradiate,
        "pytest-gremlins": peers.by_gremlins,
    }
    measured = alternate(rounds or ROUNDS, sides, warm_up=False)
    lines: list[Comparison] = []
    for other, aim in AIMS.items():
        lines += compare("each tested mutant", measured, "bridge", other, {"CPU ms": aim, "wall ms": ""})
    for name, goes in measured.items():
        mutants, drawn = int(goes[0]["mutants"]), int(goes[0]["drawn"])
        lines.append(Comparison(f"{name}: untested, of {mutants}", "count", series(goes, "untested")))
        lines.append(Comparison(f"{name}: verdicts that hold, of {drawn}", "count", series(goes, "hold")))
    return lines


class Peers:
    """The ways to test everything."""

    def __init__(self, laboratory: Laboratory, project: RealProject) -> None:
        self._laboratory, self._project = laboratory, project
        self._bridge = laboratory.bridge(project)
        settings = tomllib.loads(project.settings)
        self._sources: list[str] = settings["source_paths"]
        self._left_out: list[str] = settings.get("do_not_mutate", [])
        self._cores = str(os.cpu_count())

    def by_bridge(self) -> Values:
        """As one does in a terminal."""
        with self._fresh() as (root, env):
            report = root.parent / "report.json"
            spent, _ = run([self._bridge, "run", "--json", report], root, env)
            results = _reported(report)
            return self._values(root, spent, results, _drawn(results))

    def by_mutmut(self) -> Values:
        """Its survivors and kills by name; `mutmut apply` writes the mutant of a name."""
        mutmut = self._bridge.with_name("mutmut")
        with self._fresh() as (root, env):
            spent, _ = run([mutmut, "run"], root, env)
            verdicts: list[tuple[str, str, Status]] = []
            for meta in root.glob("mutants/**/*.meta"):
                path = meta.relative_to(root / "mutants").with_suffix("").as_posix()
                codes: dict[str, int] = json.loads(meta.read_bytes())["exit_code_by_key"]
                verdicts += [(path, name, OF_MUTMUT.get(code, Status.KILLED)) for name, code in codes.items()]
            results = [Result(_nowhere(path, name), status) for path, name, status in verdicts]
            drawn = []
            for result in _drawn(results):
                file = root / result.mutant.path
                before = SourceText.read(file)
                run([mutmut, "apply", result.mutant.mutator], root, env)
                after = SourceText.read(file).text
                file.write_text(before.text, "utf-8", newline="")
                whole = before.location(0, len(before.text))
                drawn.append(Result(Mutant(result.mutant.path, result.mutant.mutator, whole, after), result.status))
            return self._values(root, spent, results, drawn)

    def by_irradiate(self) -> Values:
        """Its report has a place and a replacement for each mutant."""
        irradiate = self._laboratory.peer(self._project, "irradiate").with_name("irradiate")
        with self._fresh() as (root, env):
            report = root.parent / "report.json"
            places = (root / "tests", *(root / source / "tests" for source in self._sources), root)
            tests = next(place for place in places if place.is_dir())
            argv: list[str | Path] = [
                irradiate,
                "run",
                *self._sources,
                "--tests-dir",
                str(tests.relative_to(root)),
                "--no-cache",
            ]
            argv += [word for pattern in self._left_out for word in ("--ignore", pattern)]
            spent, _ = run([*argv, "--workers", self._cores, "--report", "json", "--output", report], root, env)
            results = _reported(report)
            return self._values(root, spent, results, _drawn(results))

    def by_gremlins(self) -> Values:
        """The plug-in of a run of pytest."""
        python = self._laboratory.peer(self._project, "pytest-gremlins")
        with self._fresh() as (root, env):
            argv: list[str | Path] = [python, "-m", "pytest", "-q", "--gremlins", "--gremlin-report=json"]
            argv += [f"--gremlin-targets={','.join(self._sources)}", f"--gremlin-workers={self._cores}"]
            argv += [f"--gremlin-exclude={pattern}" for pattern in self._left_out]
            spent, _ = run([*argv, *self._project.tests], root, env)
            rows = json.loads((root / "coverage/gremlins/gremlins.json").read_bytes())["results"]
            results = [_of_gremlin(root, row) for row in rows]
            known = [result for result in results if result.mutant.replacement]
            return self._values(root, spent, results, _drawn(known))

    def _values(self, root: Path, spent: Spent, results: Sequence[Result], drawn: Sequence[Result]) -> Values:
        hold = len(drawn) - asyncio.run(self._differing(root, drawn))
        tested = sum(map(_is_tested, results))
        values = {"CPU ms": 1000 * spent.cpu / tested, "wall ms": 1000 * spent.wall / tested, "hold": hold}
        return {**values, "mutants": len(results), "untested": len(results) - tested, "drawn": len(drawn)}

    async def _differing(self, root: Path, drawn: Sequence[Result]) -> int:
        command = pytest_command(self._bridge.with_name("python"), *self._project.tests)
        oracle = await Oracle.of(root, command, environment={"PYTHONPATH": _search_path(root)})
        return len((await oracle.compare(drawn, jobs=os.cpu_count() or 1)).differences)

    @contextmanager
    def _fresh(self) -> Iterator[tuple[Path, dict[str, str]]]:
        """A copy of the project; the environment has an empty cache, and finds a library that is not installed."""
        with self._laboratory.copy_of(self._project) as root, self._laboratory.directory() as cache:
            yield root, {"MSP_BRIDGE_CACHE": str(cache), "PYTHONPATH": _search_path(root)}


def _search_path(root: Path) -> str:
    return os.pathsep.join([str(root / "src"), str(root)])


def _reported(report: Path) -> list[Result]:
    return [entry.result for entry in entries(json.loads(report.read_bytes()))]


def _is_tested(result: Result) -> bool:
    return result.status is not Status.NO_COVERAGE and (result.status.detected or result.status.undetected)


def _drawn(results: Iterable[Result]) -> list[Result]:
    tested = [result for result in results if _is_tested(result)]
    return random.Random(0).sample(tested, min(DRAWN, len(tested)))


def _nowhere(path: str, name: str) -> Mutant:
    """A mutant of which only the name is known."""
    start = SourceText("").location(0, 0)
    return Mutant(path, name, start, "")


def _of_gremlin(root: Path, row: dict[str, Any]) -> Result:
    """The replacement is empty where the report does not say which mutant it was."""
    path = Path(row["file_path"]).relative_to(root).as_posix()
    source = SourceText.read(root / path)
    start, end = source.line_offsets(row["line_number"])
    line = source.text[start:end]
    before, _, after = row["description"].partition(" to ")
    found = list(re.finditer(rf"(?<![\w=<>!+*/-]){re.escape(before)}(?![\w=<>+*/-])", line))
    if row["operator"] == "return":
        found, after = list(re.finditer(r"(?<=return )[^([{].*[^([{,\s]|(?<=return )\w+", line)), "None"
    mutant = _nowhere(path, row["operator"])
    if len(found) == 1 and before != "not x":
        place = source.location(start + found[0].start(), start + found[0].end())
        mutant = Mutant(path, row["operator"], place, after)
    return Result(mutant, OF_GREMLINS.get(row["status"], Status.IGNORED))

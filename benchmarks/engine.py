"""The Python engine as an editor meets it: the first verdict, an edit, one mutant again, memory.

Aims, on a machine that does nothing else: the first verdict within twice the plain suite and 2 s; after an edit of a
function 0.3 s and the tests that cover it; one mutant again 30 ms and its tests, where the code runs at import the
collection of the tests and 0.3 s; a world of its own 6 ms; memory of the host 1.5 times pytest's and 20 MB.
"""

from __future__ import annotations

import ast
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from benchmarks import long_suite
from benchmarks.client import Client, plain_pytest, run
from benchmarks.laboratory import Laboratory, RealProject
from benchmarks.measuring import Comparison, Series

ROUNDS = 5
SAMPLE = 60  # mutants that are known
REQUESTED = 20  # mutants of the first request
AT_MOST = "\N{LESS-THAN OR EQUAL TO}"
PLAIN = "the plain suite"
MEGABYTE = 1_000_000

Mutant = tuple[str, dict[str, Any]]  # path, and the mutant as the protocol has it


def measure(laboratory: Laboratory, project: RealProject, rounds: int | None) -> list[Comparison]:
    """One server for all but the first verdicts; where the suite takes minutes, see `long_suite`."""
    if project.function is not None:
        return long_suite.measure(laboratory, project)
    bridge, goes = laboratory.bridge(project), rounds or ROUNDS
    with laboratory.copy_of(project) as root:
        suite = [plain_pytest(bridge, root, *project.tests).wall for _ in range(goes + 1)][1:]
        first = [_first_verdict(laboratory, bridge, root) for _ in range(goes)]
        with laboratory.directory() as cache, _server(bridge, root, cache) as client:
            session = Session(client, root)
            memory = session.memory()
            again = {kind: session.again(kind, goes) for kind in (False, True)}
            edits = session.edits(goes)
        with laboratory.directory() as cache:
            with _server(bridge, root, cache, MSP_BRIDGE_ISOLATION="off") as client:
                shared = Session(client, root).again(False, goes)
        pytest_mb = _peak_of_pytest(bridge, root, project)
    own = [separate - other for separate, other in zip(again[False], shared, strict=True)]
    return [
        Comparison("first verdict, cold", "wall s", Series(first), PLAIN, Series(suite), f"{AT_MOST} 2 times + 2 s"),
        Comparison("one mutant again, beyond its tests", "ms", Series(again[False]), aim=f"{AT_MOST} 30"),
        Comparison("the same, where the code runs at import", "ms", Series(again[True]), aim="the collection + 300"),
        Comparison(
            "an edited function, beyond its mutant's tests", "ms", Series(edits), aim="the covering tests + 300"
        ),
        Comparison("a world of its own", "ms", Series(own), aim=f"{AT_MOST} 6"),
        Comparison("memory of the host", "MB", Series([memory]), "pytest", Series([pytest_mb]), "1.5 times + 20 MB"),
    ]


class Session:
    """A warm server: some mutants of the whole project have been tested once."""

    def __init__(self, client: Client, root: Path) -> None:
        self._client, self._root = client, root
        client.request("configure", {})
        found = _of(client.request("discover", {}))
        known: dict[str, Any] = {}
        for path, mutant in _spread(found, min(SAMPLE, len(found))):
            known.setdefault(path, {"mutants": []})["mutants"].append(mutant)
        self._results = _results(client, {"mutants": known})

    def again(self, static: bool, goes: int) -> list[float]:
        """What one mutant costs beyond its tests, in ms: one whose code runs at import, or one whose code does not."""
        chosen = [found for found in self._results if bool(found[1].get("static")) is static and _was_killed(found)]
        return [
            self._beyond(mutant, {"mutants": {mutant[0]: {"mutants": [mutant[1]]}}}) for mutant in _spread(chosen, goes)
        ]

    def edits(self, goes: int) -> list[float]:
        """A statement is put before one that a killed mutant is in, and the mutants of that line are tested."""
        chosen = [found for found in self._results if not found[1].get("static") and _was_killed(found)]
        return [self._edited(*mutant) for mutant in _spread([m for m in chosen if self._in_function(*m)], goes)]

    def memory(self) -> float:
        """Of the host and its servers, in MB; pages that they share are counted once."""
        below = psutil.Process(self._client.pid).children(recursive=True)
        return sum(map(_memory_of_host, below)) / MEGABYTE

    def _edited(self, path: str, mutant: dict[str, Any]) -> float:
        file, line = self._root / path, mutant["location"]["start"]["line"]
        before = file.read_text(encoding="utf-8")
        lines = before.splitlines(keepends=True)
        indentation = lines[line - 1][: len(lines[line - 1]) - len(lines[line - 1].lstrip())]
        file.write_text("".join([*lines[: line - 1], f"{indentation}0\n", *lines[line - 1 :]]), encoding="utf-8")
        span = {"start": {"line": line + 1, "column": 1}, "end": {"line": line + 2, "column": 1}}
        beyond = self._beyond((path, mutant), {"files": [{"path": path, "range": span}]}, first=True)
        file.write_text(before, encoding="utf-8")
        _results(self._client, {"files": [{"path": path, "range": span}]})
        return beyond

    def _beyond(self, mutant: Mutant, params: dict[str, Any], *, first: bool = False) -> float:
        """From the request to its first result, or to its end, less the time of the tests."""
        began = time.perf_counter()
        results: list[tuple[float, Mutant]] = []
        self._client.request("mutationTest", params, lambda p: results.extend((time.perf_counter(), m) for m in _of(p)))
        assert results, f"no result for {mutant}"
        at, (_, tested) = results[0] if first else results[-1]
        return 1000 * (at - began) - (tested.get("duration") or 0)

    def _in_function(self, path: str, mutant: dict[str, Any]) -> bool:
        """Whether its line begins a statement in a function."""
        tree = ast.parse((self._root / path).read_bytes())
        line = mutant["location"]["start"]["line"]
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        return any(statement.lineno == line for function in functions for statement in function.body[1:])


def _server(bridge: Path, root: Path, cache: Path, **environment: str) -> Any:
    env = {"MSP_BRIDGE_CACHE": str(cache), **environment}
    return Client.of([bridge, "serve", "stdio", "--", "--adapter", "mutmut", "--jobs", "2"], root, env)


def _memory_of_host(process: psutil.Process) -> int:
    """Bytes; none of one that is no host's, or has ended, as that of a mutant may."""
    try:
        words = process.cmdline()
        return int(process.memory_full_info().pss) if "host" in words and "supervisor" not in words else 0
    except psutil.NoSuchProcess:
        return 0


def _path(root: Path) -> dict[str, str]:
    """What finds a library that is not installed."""
    return {"PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}


def _first_verdict(laboratory: Laboratory, bridge: Path, root: Path) -> float:
    """From the start of a server with an empty cache to the first result of some mutants of one file.

    Not of one mutant: before a survivor is reported, each test is run alone once.
    """
    began, times = time.perf_counter(), list[float]()
    with laboratory.directory() as cache, _server(bridge, root, cache) as client:
        client.request("configure", {})
        found = client.request("discover", {})["files"]
        path, file = max(found.items(), key=lambda item: len(item[1]["mutants"]))
        some = {"mutants": {path: {"mutants": _spread(file["mutants"], min(REQUESTED, len(file["mutants"])))}}}
        client.request("mutationTest", some, lambda _: times.append(time.perf_counter()))
    return times[0] - began


def _peak_of_pytest(bridge: Path, root: Path, project: RealProject) -> float:
    """Of the process that runs the suite, in MB."""
    code = f"import pytest, resource; pytest.main(['-q', '-p', 'no:cacheprovider', *{list(project.tests)}])\n"
    code += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    return int(run([bridge.with_name("python"), "-c", code], root, _path(root))[1].splitlines()[-1]) * 1024 / MEGABYTE


def _results(client: Client, params: dict[str, Any]) -> list[Mutant]:
    found: list[Mutant] = []
    client.request("mutationTest", params, lambda progress: found.extend(_of(progress)))
    return found


def _of(progress: Any) -> list[Mutant]:
    return [(path, mutant) for path, file in progress["files"].items() for mutant in file["mutants"]]


def _was_killed(found: Mutant) -> bool:
    return found[1]["status"] == "Killed" and found[1].get("duration") is not None


def _spread(mutants: Sequence[Mutant], count: int) -> list[Mutant]:
    """`count` of them, from all over the project; the same ones again where there are too few."""
    assert mutants, "no such mutant"
    step = max(1, len(mutants) // count)
    return [mutants[number * step % len(mutants)] for number in range(count)]

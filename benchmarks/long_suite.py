"""The mutants of one function where the suite takes minutes: when the first is killed, and when the last survives.

One go, in turns: the collection of the tests, a server with an empty cache, the plain suite, the next server, an edit
of the function, a third server, and `mutmut run NAME`, which is asked for the survivor.

Aims: the first kill 5 s after the collection, 1 s in the next server; a survivor 1.3 times the suite, 5 s in the next
server; after an edit the first kill within 1.5 s, a survivor that was one before within the tests that cover it and
2 s. It has to pass the whole suite, and so a survivor that no server knows can't be reported sooner than that.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.client import Client, ServerFailed, plain_pytest, run
from benchmarks.laboratory import Laboratory, RealProject
from benchmarks.measuring import Comparison, Series

AT_MOST = "\N{LESS-THAN OR EQUAL TO}"
COLLECTION, SUITE, MUTMUT = "the plain collection", "the plain suite", "mutmut run NAME"
Times = Mapping[str, float]  # status to the seconds after which it was first reported


def measure(laboratory: Laboratory, project: RealProject) -> list[Comparison]:
    """Each row says when something was reported, from the start of the server or from the edit."""
    assert project.function is not None
    path, function, survivor = project.function
    bridge = laboratory.bridge(project)
    with laboratory.copy_of(project) as root, laboratory.directory() as cache:
        file = root / path
        collection = plain_pytest(bridge, root, *project.tests, "--collect-only").wall
        cold = _server_times(bridge, root, cache, path, function)
        suite = plain_pytest(bridge, root, *project.tests).wall
        again = _server_times(bridge, root, cache, path, function)
        with _served(bridge, root, cache) as client:
            _times(client, root, path, function, time.perf_counter())
            began, text = time.perf_counter(), file.read_text("utf-8")
            file.write_text(_edited(text, function), "utf-8")
            edited = _times(client, root, path, function, began)
            began = time.perf_counter()
            (file.parent / "tests/test_added.py").write_text("def test_added():\n    pass\n", "utf-8")
            added = _times(client, root, path, function, began)
        after = _server_times(bridge, root, cache, path, function)
        file.write_text(text, "utf-8")
        theirs = _seconds(lambda: _mutmut(bridge, root, path, function, survivor))

    def row(what: str, times: Times, status: str, other: str, seconds: float, aim: str) -> Comparison:
        return Comparison(what, "wall s", Series([times[status]]), other, Series([seconds]), aim)

    return [
        row("first kill, cold", cold, "Killed", COLLECTION, collection, f"{AT_MOST} it + 5 s"),
        row("survivor, cold", cold, "Survived", SUITE, suite, f"{AT_MOST} 1.3 times"),
        row("first kill, next server", again, "Killed", COLLECTION, collection, f"{AT_MOST} it + 1 s"),
        row("survivor, next server", again, "Survived", MUTMUT, theirs, f"{AT_MOST} 5 s"),
        row("first kill after an edit", edited, "Killed", MUTMUT, theirs, f"{AT_MOST} 1.5 s"),
        row("survivor after an edit", edited, "Survived", SUITE, suite, "its tests + 2 s"),
        row("survivor after a test was added", added, "Survived", COLLECTION, collection, f"{AT_MOST} it + 2 s"),
        row("survivor, next server after that", after, "Survived", MUTMUT, theirs, f"{AT_MOST} 5 s"),
    ]


def _served(bridge: Path, root: Path, cache: Path) -> Any:
    env = {"MSP_BRIDGE_CACHE": str(cache), "PYTHONPATH": str(root)}
    return Client.of([bridge, "serve", "stdio", "--", "--adapter", "mutmut", "--jobs", "2"], root, env)


def _server_times(bridge: Path, root: Path, cache: Path, path: str, function: str) -> Times:
    began = time.perf_counter()
    with _served(bridge, root, cache) as client:
        client.request("configure", {})
        return _times(client, root, path, function, began)


def _times(client: Client, root: Path, path: str, function: str, began: float) -> Times:
    """The mutants of the function are listed and tested."""
    node = _definition((root / path).read_text("utf-8"), function)
    span = {"start": {"line": node.lineno, "column": 1}, "end": {"line": (node.end_lineno or 0) + 1, "column": 1}}
    found = client.request("discover", {"files": [{"path": path, "range": span}]})["files"][path]["mutants"]
    times: dict[str, float] = {}

    def note(params: Any) -> None:
        for mutant in params.get("files", {}).get(path, {"mutants": []})["mutants"]:
            times.setdefault(mutant["status"], time.perf_counter() - began)

    client.request("mutationTest", {"mutants": {path: {"mutants": found}}}, note)
    assert {"Killed", "Survived"} <= times.keys(), times
    return times


def _edited(text: str, function: str) -> str:
    """With a statement more at the beginning of the function, which has no mutant itself."""
    first, lines = _definition(text, function).body[1], text.splitlines(keepends=True)
    lines.insert(first.lineno - 1, " " * first.col_offset + "pass\n")
    return "".join(lines)


def _definition(text: str, function: str) -> ast.FunctionDef:
    body: list[ast.stmt] = ast.parse(text).body
    for name in function.split("."):
        [node] = [each for each in body if isinstance(each, ast.ClassDef | ast.FunctionDef) and each.name == name]
        body = node.body
    assert isinstance(node, ast.FunctionDef)
    return node


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _mutmut(bridge: Path, root: Path, path: str, function: str, number: int) -> None:
    """It ends with 1 where mutants survive."""
    module = path.removesuffix(".py").replace("/", ".")
    name = f"{module}.x\u01c1{function.replace('.', chr(0x1C1))}__mutmut_{number}"
    try:
        run([bridge.with_name("mutmut"), "run", name], root)
    except ServerFailed as error:
        if "ended with 1:" not in str(error):
            raise

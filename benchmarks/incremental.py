"""`run --incremental` after no edit, after one of a function, and after ten, beside a run that tests everything.

Each edit puts a statement into another function of the code that is mutated, and stays.
"""

from __future__ import annotations

import ast
import random
from pathlib import Path

from benchmarks.client import run
from benchmarks.laboratory import Laboratory, RealProject
from benchmarks.measuring import Comparison, Series, Values

ROUNDS = 3
AIMS = {0: 0.03, 1: 0.15, 10: None}  # edited functions to the part of a whole run that it may cost


def measure(laboratory: Laboratory, project: RealProject, rounds: int | None) -> list[Comparison]:
    """One store for all; the whole run that stands beside is one that tests everything and keeps the verdicts."""
    bridge, chance = laboratory.bridge(project), random.Random(1)
    with laboratory.copy_of(project) as root, laboratory.directory() as cache:

        def go(*options: str) -> Values:
            spent, _ = run([bridge, "run", "-q", *options], root, {"MSP_BRIDGE_CACHE": str(cache)})
            return {"wall s": spent.wall, "CPU s": spent.cpu}

        def incremental(edits: int) -> Values:
            for _ in range(edits):
                _edit(root, chance)
            return go("--incremental")

        goes = []
        for _ in range(rounds or ROUNDS):
            whole = go("--incremental", "--force")
            goes.append((whole, [incremental(edits) for edits in AIMS]))
    return [
        Comparison(
            f"{edits} edited functions",
            metric,
            Series([some[number][metric] for _, some in goes]),
            "run --force",
            Series([whole[metric] for whole, _ in goes]),
            "" if aim is None else f"\N{LESS-THAN OR EQUAL TO} {aim}",
        )
        for number, (edits, aim) in enumerate(AIMS.items())
        for metric in ("wall s", "CPU s")
    ]


def _edit(root: Path, chance: random.Random) -> None:
    """Put a statement that changes nothing into some function."""
    found = [(file, node.body[0]) for file in _sources(root) for node in _functions(file)]
    file, first = chance.choice(found)
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    place = (first.end_lineno or first.lineno) if _is_docstring(first) else first.lineno - 1
    lines.insert(place, f"{' ' * first.col_offset}added = 0\n")
    file.write_text("".join(lines), encoding="utf-8")


def _is_docstring(statement: ast.stmt) -> bool:
    """A docstring must stay the first statement: without it, the edit would be one of the documentation."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _functions(file: Path) -> list[ast.FunctionDef]:
    tree = ast.parse(file.read_bytes())
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return [function for function in functions if function.body[0].lineno > function.lineno]


def _sources(root: Path) -> list[Path]:
    """The Python files that are no tests."""
    files = (file for file in sorted(root.rglob("*.py")) if not file.name.startswith(("test", "setup", "conftest")))
    return [file for file in files if {"tests", "docs"}.isdisjoint(file.relative_to(root).parts)]

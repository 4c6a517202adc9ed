"""Verdicts of the project's own tests, in a fresh process, on a copy of the project with the mutant written into it.

It knows nothing of mutmut, nor of the bridge, but for where a mutant stands and what it puts there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

LONG = 120  # s; the suites of these tests take about one
WORKERS = 2


def verdicts_of(project: Path, mutants: list[tuple[str, dict[str, Any]]], directory: Path) -> list[str]:
    """`Killed` or `Survived` for each pair of path and mutant, in this order."""
    copies: SimpleQueue[Path] = SimpleQueue()
    for number in range(WORKERS):
        copies.put(Path(shutil.copytree(project, directory / f"copy-{number}" / project.name)))

    def verdict_of(mutant: tuple[str, dict[str, Any]]) -> str:
        copy = copies.get()
        try:
            return _verdict_of(copy, *mutant)
        finally:
            copies.put(copy)

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(verdict_of, mutants))


def mutated(text: str, mutant: dict[str, Any]) -> str:
    """`text`, whose characters must all be one UTF-16 unit wide, with the mutant in it."""
    assert max(text) < "\U00010000"
    lines = text.split("\n")
    start, end = (
        sum(len(line) + 1 for line in lines[: place["line"] - 1]) + place["column"] - 1
        for place in (mutant["location"]["start"], mutant["location"]["end"])
    )
    return text[:start] + mutant["replacement"] + text[end:]


def _verdict_of(copy: Path, path: str, mutant: dict[str, Any]) -> str:
    file = copy / path
    original = file.read_text()
    file.write_text(mutated(original, mutant))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"],
            cwd=copy,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(copy)},
            capture_output=True,
            timeout=LONG,
        )
    finally:
        file.write_text(original)
    return "Survived" if done.returncode == 0 else "Killed"

"""A project in a large tree: the first verdict and one mutant again, beside the same project without the other files.

What is added are files that a project has beside its code: assets, fixtures, vendored documents. Nothing leaves them
out.
The plain suite stands beside in both trees, for pytest looks at each of these files, too.

Aims: one mutant again costs at most 1.2 times as much as in the small tree, and so does the first verdict, less what
plain pytest takes longer.
"""

from __future__ import annotations

import random
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.client import Client, plain_pytest
from benchmarks.laboratory import Laboratory, RealProject
from benchmarks.measuring import Comparison, Values, alternate, cpu_of_tree, series

ROUNDS = 5
FILES, A_DIRECTORY = 20_000, 40
SIZES = (200, 2_000, 8_000, 30_000)  # bytes; in turns
LARGE, SMALL = "20,000 other files", "none"
AT_MOST = "\N{LESS-THAN OR EQUAL TO}"
KINDS = ("json", "svg", "md", "csv", "txt")

Request = dict[str, Any]


def measure(laboratory: Laboratory, project: RealProject, rounds: int | None) -> list[Comparison]:
    """Both trees in turns."""
    bridge, goes = laboratory.bridge(project), rounds or ROUNDS
    with laboratory.copy_of(project) as large, laboratory.copy_of(project) as small:
        add_files(large)
        roots = {LARGE: large, SMALL: small}
        suite = alternate(goes, {name: partial(_plain_suite, bridge, root) for name, root in roots.items()})
        with ExitStack() as caches:
            cold = alternate(
                goes, {name: partial(_cold, laboratory, caches, bridge, root) for name, root in roots.items()}
            )
        warm = _warm(laboratory, bridge, roots, goes)
    return [
        *_beside("the plain suite", suite),
        *_beside("the first verdict, cold", cold, f"{AT_MOST} 1.2 and pytest's own"),
        *_beside("one mutant again", warm, f"{AT_MOST} 1.2"),
    ]


def add_files(root: Path) -> None:
    """`FILES` of them, in directories of `A_DIRECTORY`, two levels deep."""
    chance = random.Random(1)
    content = chance.randbytes(max(SIZES)).hex()
    for number in range(FILES // A_DIRECTORY):
        directory = root / "assets" / f"group{number // 25:02}" / f"set{number % 25:02}"
        directory.mkdir(parents=True)
        for file in range(A_DIRECTORY):
            start, size = chance.randrange(1000), SIZES[file % len(SIZES)]
            name = f"item{file:02}.{KINDS[file % len(KINDS)]}"
            (directory / name).write_text(content[start : start + size], encoding="ascii")


def _beside(what: str, measured: dict[str, list[Values]], aim: str = "") -> list[Comparison]:
    return [
        Comparison(what, metric, series(measured[LARGE], metric), SMALL, series(measured[SMALL], metric), aim)
        for metric in measured[LARGE][0]
    ]


def _plain_suite(bridge: Path, root: Path) -> Values:
    spent = plain_pytest(bridge, root)
    return {"wall s": spent.wall, "CPU s": spent.cpu}


def _cold(laboratory: Laboratory, caches: ExitStack, bridge: Path, root: Path) -> Values:
    """From the start of a server with an empty cache to the first verdict; CPU of the server and its processes.

    All caches are kept for as long as is measured: ext4 makes files many times slower soon after many were deleted.
    """
    cache, began = caches.enter_context(laboratory.directory()), time.perf_counter()
    with _server(bridge, root, cache) as client:
        _verdict(client, _mutant(client))
        return {"wall s": time.perf_counter() - began, "CPU s": cpu_of_tree(client.pid)}


def _warm(laboratory: Laboratory, bridge: Path, roots: dict[str, Path], goes: int) -> dict[str, list[Values]]:
    """The same mutant again and again, by a server for each tree."""
    with laboratory.directory() as one, laboratory.directory() as other:
        with _server(bridge, roots[LARGE], one) as large, _server(bridge, roots[SMALL], other) as small:
            clients = {LARGE: (large, _mutant(large)), SMALL: (small, _mutant(small))}
            return alternate(4 * goes, {name: partial(_again, *known) for name, known in clients.items()})


def _again(client: Client, mutant: Request) -> Values:
    began, cpu = time.perf_counter(), cpu_of_tree(client.pid)
    _verdict(client, mutant)
    wall, cpu_ended = time.perf_counter() - began, cpu_of_tree(client.pid)
    return {"wall ms": wall * 1000, "CPU ms": (cpu_ended - cpu) * 1000}


def _mutant(client: Client) -> Request:
    """One in the middle of the file that has most of them, whose code does not run at import."""
    client.request("configure", {})
    path, file = max(client.request("discover", {})["files"].items(), key=lambda item: len(item[1]["mutants"]))
    return {"mutants": {path: {"mutants": [file["mutants"][-1]]}}}


def _verdict(client: Client, mutant: Request) -> None:
    found: list[Any] = []
    client.request("mutationTest", mutant, found.append)
    assert len(found) == 1, found


def _server(bridge: Path, root: Path, cache: Path) -> Any:
    command: list[str | Path] = [bridge, "serve", "stdio", "--", "--adapter", "mutmut", "--jobs", "2"]
    return Client.of(command, root, {"MSP_BRIDGE_CACHE": str(cache)})

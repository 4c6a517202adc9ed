"""StrykerJS: its own server alone, and through the bridge, on a library from npm with its mocha tests."""

from __future__ import annotations

import os
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.client import Client, run
from benchmarks.laboratory import REPOSITORY, Laboratory, RealProject, SetUpFailed
from benchmarks.measuring import Comparison, Series, Values, alternate, compare, series

ROUNDS = 5
AT_MOST = "\N{LESS-THAN OR EQUAL TO}"
LOCK = REPOSITORY / "tests" / "npm" / "core9"
LIBRARY, FILE = "json-pointer", "index.js"
WITH_MOCHA = '{"testRunner": "mocha", "mutate": ["index.js"], "plugins": ["@stryker-mutator/mocha-runner"]}'
BY_COMMAND = '{"commandRunner": {"command": "mocha"}, "mutate": ["index.js"], "plugins": []}'  # one for each mutant
ALONE = "StrykerJS"
Mutants = list[dict[str, Any]]


def measure(laboratory: Laboratory, project: RealProject, rounds: int | None) -> list[Comparison]:
    """Both servers stay warm from the first request to the last of a round, and have one worker a core.

    StrykerJS ignores `mutants` and tests everything; one mutant again is asked of it by a range.
    """
    modules = _modules(laboratory)
    core = modules / "@stryker-mutator" / "core" / "bin" / "stryker.js"
    node = shutil.which("node")
    assert node is not None
    bridge: list[str | Path] = [laboratory.bridge(project), "serve", "stdio", "--", "--adapter", "stryker-js"]
    alone: list[str | Path] = [node, core, "serve", "stdio"]
    ways, slow = Ways(laboratory, modules, WITH_MOCHA), Ways(laboratory, modules, BY_COMMAND)
    measured = alternate(
        rounds or ROUNDS, {"bridge": lambda: ways.go("bridge", bridge), ALONE: lambda: ways.go(ALONE, alone)}
    )
    slowly = alternate(
        1, {"bridge": lambda: slow.go("bridge", bridge), ALONE: lambda: slow.go(ALONE, alone)}, warm_up=False
    )
    mutants = f"{measured['bridge'][0]['mutants']:.0f} mutants"
    return [
        *compare("start to the first discovery, the first time", measured, "bridge", ALONE, {"start s": ""}),
        *compare("start to the first discovery", measured, "bridge", ALONE, {"next s": f"{AT_MOST} 1.05"}),
        *compare("discovery after an edit", measured, "bridge", ALONE, {"discover ms": f"{AT_MOST} 1.05"}),
        *compare(f"{mutants}, all", measured, "bridge", ALONE, {"whole s": f"{AT_MOST} 1.05", "first s": ""}),
        *compare("one mutant again", measured, "bridge", ALONE, {"one s": f"{AT_MOST} 1.0"}),
        *compare("five of the mutants", measured, "bridge", ALONE, {"five s": f"{AT_MOST} 0.3"}),
        *compare(f"{mutants}, all, by a command", slowly, "bridge", ALONE, {"whole s": f"{AT_MOST} 1.05"}),
        *compare("five, by a command", slowly, "bridge", ALONE, {"five s": f"{AT_MOST} 0.3"}),
        Comparison("discovery again, nothing changed", "again ms", series(measured["bridge"], "again ms")),
        Comparison("statuses that differ", "count", Series(ways.differences("bridge"))),
        Comparison("statuses that differ, StrykerJS twice", "count", Series(ways.differences(ALONE))),
    ]


class Ways:
    """One round with one of the servers, and what each has found."""

    def __init__(self, laboratory: Laboratory, modules: Path, configuration: str) -> None:
        self._laboratory, self._modules, self._configuration = laboratory, modules, configuration
        self._found: defaultdict[str, list[dict[tuple[object, ...], str]]] = defaultdict(list)

    def go(self, way: str, argv: Sequence[str | Path]) -> Values:
        """Discover, edit, discover, test everything, one mutant, five mutants; discover in the next process."""
        with self._fresh() as (root, env):
            began = time.perf_counter()
            with Client.of(argv, root, env) as client:
                _start(client)
                started = time.perf_counter() - began
                with (root / FILE).open("a") as file:
                    file.write("// an edit\n")
                mutants, discovered = _timed(client, "discover", {})
                _, again = _timed(client, "discover", {})
                everything, whole, first = _tested(client, {})
                one = next(mutant for mutant in everything if mutant["status"] == "Killed")
                place = {"path": FILE, "range": one["location"]}
                _, one_again, _ = _tested(client, {"files": [place]})
                some = [mutant for mutant in everything if mutant["status"] == "Killed"][::30][:5]
                _, five, _ = _tested(client, {"mutants": {FILE: {"mutants": [_plain(mutant) for mutant in some]}}})
            began = time.perf_counter()
            with Client.of(argv, root, env) as client:
                _start(client)
                started_again = time.perf_counter() - began
        assert len(everything) == len(mutants["files"][FILE]["mutants"])
        self._found[way].append({_key(mutant): mutant["status"] for mutant in everything})
        return {
            "start s": started,
            "next s": started_again,
            "discover ms": 1000 * discovered,
            "again ms": 1000 * again,
            "whole s": whole,
            "first s": first,
            "one s": one_again,
            "five s": five,
            "mutants": len(everything),
        }

    def differences(self, way: str) -> list[float]:
        """How many statuses differ from those of StrykerJS's run before, for each run this way.

        Some do between any two runs: tests leave something behind, and which mutant comes next depends on the moment.
        """
        pairs = zip(self._found[way][1:], self._found[ALONE], strict=False)
        return [float(sum(other.get(key) != status for key, status in one.items())) for one, other in pairs]

    @contextmanager
    def _fresh(self) -> Iterator[tuple[Path, dict[str, str]]]:
        with self._laboratory.directory() as parent, self._laboratory.directory() as cache:
            root = Path(shutil.copytree(self._modules / LIBRARY, parent / LIBRARY))
            (root / "node_modules").symlink_to(self._modules)
            (root / "stryker.conf.json").write_text(self._configuration)
            path = os.pathsep.join([str(self._modules / ".bin"), os.environ["PATH"]])  # as npx does
            yield root, {"MSP_BRIDGE_CACHE": str(cache), "PATH": path}


def _start(client: Client) -> None:
    client.request("configure", {})
    client.request("discover", {})


def _timed(client: Client, method: str, params: dict[str, Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    answer = client.request(method, params)
    return answer, time.perf_counter() - began


def _tested(client: Client, params: dict[str, Any]) -> tuple[Mutants, float, float]:
    """The results; seconds until the answer, and until the first of them."""
    results: Mutants = []
    arrived: list[float] = []

    def take(progress: Any) -> None:
        arrived.append(time.perf_counter())
        results.extend(mutant for file in progress["files"].values() for mutant in file["mutants"])

    began = time.perf_counter()
    client.request("mutationTest", params, take)
    return results, time.perf_counter() - began, arrived[0] - began


def _plain(mutant: dict[str, Any]) -> dict[str, Any]:
    return {key: mutant[key] for key in ("id", "location", "mutatorName", "replacement")}


def _key(mutant: dict[str, Any]) -> tuple[object, ...]:
    place = [mutant["location"][side][unit] for side in ("start", "end") for unit in ("line", "column")]
    return (*place, mutant["mutatorName"], mutant["replacement"])


def _modules(laboratory: Laboratory) -> Path:
    """StrykerJS with its runner for mocha, and the library."""
    npm = shutil.which("npm")
    if shutil.which("node") is None or npm is None:
        raise SetUpFailed("node and npm are needed to measure StrykerJS: install Node 20")
    home = laboratory.home / "stryker-js"
    installed, lock = home / "installed", (LOCK / "package-lock.json").read_bytes()
    if not installed.is_file() or installed.read_bytes() != lock:
        home.mkdir(exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(LOCK / name, home)
        run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], home)
        installed.write_bytes(lock)
    return home / "node_modules"

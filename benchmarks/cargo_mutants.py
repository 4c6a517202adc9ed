"""cargo-mutants on a crate: the tool alone, and through the bridge, with as many jobs as the machine has processors."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.client import Client, run, selected
from benchmarks.laboratory import Laboratory, RealProject, SetUpFailed
from benchmarks.measuring import Comparison, Series, Values, alternate, compare, cpu_of_tree, series

ROUNDS = 2
CRATE, VERSION = "heck", "0.5.0"
ALONE = "cargo mutants"
AT_MOST = "\N{LESS-THAN OR EQUAL TO}"
STATUSES = {"CaughtMutant": "Killed", "MissedMutant": "Survived", "Unviable": "CompileError", "Timeout": "Timeout"}
MANIFEST = (
    '[package]\nname = "benchmark"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n{crate} = "={version}"\n'
)


def measure(laboratory: Laboratory, project: RealProject, rounds: int | None) -> list[Comparison]:
    """Everything from nothing, in turns; then one mutant again, once more, and after an edit.

    `cargo mutants` builds from nothing for each run, so it is asked for the one mutant once.
    """
    if shutil.which("cargo-mutants") is None:
        raise SetUpFailed("`cargo-mutants` is needed: cargo install --locked cargo-mutants")
    bridge = laboratory.bridge(project)
    found: dict[str, Counter[str]] = {}
    with _crate(laboratory) as root:
        sides = {"bridge": lambda: _by_bridge(laboratory, bridge, root, found), ALONE: lambda: _alone(root, found)}
        measured = alternate(rounds or ROUNDS, sides, warm_up=False)
    whole, again = (
        {"wall s": f"{AT_MOST} 1.0", "CPU s": f"{AT_MOST} 1.0"},
        {"again s": f"{AT_MOST} 0.3", "once more s": f"{AT_MOST} 0.3", "CPU again s": ""},
    )
    return [
        *compare(f"{found['bridge'].total()} mutants, all", measured, "bridge", ALONE, whole),
        *compare("one mutant again", measured, "bridge", ALONE, again),
        Comparison("the same after an edit", "s", series(measured["bridge"], "edited s")),
        *(
            Comparison(status, "count", Series([number]), ALONE, Series([found[ALONE][status] or float("nan")]))
            for status, number in sorted(found["bridge"].items())
        ),
    ]


def _by_bridge(laboratory: Laboratory, bridge: Path, root: Path, found: dict[str, Counter[str]]) -> Values:
    argv: list[str | Path] = [bridge, "serve", "stdio", "--", "--adapter", "cargo-mutants"]
    with laboratory.directory() as cache, Client.of(argv, root, {"MSP_BRIDGE_CACHE": str(cache)}) as client:
        client.request("configure", {})
        listed, _ = client.timed("discover", {})
        tested, results = client.timed("mutationTest", {})
        used = cpu_of_tree(client.pid)
        request = {"mutants": selected(next(result for result in results if result[1]["status"] == "Killed"))}
        again, _ = client.timed("mutationTest", request)
        used_again = cpu_of_tree(client.pid) - used
        once_more, _ = client.timed("mutationTest", request)
        with (root / "README.md").open("a") as file:
            file.write("\nAn edit.\n")
        edited, _ = client.timed("mutationTest", request)
    found["bridge"] = Counter(mutant["status"] for _, mutant in results)
    return {
        "wall s": listed + tested,
        "CPU s": used,
        "again s": again,
        "CPU again s": used_again,
        "once more s": once_more,
        "edited s": edited,
    }


def _alone(root: Path, found: dict[str, Counter[str]]) -> Values:
    output = root.parent / "output"
    argv: list[str | Path] = ["cargo", "mutants", "--output", output]
    whole, _ = run([*argv, "--jobs", str(os.cpu_count())], root)
    outcomes: list[Mapping[str, Any]] = json.loads((output / "mutants.out" / "outcomes.json").read_text())["outcomes"]
    mutants = [outcome for outcome in outcomes if outcome["scenario"] != "Baseline"]
    found[ALONE] = Counter(STATUSES.get(outcome["summary"], outcome["summary"]) for outcome in mutants)
    killed = next(outcome["scenario"]["Mutant"] for outcome in mutants if outcome["summary"] == "CaughtMutant")
    start = killed["span"]["start"]
    again, _ = run([*argv, "--re", f"^{killed['file']}:{start['line']}:{start['column']}: .*"], root)
    once = {"again s": again.wall, "once more s": again.wall, "CPU again s": again.cpu}
    return {"wall s": whole.wall, "CPU s": whole.cpu, **once}


@contextmanager
def _crate(laboratory: Laboratory) -> Iterator[Path]:
    """A copy of the crate, which cargo downloads."""
    with laboratory.directory() as parent:
        (parent / "src").mkdir()
        (parent / "src" / "lib.rs").touch()
        (parent / "Cargo.toml").write_text(MANIFEST.format(crate=CRATE, version=VERSION))
        done = subprocess.run(["cargo", "vendor"], cwd=parent, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SetUpFailed(f"cargo can't download {CRATE} {VERSION}: {done.stderr[-500:]}")
        root = parent / "crate" / CRATE
        shutil.copytree(parent / "vendor" / CRATE, root)
        yield root

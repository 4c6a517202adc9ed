"""gremlins: the tool alone, and through the bridge, on a real module of Go.

The tool's limit of time is three times what one run of the tests took. Go answers that run from its cache where it can:
then the limit is so short that mutants time out that the tests kill. So the tool runs with `-count=1`, which keeps the
cache out, and its time-outs are counted.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.client import Client, run, selected
from benchmarks.laboratory import Laboratory, RealProject, SetUpFailed
from benchmarks.measuring import Comparison, Series, Values, alternate, compare, series

ROUNDS = 2
MODULE = "github.com/Masterminds/semver/v3@v3.3.1"
ALONE = "gremlins unleash"
AT_MOST = "\N{LESS-THAN OR EQUAL TO}"
STATUSES = {"KILLED": "Killed", "LIVED": "Survived", "NOT COVERED": "NoCoverage", "TIMED OUT": "Timeout"}


def measure(laboratory: Laboratory, project: RealProject, rounds: int | None) -> list[Comparison]:
    """Everything from nothing, in turns and in fresh copies; then one mutant again, by the bridge alone."""
    tool = shutil.which("gremlins")
    if tool is None or shutil.which("go") is None:
        raise SetUpFailed("`go` and `gremlins` are needed: install Go, and gremlins by `go install`")
    bridge = laboratory.bridge(project)
    found: dict[str, Counter[str]] = {}
    measured = alternate(
        rounds or ROUNDS,
        {"bridge": lambda: _by_bridge(laboratory, bridge, found), ALONE: lambda: _alone(laboratory, tool, found)},
    )
    whole, aim = f"{found['bridge'].total()} mutants, all", f"{AT_MOST} 0.5"
    again = Series([go["again s"] / its["wall s"] for go, its in zip(measured["bridge"], measured[ALONE], strict=True)])
    edited, built = (series(measured["bridge"], name) for name in ("edited s", "built s"))
    beyond = Series([ours - its for ours, its in zip(edited.values, built.values, strict=True)])
    return [
        *compare("until the mutants are listed", measured, "bridge", ALONE, {"listed s": aim}),
        *compare(whole, measured, "bridge", ALONE, {"wall s": aim, "CPU s": aim}),
        Comparison("one mutant again, beside the tool's whole run", "ratio", again, aim=f"{AT_MOST} 0.1"),
        Comparison("the first verdict after an edit", "s", edited, "go test -c", built),
        Comparison("what it takes beyond that build", "s", beyond, aim=f"{AT_MOST} 1"),
        *(
            Comparison(f"{status}", "count", Series([number]), ALONE, Series([found[ALONE][status] or float("nan")]))
            for status, number in sorted(found["bridge"].items())
        ),
    ]


def _by_bridge(laboratory: Laboratory, bridge: Path, found: dict[str, Counter[str]]) -> Values:
    argv: list[str | Path] = [bridge, "serve", "stdio", "--", "--adapter", "gremlins"]
    with _module(laboratory) as root, laboratory.directory() as cache:
        before = _cpu()
        with Client.of(argv, root, {"MSP_BRIDGE_CACHE": str(cache)}) as client:
            client.request("configure", {})
            listed, _ = client.timed("discover", {})
            tested, results = client.timed("mutationTest", {})
            killed = next(result for result in results if result[1]["status"] == "Killed")
            request = {"mutants": selected(killed)}
            again, _ = client.timed("mutationTest", request)
            _edit(root / killed[0], 1)
            edited, _ = client.timed("mutationTest", request)
        cpu = _cpu() - before
        _edit(root / killed[0], 2)
        argv = ["go", "test", "-c", "-o", str(cache / "tests"), f"./{Path(killed[0]).parent}"]
        built, _ = run(argv, root)
    found["bridge"] = Counter(mutant["status"] for _, mutant in results)
    seconds = {
        "listed s": listed,
        "wall s": listed + tested,
        "again s": again,
        "edited s": edited,
        "built s": built.wall,
    }
    return {**seconds, "CPU s": cpu}


def _edit(file: Path, number: int) -> None:
    with file.open("a") as source:
        source.write(f"\nvar edited{number} = {number}\n")


def _alone(laboratory: Laboratory, tool: str, found: dict[str, Counter[str]]) -> Values:
    with _module(laboratory) as root, laboratory.directory() as output:
        env = {"GOFLAGS": f"{os.environ.get('GOFLAGS', '')} -count=1".strip(), "TMPDIR": str(output)}
        listed, _ = run([tool, "unleash", "--dry-run", "."], root, env)
        report = output / "report.json"
        argv = [tool, "unleash", "--workers", str(os.cpu_count()), "--output", str(report), "."]
        whole, _ = run(argv, root, env)
        files = json.loads(report.read_text())["files"]
    statuses = (mutation["status"] for file in files for mutation in file["mutations"])
    found[ALONE] = Counter(STATUSES.get(status, status) for status in statuses)
    return {"listed s": listed.wall, "wall s": whole.wall, "CPU s": whole.cpu}


def _cpu() -> float:
    """Seconds of CPU of all processes that were waited for."""
    times = resource.getrusage(resource.RUSAGE_CHILDREN)
    return times.ru_utime + times.ru_stime


@contextmanager
def _module(laboratory: Laboratory) -> Iterator[Path]:
    """A copy of the module, which go downloads once."""
    done = subprocess.run(["go", "mod", "download", "-json", MODULE], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetUpFailed(f"go can't download {MODULE}: {done.stderr[-500:]}")
    with laboratory.directory() as parent:
        root = parent / "module"
        shutil.copytree(json.loads(done.stdout)["Dir"], root)
        for path in (root, *root.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)
        yield root

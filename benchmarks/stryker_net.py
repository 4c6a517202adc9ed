"""Stryker.NET: the tool alone, and through the bridge, on a generated C# library with xunit tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from benchmarks.client import Client, selected
from benchmarks.laboratory import REPOSITORY, Laboratory, RealProject, SetUpFailed
from benchmarks.measuring import Comparison, Series, Values, alternate, compare, series

ROUNDS = 3
AT_MOST = "\N{LESS-THAN OR EQUAL TO}"
FILES = 18  # about 500 mutants
ALONE = "Stryker.NET"
PAGE = ["-r", "html", "--open-report:html"]
EXAMPLE = REPOSITORY / "examples" / "shop-net"
SOURCE = """namespace Shop;
public static class Part{n}
{{
    static readonly int Limit = {n} + 10;
    public static int Total(int price, int count) => price * count + (count > 3 ? -1 : {n});
    public static bool Free(int total) => total >= Limit && total % 7 != 3;
    public static int Sum(int last)
    {{
        var sum = {n};
        for (var i = 1; i <= last; i++)
        {{
            if (i % 3 == 0) sum += i; else sum -= 1;
        }}
        return sum;
    }}
    public static string Label(int total) => total > Limit ? "much: " + total : "little";
}}
"""
TESTS = """using Xunit;
namespace Shop.Tests;
public class Part{n}Tests
{{
    [Fact] public void Totals() => Assert.Equal(2 * 5 + {n}, Part{n}.Total(5, 2));
    [Fact] public void Frees() => Assert.True(Part{n}.Free({n} * 7 + 70));
    [Fact] public void Sums() => Assert.Equal({n} + 3 + 6 - 4, Part{n}.Sum(6));
    [Fact] public void Labels() => Assert.StartsWith("l", Part{n}.Label(0));
}}
"""
SCENARIO = """using Xunit;
namespace Shop.Tests;
public class ScenarioTests
{
    [Fact] public void Everything()
    {
        var labels = new System.Collections.Generic.List<string>();
CALLS
        Assert.NotEmpty(labels);
    }
}
"""
CALL = "        if (!Part{n}.Free(Part{n}.Total(1, 1))) labels.Add(Part{n}.Label(Part{n}.Sum(2)));"

Argv = list[str | Path]
Statuses = dict[tuple[object, ...], str]  # by place, mutator and replacement


def measure(laboratory: Laboratory, project: RealProject, rounds: int | None) -> list[Comparison]:
    """What comes before the first mutant in turns, in fresh copies; then, once each, everything and one mutant."""
    tool = shutil.which("dotnet-stryker")
    if tool is None or shutil.which("dotnet") is None:
        raise SetUpFailed(
            "`dotnet` and `dotnet-stryker` are needed: install the .NET SDK, and Stryker.NET as a global tool"
        )
    bridge: Argv = [laboratory.bridge(project), "serve", "stdio", "--", "--adapter", "stryker-net"]
    prepared = alternate(
        rounds or ROUNDS,
        {"bridge": lambda: _prepared_by_bridge(laboratory, bridge), ALONE: lambda: _prepared_alone(laboratory, tool)},
    )
    found: dict[str, Statuses] = {}
    measured = alternate(
        1,
        {"bridge": lambda: _through(laboratory, bridge, found), ALONE: lambda: _alone(laboratory, tool, found)},
        warm_up=False,
    )
    overlapping = alternate(
        1,
        {"bridge": lambda: _whole_by_bridge(laboratory, bridge), ALONE: lambda: _whole_alone(laboratory, tool)},
        warm_up=False,
    )
    mutants = f"{measured['bridge'][0]['mutants']:.0f} mutants"
    differing = sum(found[ALONE].get(key) != status for key, status in found["bridge"].items())
    return [
        *compare(
            "discovery, beside the time to the first mutant", prepared, "bridge", ALONE, {"ready s": f"{AT_MOST} 0.9"}
        ),
        *compare("one mutant of unchanged code", measured, "bridge", ALONE, {"one s": f"{AT_MOST} 0.08"}),
        *compare(f"{mutants}, all, no test runs two classes", measured, "bridge", ALONE, {"whole s": f"{AT_MOST} 0.9"}),
        *compare(f"{mutants}, all, one test runs all", overlapping, "bridge", ALONE, {"whole s": f"{AT_MOST} 0.9"}),
        Comparison(
            "the first verdict after an edit, from its discovery on", "s", series(measured["bridge"], "first s")
        ),
        Comparison("statuses that differ", "count", Series([float(differing)])),
    ]


def _prepared_by_bridge(laboratory: Laboratory, argv: Argv) -> Values:
    with _project(laboratory) as root, _client(laboratory, argv, root) as client:
        ready, _ = client.timed("discover", {})
    return {"ready s": ready}


def _prepared_alone(laboratory: Laboratory, tool: str) -> Values:
    with _project(laboratory) as root, laboratory.directory() as output:
        _, ready = _run(tool, root, output, PAGE, to_its_end=False)
    return {"ready s": ready}


def _through(laboratory: Laboratory, argv: Argv, found: dict[str, Statuses]) -> Values:
    with _project(laboratory) as root, _client(laboratory, argv, root) as client:
        ready, _ = client.timed("discover", {})
        whole, results = client.timed("mutationTest", {})
        killed = next(result for result in results if result[1]["status"] == "Killed")
        one, _ = client.timed("mutationTest", {"mutants": selected(killed)})
        with (root / "src/Shop/Part0.cs").open("a") as file:
            file.write("// an edit\n")
        client.request("discover", {})
        first, _ = client.timed("mutationTest", {"mutants": selected(killed)})
    found["bridge"] = {_key(path, mutant): mutant["status"] for path, mutant in results}
    return {"whole s": ready + whole, "one s": one, "first s": first, "mutants": len(results)}


def _whole_by_bridge(laboratory: Laboratory, argv: Argv) -> Values:
    with _project(laboratory, scenario=True) as root, _client(laboratory, argv, root) as client:
        ready, _ = client.timed("discover", {})
        whole, _ = client.timed("mutationTest", {})
    return {"whole s": ready + whole}


def _whole_alone(laboratory: Laboratory, tool: str) -> Values:
    with _project(laboratory, scenario=True) as root, laboratory.directory() as output:
        whole, _ = _run(tool, root, output, ["-r", "json", *PAGE])
    return {"whole s": whole}


def _alone(laboratory: Laboratory, tool: str, found: dict[str, Statuses]) -> Values:
    with _project(laboratory) as root, laboratory.directory() as output:
        whole, _ = _run(tool, root, output / "whole", ["-r", "json", *PAGE])
        one, _ = _run(tool, root, output / "one", ["-r", "json", "-m", "**/Part0.cs{0..100}"])
        report = json.loads(next((output / "whole" / "reports").glob("*.json")).read_text("utf-8-sig"))
        found[ALONE] = {
            _key(os.path.relpath(path, root), mutant): mutant["status"]
            for path, file in report["files"].items()
            for mutant in file["mutants"]
        }
    return {"whole s": whole, "one s": one}


def _run(tool: str, root: Path, output: Path, options: list[str], *, to_its_end: bool = True) -> tuple[float, float]:
    """Seconds to its end, and to its page, which is there before the first mutant is tested."""
    shims = output / "shims"
    shims.mkdir(parents=True)
    (shims / "xdg-open").write_text("#!/bin/sh\n")
    (shims / "xdg-open").chmod(0o755)
    began, ready = time.perf_counter(), 0.0
    env = {**os.environ, "PATH": f"{shims}{os.pathsep}{os.environ['PATH']}", "TMPDIR": str(output)}
    command = [tool, *options, "-O", str(output), "-c", str(os.cpu_count()), "--skip-version-check"]
    with subprocess.Popen(command, cwd=root, env=env, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and (to_its_end or not ready):
            if not ready and any((output / "reports").glob("*.html")):
                ready = time.perf_counter() - began
            time.sleep(0.02)
        if process.returncode is None:
            _end(process.pid)
    _end_servers(output)
    return time.perf_counter() - began, ready


def _end(pid: int) -> None:
    """The process and all that it has started."""
    tree = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    for member in tree:
        with suppress(psutil.NoSuchProcess):
            member.kill()
    psutil.wait_procs(tree[1:])


def _end_servers(output: Path) -> None:
    """Build servers, which the tool leaves behind, of the run with this temporary directory."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("TMPDIR") == str(output):
                _end(process.pid)


@contextmanager
def _client(laboratory: Laboratory, argv: Argv, root: Path) -> Iterator[Client]:
    """A bridge that knows nothing yet."""
    with laboratory.directory() as cache, Client.of(argv, root, {"MSP_BRIDGE_CACHE": str(cache)}) as client:
        client.request("configure", {})
        yield client


@contextmanager
def _project(laboratory: Laboratory, *, scenario: bool = False) -> Iterator[Path]:
    """The library; with a scenario one test runs code of all classes, so that no two mutants have disjoint tests."""
    with laboratory.directory() as parent:
        built = shutil.ignore_patterns("bin", "obj", "StrykerOutput", "Cart*.cs")
        root = Path(shutil.copytree(EXAMPLE, parent / "shop", ignore=built))
        for n in range(FILES):
            (root / f"src/Shop/Part{n}.cs").write_text(SOURCE.format(n=n))
            (root / f"tests/Shop.Tests/Part{n}Tests.cs").write_text(TESTS.format(n=n))
        if scenario:
            calls = "\n".join(CALL.format(n=n) for n in range(FILES))
            (root / "tests/Shop.Tests/ScenarioTests.cs").write_text(SCENARIO.replace("CALLS", calls))
        yield root


def _key(path: str, mutant: dict[str, Any]) -> tuple[object, ...]:
    place = [mutant["location"][side][unit] for side in ("start", "end") for unit in ("line", "column")]
    return (path, *place, mutant["mutatorName"], mutant["replacement"])

"""Real libraries that nobody here wrote, with their own tests, through a real server on a socket: one of Python, one from npm.

A sample of mutmut's statuses is checked by fresh processes; `MSP_BRIDGE_CHECK=all` checks every one (some minutes).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.fresh_process import mutated, verdicts_of
from support.msp_client import Client, ReaderWriter
from support.servers import Server, launched, mutants_of
from support.stryker_js_trees import CORE9, adapter_on, discovered, results_of

from msp_bridge.adapter import Mutant, Result, Status
from msp_bridge.testing import TreeState

REQUIREMENT = "inflection==0.5.1 --hash=sha256:1a29730d366e996aaacffb2f1f1cb9593dc38e2ddd30c91250c6dde09ea9b417\n"
CONFIGURATION = '{"testRunner": "mocha", "mutate": ["index.js"], "plugins": ["@stryker-mutator/mocha-runner"]}'
Results = dict[str, dict[str, Any]]


def inflection(home: Path) -> Path:
    """The sdist's tree, in a directory named as the library is."""
    (home / "requirements.txt").write_text(REQUIREMENT)
    download = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "--require-hashes"]
    subprocess.run([*download, "-q", "-r", "requirements.txt"], cwd=home, check=True, stdin=subprocess.DEVNULL)
    with tarfile.open(next(home.glob("*.tar.gz"))) as sdist:
        sdist.extractall(home, filter="data")
    return next(home.glob("inflection-*/")).rename(home / "inflection")


def json_pointer(home: Path) -> Path:
    """The package's tree, with the packages that it and its tests need."""
    assert CORE9.is_dir(), f"{CORE9} is missing: `make test` installs it"
    root = Path(shutil.copytree(CORE9 / "json-pointer", home / "json-pointer"))
    (root / "node_modules").symlink_to(CORE9)
    (root / "stryker.conf.json").write_text(CONFIGURATION)
    return root


def processes_of(server: Server) -> list[psutil.Process]:
    return psutil.Process(server.process.pid).children(recursive=True)


async def results(client: Client, params: dict[str, Any]) -> Results:
    """What a `mutationTest` reports of each mutant, by its id."""
    assert await client.request("mutationTest", params) == {"files": {}}
    taken = client.take_results()
    by_id = {mutant["id"]: mutant for _, mutant in taken}
    assert len(by_id) == len(taken), "a mutant was reported twice"
    return by_id


async def scenario(server: Server, library: Path) -> list[tuple[str, dict[str, Any]]]:
    """All results, with the paths of their mutants."""
    client = await server.connect()
    assert await client.request("configure", {}) == {"version": "0.4.0"}
    found = mutants_of(await client.request("discover", {}))
    by_id = {mutant["id"]: mutant for _, mutant in found}
    assert len(by_id) == len(found) > 170
    paths = {mutant["id"]: path for path, mutant in found}
    for path, mutant in found:
        text = (library / path).read_text()
        assert mutated(text, mutant) != text
        if path.endswith(".py"):
            compile(mutated(text, mutant), path, "exec")

    everything = await results(client, {})
    assert everything.keys() == by_id.keys()
    path, mutant = next((path, mutant) for path, mutant in found if everything[mutant["id"]]["status"] == "Killed")
    position = {key: mutant[key] for key in ("location", "mutatorName", "replacement", "id")}
    one = {"mutants": {path: {"mutants": [position]}}}
    assert [tested["status"] for tested in (await results(client, one)).values()] == ["Killed"]
    some = [each for at, each in found if at == path][::40]
    tested = await results(client, {"mutants": {path: {"mutants": some}}})
    assert tested.keys() == {each["id"] for each in some}
    for whole in (mutant["location"], {"start": {"line": 30, "column": 1}, "end": {"line": 110, "column": 1}}):
        within = mutants_of(await client.request("discover", {"files": [{"path": path, "range": whole}]}))
        ranged = await results(client, {"files": [{"path": str(library / path), "range": whole}]})
        assert 0 < len(ranged) < len(found)
        assert ranged.keys() == {each["id"] for _, each in within}
        assert {id: each["status"] for id, each in ranged.items()} == {id: everything[id]["status"] for id in ranged}
    assert await results(client, {"files": []}) == {}

    idle = len(processes_of(server))
    request = await client.ask("mutationTest", {"files": [{"path": path}]})
    await client.some_progress()
    await client.cancelled(request)
    assert len(processes_of(server)) <= idle  # at once: the answer comes when they are gone
    client.take_results()
    leaving = await server.connect()
    await leaving.ask("mutationTest", {})
    await leaving.some_progress()
    assert isinstance(leaving.wire, ReaderWriter)
    leaving.wire.abort()
    assert (await results(client, one)).keys() == {mutant["id"]}

    running = await client.ask("mutationTest", {})
    await client.some_progress()
    at_path = mutants_of(await client.request("discover", {"files": [{"path": str(library / path)}]}))
    assert {each["id"] for _, each in at_path} == {id for id, at in paths.items() if at == path}
    newer = await client.ask("mutationTest", one)
    assert await client.result(newer) == await client.result(running) == {"files": {}}
    reported = Counter(tested["id"] for _, tested in client.take_results())
    assert reported[mutant["id"]] in (1, 2)  # the first progress was taken
    assert reported.keys() <= by_id.keys()
    return [(paths[id], each) for id, each in everything.items()]


@pytest.mark.parametrize(("laid_out", "adapter"), [(inflection, "mutmut"), (json_pointer, "stryker-js")])
async def test_a_client_gets_everything_from_a_real_library(laid_out: Any, adapter: str, tmp_path: Path) -> None:
    library = laid_out(tmp_path)
    tree = TreeState.of(library)
    options = ("--adapter", adapter, "--python", sys.executable)
    async with launched(library, "serve", "socket", "--port", "0", "--", *options) as server:
        everything = await scenario(server, library)
        left = processes_of(server)
        server.process.terminate()
        assert await server.exited() == 0, server.said
        _, alive = psutil.wait_procs(left, timeout=10)  # they are gone; whoever adopted them may be slow to notice
        assert alive == []
    assert tree.differences(TreeState.of(library)) == []
    if adapter == "stryker-js":
        statuses = Counter(mutant["status"] for _, mutant in everything)
        assert statuses.keys() <= {"Killed", "Survived", "NoCoverage", "Timeout"}
        assert (statuses["Killed"] > 130, statuses["Survived"] > 10) == (True, True)  # figures depend on the machine
        killed = [each for _, each in everything if each["status"] == "Killed"]
        assert all(each["killedBy"] and each["coveredBy"] is not None and each["duration"] >= 0 for each in killed)
        return  # its verdicts have the test below
    whole = os.environ.get("MSP_BRIDGE_CHECK") == "all"
    sample = everything if whole else everything[:: len(everything) // 16]
    verdicts = await asyncio.to_thread(verdicts_of, library, sample, tmp_path)
    pairs = zip(sample, verdicts, strict=True)
    assert [mutant for (_, mutant), verdict in pairs if mutant["status"] != verdict] == []


async def test_each_verdict_is_that_of_a_fresh_process(tmp_path: Path) -> None:
    """Mutants of index.js pollute Object.prototype; the verdicts of these depend on that."""
    library = json_pointer(tmp_path)
    places = {(33, "true"), (78, "true"), (78, '""'), (81, "false"), (81, '""'), (98, "true"), (219, "false")}
    async with adapter_on(library, jobs=2) as adapter:
        mutants = await discovered(adapter)
        some = [mutant for mutant in mutants if (mutant.location.start.line, mutant.replacement) in places]
        assert len(some) >= len(places)
        whole = statuses(await results_of(adapter, mutants))
        warm = statuses(await results_of(adapter, some))
    (library / "stryker.conf.json").write_text(CONFIGURATION.replace("{", '{"maxTestRunnerReuse": 1, ', 1))
    async with adapter_on(library, jobs=2) as adapter:
        await discovered(adapter)
        fresh = statuses(await results_of(adapter, some))
    assert {mutant: whole[mutant] for mutant in some} == warm == fresh


def statuses(results: list[Result]) -> dict[Mutant, Status]:
    return {result.mutant: result.status for result in results}

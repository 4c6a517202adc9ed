"""json-pointer, a library from npm that nobody here wrote, with its own tests, through a real server over stdio."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.fresh_process import mutated
from support.msp_client import Client, ReaderWriter
from support.servers import Server, launched, mutants_of
from support.stryker_js_trees import adapter_on, discovered, results_of

from msp_bridge.adapter import Mutant, Result, Status
from msp_bridge.testing import TreeState

MODULES = Path(__file__).parents[1] / "npm" / "core9" / "node_modules"
CONFIGURATION = '{"testRunner": "mocha", "mutate": ["index.js"], "plugins": ["@stryker-mutator/mocha-runner"]}'


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """The package's tree, with the packages that it and its tests need."""
    assert MODULES.is_dir(), f"{MODULES} is missing: `make test` installs it"
    root = Path(shutil.copytree(MODULES / "json-pointer", tmp_path / "json-pointer"))
    (root / "node_modules").symlink_to(MODULES)
    (root / "stryker.conf.json").write_text(CONFIGURATION)
    return root


async def results(client: Client, params: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What a `mutationTest` reports of each mutant, by its id."""
    assert await client.request("mutationTest", params) == {"files": {}}
    taken = client.take_results()
    by_id = {mutant["id"]: mutant for _, mutant in taken}
    assert len(by_id) == len(taken), "a mutant was reported twice"
    return by_id


async def scenario(client: Client, server: Server, library: Path) -> None:
    assert await client.request("configure", {}) == {"version": "0.4.0"}

    discovered = mutants_of(await client.request("discover", {}))
    assert {path for path, _ in discovered} == {"index.js"}
    by_id = {mutant["id"]: mutant for _, mutant in discovered}
    assert len(by_id) == len(discovered) == 176
    text = (library / "index.js").read_text()
    assert all(mutated(text, mutant) != text for mutant in by_id.values())

    everything = await results(client, {})
    assert everything.keys() == by_id.keys()
    statuses = Counter(mutant["status"] for mutant in everything.values())
    assert statuses.keys() <= {"Killed", "Survived", "NoCoverage", "Timeout"}
    assert statuses["Killed"] > 130  # exact figures depend on the machine
    assert statuses["Survived"] > 10
    killed = [mutant for mutant in everything.values() if mutant["status"] == "Killed"]
    assert all(mutant["killedBy"] and mutant["coveredBy"] is not None and mutant["duration"] >= 0 for mutant in killed)

    mutant = killed[0]
    position = {key: by_id[mutant["id"]][key] for key in ("location", "mutatorName", "replacement", "id")}
    one = await results(client, {"mutants": {"index.js": {"mutants": [position]}}})
    assert [(tested["id"], tested["status"]) for tested in one.values()] == [(mutant["id"], "Killed")]
    some = killed[::40]
    five = await results(client, {"mutants": {"index.js": {"mutants": [by_id[mutant["id"]] for mutant in some]}}})
    assert five.keys() == {mutant["id"] for mutant in some}

    lines = {"start": {"line": 30, "column": 1}, "end": {"line": 60, "column": 1}}
    within = mutants_of(await client.request("discover", {"files": [{"path": "index.js", "range": lines}]}))
    ranged = await results(client, {"files": [{"path": str(library / "index.js"), "range": lines}]})
    assert 0 < len(ranged) < 176
    assert ranged.keys() == {found["id"] for _, found in within}
    assert await results(client, {"files": []}) == {}

    idle = len(processes_of(server))
    request = await client.ask("mutationTest", {"files": [{"path": "index.js"}]})
    await client.some_progress()
    await client.cancelled(request)
    assert len(processes_of(server)) <= idle  # at once: the answer comes when they are gone
    client.take_results()

    running = await client.ask("mutationTest", {})
    await client.some_progress()
    assert len(mutants_of(await client.request("discover", {"files": [{"path": "index.js"}]}))) == 176
    newer = await client.ask("mutationTest", {"mutants": {"index.js": {"mutants": [position]}}})
    assert await client.result(newer) == {"files": {}}
    assert await client.result(running) == {"files": {}}
    reported = Counter(tested["id"] for _, tested in client.take_results())
    assert reported[mutant["id"]] in (1, 2)  # the first progress was taken
    assert reported.keys() <= by_id.keys()


def processes_of(server: Server) -> list[psutil.Process]:
    return psutil.Process(server.process.pid).children(recursive=True)


async def test_a_client_gets_everything_from_a_real_library(library: Path) -> None:
    tree = TreeState.of(library)
    async with launched(library, "serve", "stdio", "--", "--adapter", "stryker-js") as server:
        assert server.process.stdin is not None
        assert server.process.stdout is not None
        client = Client(ReaderWriter(server.process.stdout, server.process.stdin))
        await scenario(client, server, library)
        left = processes_of(server)
        await client.wire.aclose()
        assert await server.exited() == 0, server.said
        _, alive = psutil.wait_procs(left, timeout=10)  # they are gone; whoever adopted them may be slow to notice
        assert alive == []
    assert tree.differences(TreeState.of(library)) == []


async def test_each_verdict_is_that_of_a_fresh_process(library: Path) -> None:
    """Mutants of index.js pollute Object.prototype; the verdicts of these depend on that."""
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

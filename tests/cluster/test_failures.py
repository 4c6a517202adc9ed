"""Whatever becomes of workers, scheduler and client: each mutant once, no verdict of another's, and nothing runs on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.clusters import Cluster, until
from support.scripted.scripted_adapter import Scripted

from msp_bridge.adapter import Adapter, BaselineError, Mutant, Project, Result, Scope, Status, ToolError
from msp_bridge.cluster import behind_cluster
from msp_bridge.cluster.connection import Bounds

BOUNDS = Bounds(answer=20, ask=2, lease=20, join=30, end=20)
PLUS = {"mutator": "plus", "find": "+", "replacement": "-", "status": "Survived"}
DIGIT = {"mutator": "digit", "find": "1", "replacement": "2"}
GATED = DIGIT | {"after": "gate"}


class Tree:
    """A project of the scripted adapter. What its copies on the workers do is written to one log."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "project"
        self.root.mkdir()
        self.events = directory / "events"
        self.events.mkdir()
        self._cache = directory / "cache"

    def script(self, *mutations: dict[str, Any], **entries: Any) -> None:
        (self.root / "scripted.json").write_text(
            json.dumps({"mutations": mutations, "events": str(self.events), **entries})
        )

    def files(self, count: int, text: str) -> None:
        for number in range(count):
            (self.root / f"f{number}.py").write_text(text)

    @contextlib.asynccontextmanager
    async def adapter(self, cluster: Cluster, bounds: Bounds = BOUNDS) -> AsyncIterator[Adapter]:
        adapter_class = behind_cluster(Scripted, cluster.address, local=0, bounds=bounds)
        adapter = adapter_class.detect(Project(root=self.root, cache=self._cache))
        assert adapter is not None
        async with contextlib.aclosing(adapter):
            yield adapter

    def log(self) -> list[str]:
        file = self.events / "log"
        return file.read_text().splitlines() if file.exists() else []

    def open_gate(self) -> None:
        (self.events / "gate").touch()


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


async def discovered(adapter: Adapter) -> list[Mutant]:
    async with contextlib.aclosing(adapter.discover(Scope())) as found:
        return [mutant async for mutant in found]


async def results_of(adapter: Adapter, mutants: list[Mutant]) -> list[Result]:
    results: list[Result] = []
    await collect(results, adapter, mutants)
    return results


async def collect(results: list[Result], adapter: Adapter, mutants: list[Mutant]) -> None:
    async with contextlib.aclosing(adapter.test(mutants)) as found:
        async for result in found:
            results.append(result)  # noqa: PERF401 - each as it comes


def once_each(results: list[Result], mutants: list[Mutant]) -> bool:
    return Counter(result.mutant for result in results) == Counter(mutants)


async def test_workers_with_trees_of_their_own_give_each_result_once(tree: Tree, tmp_path: Path) -> None:
    tree.script(PLUS, DIGIT | {"details": {"duration": 2.5, "killed_by": ["t"], "status_reason": "é"}})
    tree.files(6, "x = y + 1\nz = a + b + 1\n")
    async with Cluster.running(tmp_path / "cluster") as cluster, tree.adapter(cluster) as adapter:
        mutants = await discovered(adapter)
        results = await results_of(adapter, mutants)
        assert once_each(results, mutants)
        assert {(one.mutant.mutator, one.status) for one in results} == {
            ("plus", Status.SURVIVED),
            ("digit", Status.KILLED),
        }
        details = next(one for one in results if one.mutant.mutator == "digit")
        assert (details.duration, [*(details.killed_by or ())], details.status_reason) == (2.5, ["t"], "é")
        assert all(any(cluster.cache(name).glob("project-*/tree/project/f0.py")) for name in cluster.workers)
        assert {sent.files for sent in adapter.traffic.values()} == {2}  # one content in six files, and the script
        (tree.root / "f0.py").write_text("x = y + 1\n")
        results = await results_of(adapter, now := await discovered(adapter))
        assert once_each(results, now)
        assert {sent.files for sent in adapter.traffic.values()} == {1}


async def test_a_worker_that_is_killed_in_a_chunk_loses_nothing_and_invents_nothing(
    tree: Tree, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tree.script(PLUS, {**GATED, "status": "Survived"})
    tree.files(4, "x = y + z\nx = 1\nx = y + z\n")
    async with Cluster.running(tmp_path / "cluster") as cluster, tree.adapter(cluster) as adapter:
        mutants = await discovered(adapter)
        results: list[Result] = []
        testing = asyncio.create_task(collect(results, adapter, mutants))
        await until(
            lambda: results and sum("until gate" in line or "started" in line for line in tree.log()) > 1, "start"
        )
        cluster.kill("w0")
        tree.open_gate()
        await asyncio.wait_for(testing, 300)
        assert once_each(results, mutants)
        assert {result.status for result in results} == {Status.SURVIVED}
    assert "was lost" in caplog.text


async def test_a_worker_that_hangs_is_lost_after_a_bound(tree: Tree, tmp_path: Path) -> None:
    tree.script({**GATED, "status": "Survived"})
    tree.files(4, "x = 1\nx = 1\n")
    async with Cluster.running(tmp_path / "cluster") as cluster, tree.adapter(cluster) as adapter:
        mutants = await discovered(adapter)
        testing = asyncio.create_task(results_of(adapter, mutants))
        await until(lambda: sum("started" in line for line in tree.log()) > 1, "both workers test")
        cluster.workers["w0"].send_signal(signal.SIGSTOP)
        tree.open_gate()
        results = await asyncio.wait_for(testing, 300)
        assert once_each(results, mutants)
        assert {result.status for result in results} == {Status.SURVIVED}


async def test_a_scheduler_that_goes_away_is_one_error_and_what_was_known_stays(tree: Tree, tmp_path: Path) -> None:
    tree.script(PLUS, GATED)
    tree.files(2, "x = y + z\nx = 1\n")
    async with Cluster.running(tmp_path / "cluster", 1) as cluster, tree.adapter(cluster) as adapter:
        mutants = await discovered(adapter)
        results: list[Result] = []
        testing = asyncio.create_task(collect(results, adapter, mutants))
        await until(lambda: results, "a first result")
        assert cluster.scheduler is not None
        cluster.scheduler.kill()
        with pytest.raises(ToolError, match=r"the cluster's scheduler .* is gone"):
            await asyncio.wait_for(testing, 300)
        assert {result.status for result in results} == {Status.SURVIVED}


async def test_a_request_that_is_closed_half_way_ends_the_tests_on_all_workers(tree: Tree, tmp_path: Path) -> None:
    tree.script(PLUS, GATED, tool="hang")
    tree.files(4, "x = y + z\nx = 1\n")
    async with Cluster.running(tmp_path / "cluster") as cluster, tree.adapter(cluster) as adapter:
        mutants = await discovered(adapter)
        results = adapter.test(mutants)
        await anext(results)
        await until(lambda: all(cluster.below(name) for name in cluster.workers), "both workers run the tool")
        await results.aclose()
        assert [cluster.below(name) for name in cluster.workers] == [[], []]
        tree.open_gate()
        assert once_each(await results_of(adapter, mutants[:2]), mutants[:2]), "the workers can be used again"


CLIENT = """
import asyncio, json, sys
from pathlib import Path
from msp_bridge.adapter import Project, Scope
from msp_bridge.cluster import behind_cluster
from msp_bridge.cluster.connection import Bounds
from support.scripted.scripted_adapter import Scripted

async def main():
    bounds = Bounds(answer=20, ask=2, lease=5)
    adapter = behind_cluster(Scripted, sys.argv[1], local=0, bounds=bounds).detect(
        Project(root=Path(sys.argv[2]), cache=Path(sys.argv[3])))
    async for _ in adapter.test([mutant async for mutant in adapter.discover(Scope())]):
        pass

asyncio.run(main())
"""


async def test_tests_end_on_the_workers_when_the_client_is_killed(tree: Tree, tmp_path: Path) -> None:
    tree.script(GATED, tool="hang", warm="hang")
    tree.files(2, "x = 1\n")
    async with Cluster.running(tmp_path / "cluster", 1) as cluster:
        argv = [sys.executable, "-c", CLIENT, cluster.address, str(tree.root), str(tmp_path / "other")]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        client = subprocess.Popen(argv, env=environment)
        try:
            await until(lambda: cluster.below("w0"), "the tool runs")
        finally:
            client.kill()
            client.wait()
        await until(lambda: not cluster.below("w0"), "all of it ends")


async def test_a_worker_with_another_tool_is_refused_and_the_others_go_on(
    tree: Tree, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tree.script(PLUS, surroundings={"tool": "1.0"})
    tree.files(3, "x = y + z\n")
    async with Cluster.running(tmp_path / "cluster", 1) as cluster, tree.adapter(cluster) as adapter:
        cluster.start_worker("other", SCRIPTED_VERSION="2.0")
        await cluster.joined(2)
        with caplog.at_level(logging.WARNING):
            mutants = await discovered(adapter)
            assert once_each(await results_of(adapter, mutants), mutants)
        findings = [finding async for finding in adapter.diagnose()]
        workers = sorted((finding.good, finding.text) for finding in findings if finding.subject == "worker")
        assert [good for good, _ in workers] == [False, True]
        assert "version is 2.0 there, and missing here" in workers[0][1]
        assert "is ready: 1 thread" in workers[1][1]
        cluster.kill("w0")
        await cluster.joined(1)
        with pytest.raises(ToolError, match=r"version is 2\.0 there, and missing here \(on the worker tcp"):
            await results_of(adapter, mutants)


async def test_tests_that_fail_without_a_mutant_are_that_error_with_its_failing_tests(
    tree: Tree, tmp_path: Path
) -> None:
    failing = {"raises": ["BaselineError", "2 tests fail"], "failing": {"t1": "assert 0", "t2": ""}}
    tree.script(PLUS, testing=failing)
    tree.files(1, "x = y + z\n")
    async with Cluster.running(tmp_path / "cluster", 1) as cluster, tree.adapter(cluster) as adapter:
        with pytest.raises(BaselineError, match="2 tests fail") as raised:
            await results_of(adapter, await discovered(adapter))
        assert raised.value.failing == ("t1", "t2")
        assert raised.value.first_failure == "assert 0"


async def test_a_mutant_of_a_file_that_was_edited_since_has_no_result(tree: Tree, tmp_path: Path) -> None:
    tree.script(PLUS)
    tree.files(2, "x = y + z\n")
    async with Cluster.running(tmp_path / "cluster", 1) as cluster, tree.adapter(cluster) as adapter:
        mutants = await discovered(adapter)
        (tree.root / "f0.py").write_text("x = y + z\n\n")
        results = await results_of(adapter, mutants)
        assert [result.mutant.path for result in results] == ["f1.py"]


async def test_a_few_mutants_are_tested_here_without_a_cluster(tree: Tree, tmp_path: Path) -> None:
    tree.script(PLUS)
    tree.files(2, "x = y + z\n")
    adapter = behind_cluster(Scripted, "tcp://127.0.0.1:9", local=2).detect(
        Project(root=tree.root, cache=tmp_path / "cache")
    )
    assert adapter is not None
    async with contextlib.aclosing(adapter):
        mutants = await discovered(adapter)
        assert once_each(await results_of(adapter, mutants), mutants)


async def test_a_cluster_that_is_not_there_is_one_clear_error(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msp_bridge.cluster.connection.CONNECT_S", 1)
    tree.script(PLUS)
    tree.files(1, "x = y + z\n")
    cluster = Cluster(tree.root.parent / "cluster")
    cluster.address = "tcp://127.0.0.1:9"
    async with tree.adapter(cluster) as adapter:
        with pytest.raises(ToolError, match=r"the cluster's scheduler tcp://127\.0\.0\.1:9 can't be reached"):
            await results_of(adapter, await discovered(adapter))

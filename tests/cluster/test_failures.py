"""Whatever becomes of workers, scheduler and client: each mutant once, no verdict of another's, and nothing runs on."""

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from attrs import evolve
from click.testing import CliRunner
from support.adapters import discovered, results_of
from support.clusters import BOUNDS, DIGIT, GATED, PLUS, Cluster, ScriptedTree, once_each
from support.scripted.scripted_adapter import Scripted
from support.servers import mutants_of, over_memory, scripted_project, until

from msp_bridge.adapter import BaselineError, FailingTest, Notice, Project, Result, Status, ToolError
from msp_bridge.cli import Exit
from msp_bridge.cli.run import run
from msp_bridge.cluster import behind_cluster
from msp_bridge.cluster.choice import LOCAL_MUTANTS
from msp_bridge.cluster.chunks import LOSSES
from msp_bridge.cluster.dispatch import GIVEN_UP
from msp_bridge.testing import check_adapter


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    async with Cluster.running(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
async def cluster(shared: Cluster) -> Cluster:
    """Two workers, `w0` and `w1`, which all tests share; each begins with both, and nothing runs there."""
    await shared.restore(2)
    return shared


def busy(cluster: Cluster) -> bool:
    return any(cluster.below(name) for name in cluster.workers)


async def test_workers_with_trees_of_their_own_give_each_result_once(tree: ScriptedTree, cluster: Cluster) -> None:
    details = {"duration": 2.5, "killed_by": ["t"], "status_reason": "é"}
    tree.script(PLUS, GATED | {"details": details}, tool="hang")
    text = "x = y + 1\nz = a + b + 1\n"  # of no other test: the workers have it from here
    tree.files(6, text)
    async with tree.adapter(cluster, environment=("DATABASE",)) as adapter:
        mutants = await discovered(adapter)
        testing = asyncio.create_task(results_of(adapter, mutants))
        await until(lambda: all(cluster.below(name) for name in cluster.workers), "both workers test")
        tree.open("gate")
        results = await testing
        assert once_each(results, mutants)
        assert "by DATABASE" in tree.log, "what was measured there depends on it, too"
        assert {(one.mutant.mutator, one.status) for one in results} == {
            ("plus", Status.SURVIVED),
            ("digit", Status.KILLED),
        }
        digit = next(one for one in results if one.mutant.mutator == "digit")
        assert (digit.duration, [*(digit.killed_by or ())], digit.status_reason) == (2.5, ["t"], "é")
        assert {sent.files for sent in adapter.traffic.values()} == {2}  # one content in six files, and the script
        files = [file for name in cluster.workers for file in cluster.cache(name).glob("project-*/tree/project/f0.py")]
        slots = [file.parents[2] for file in files if file.read_text() == text]
        assert [slot.parents[2].name for slot in slots] == ["w0", "w1"]
        noted = [int(slot.with_suffix(".lock").read_text()) for slot in slots]
        assert min(noted) > 6 * len(text), "trees count when room is made on the disk"
        (tree.root / "f0.py").write_text("x = y + 1\n")
        results = await results_of(adapter, now := await discovered(adapter))
        assert once_each(results, now)
        assert {sent.files for sent in adapter.traffic.values()} == {1}


async def test_an_adapter_keeps_its_promises_when_workers_test_its_mutants(
    tree: ScriptedTree, cluster: Cluster
) -> None:
    tree.script(PLUS, DIGIT)
    tree.files(3, "x = y + 1\n")
    project = Project(root=tree.root, cache=tree.root.parent / "cache")
    adapter = behind_cluster(Scripted, cluster.address, local=0, bounds=BOUNDS)
    await check_adapter(adapter, project, sample=4, workers=len(cluster.workers))


async def test_a_small_request_of_a_server_stays_here_and_a_large_one_goes_to_the_workers(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sent() -> bool:
        return any(file for name in cluster.workers for file in cluster.cache(name).rglob("of_a_server.py"))

    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    async with scripted_project(tmp_path) as project:
        project.script(DIGIT)
        few = project.write("few.py", "1\n" * LOCAL_MUTANTS)
        project.write("of_a_server.py", "1\n" * (LOCAL_MUTANTS + 1))
        project.write("msp-bridge.toml", f'adapter = "scripted"\njobs = 1\ncluster = "{cluster.address}"\n')
        async with over_memory(project) as client:
            await client.request("configure")
            await client.request("mutationTest", {"files": [{"path": few}]})
            assert len(client.take_results()) == LOCAL_MUTANTS
            assert not sent()
            found = mutants_of(await client.request("discover"))
            await client.request("mutationTest")
            results = client.take_results()
            killed = [(path, mutant | {"status": "Killed"}) for path, mutant in found]
            assert sorted(map(repr, results)) == sorted(map(repr, killed))
            assert sent()


async def test_a_worker_that_is_killed_in_a_chunk_loses_nothing_and_invents_nothing(
    tree: ScriptedTree, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    tree.script(PLUS, {**GATED, "status": "Survived"})
    tree.files(4, "x = y + z\nx = 1\nx = y + z\n")
    async with tree.adapter(cluster) as adapter:
        mutants = await discovered(adapter)
        results: list[Result] = []
        testing = asyncio.create_task(results_of(adapter, mutants, into=results))
        await until(
            lambda: results and sum("until gate" in line or "started" in line for line in tree.log) > 1, "start"
        )
        cluster.kill("w0")
        tree.open("gate")
        await asyncio.wait_for(testing, 300)
        assert once_each(results, mutants)
        assert {result.status for result in results} == {Status.SURVIVED}
    assert "was lost" in caplog.text


async def test_a_worker_that_hung_ends_what_it_was_at_and_is_used_again(tree: ScriptedTree, cluster: Cluster) -> None:
    tree.script(GATED | {"status": "Survived"}, tool="hang")
    tree.files(4, "x = 1\nx = 1\n")
    async with tree.adapter(cluster, evolve(BOUNDS, end=2)) as adapter:
        mutants = await discovered(adapter)
        testing = asyncio.create_task(results_of(adapter, mutants))
        await until(lambda: all(cluster.below(name) for name in cluster.workers), "both workers test")
        cluster.workers["w0"].send_signal(signal.SIGSTOP)
        tree.open("gate")
        results = await asyncio.wait_for(testing, 300)
        assert once_each(results, mutants)
        assert {result.status for result in results} == {Status.SURVIVED}
        cluster.workers["w0"].send_signal(signal.SIGCONT)
        await until(lambda: not cluster.below("w0"), "its tests end")
        await cluster.joined(2)
        before = len(tree.log)
        assert once_each(await results_of(adapter, mutants), mutants)
        assert len([line for line in tree.log[before:] if line.startswith("started")]) == len(mutants)
        assert len(adapter.traffic) == 2, "both are prepared again"
        cluster.workers["w0"].send_signal(signal.SIGSTOP)  # the adapter closes all the same


async def test_a_mutant_with_which_three_workers_were_lost_is_not_given_out_again(
    tree: ScriptedTree, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    tree.script(PLUS, DIGIT | {"kills": True})
    tree.files(3, "x = y + z\n")
    (tree.root / "killer.py").write_text("x = y + z\nx = 1\n")
    for number in range(2, LOSSES + 1):
        cluster.start_worker(f"w{number}")
    await cluster.joined(LOSSES + 1)
    async with tree.adapter(cluster) as adapter:
        mutants = await discovered(adapter)
        results = await asyncio.wait_for(results_of(adapter, mutants), 300)
        assert once_each(results, mutants)
        # a process that is killed closes its connections, which the scheduler sees, before it can be waited for
        await until(lambda: len(cluster.alive()) == len(cluster.workers) - LOSSES, "as many workers end as were lost")
    assert {(one.mutant.mutator, one.status, one.status_reason) for one in results} == {
        ("plus", Status.SURVIVED, None),
        ("digit", Status.IGNORED, GIVEN_UP),
    }
    assert caplog.text.count("was lost") == LOSSES


async def test_files_that_are_edited_while_they_are_tested_are_tested_as_they_were(
    tree: ScriptedTree, cluster: Cluster
) -> None:
    tree.script(PLUS, GATED)
    tree.files(3, "x = y + z\nx = 1\n")
    async with tree.adapter(cluster) as adapter:
        mutants = await discovered(adapter)
        results: list[Result] = []
        testing = asyncio.create_task(results_of(adapter, mutants, into=results))
        await until(lambda: results, "a first result")
        tree.script(PLUS | {"status": "Killed"}, DIGIT | {"status": "Survived"})
        tree.files(3, "")
        tree.open("gate")
        await asyncio.wait_for(testing, 300)
        assert once_each(results, mutants)
        assert {(one.mutant.mutator, one.status) for one in results} == {
            ("plus", Status.SURVIVED),
            ("digit", Status.KILLED),
        }
        assert await results_of(adapter, mutants) == [], "they no longer exist"


async def test_a_scheduler_that_goes_away_is_one_error_and_what_was_known_stays(
    tree: ScriptedTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msp_bridge.cluster.connection.CONNECT_S", 10)  # for which it is tried to connect again
    tree.script(PLUS, GATED, tool="hang")
    tree.files(2, "x = y + z\nx = 1\n")
    async with Cluster.running(tmp_path / "cluster", 1) as cluster, tree.adapter(cluster) as adapter:
        mutants = await discovered(adapter)
        results: list[Result] = []
        testing = asyncio.create_task(results_of(adapter, mutants, into=results))
        await until(lambda: results, "a first result")
        assert cluster.scheduler is not None
        cluster.scheduler.kill()
        with pytest.raises(ToolError, match=r"the cluster's scheduler .* is gone"):
            await asyncio.wait_for(testing, 300)
        assert {result.status for result in results} == {Status.SURVIVED}
        await until(lambda: not cluster.below("w0"), "its tests end")


async def test_a_request_that_is_closed_half_way_ends_the_tests_on_all_workers(
    tree: ScriptedTree, cluster: Cluster
) -> None:
    tree.script(PLUS, GATED, tool="hang")
    tree.files(4, "x = y + z\nx = 1\n")
    async with tree.adapter(cluster) as adapter:
        mutants = await discovered(adapter)
        results = adapter.test(mutants)
        await anext(results)
        await until(lambda: all(cluster.below(name) for name in cluster.workers), "both workers run the tool")
        await results.aclose()
        assert [cluster.below(name) for name in cluster.workers] == [[], []]
        tree.open("gate")
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
    async for result in adapter.test([mutant async for mutant in adapter.discover(Scope())]):
        print(result.mutant.mutator, result.status.value)
    await adapter.aclose()

asyncio.run(main())
"""


@contextlib.contextmanager
def client_of(tree: ScriptedTree, cluster: Cluster, directory: Path) -> Iterator[subprocess.Popen[str]]:
    """A client in a process of its own, which is killed in the end."""
    argv = [sys.executable, "-c", CLIENT, cluster.address, str(tree.root), str(directory / "other")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True) as client:
        try:
            yield client
        finally:
            client.kill()


async def test_tests_end_on_the_workers_when_the_client_is_killed(
    tree: ScriptedTree, cluster: Cluster, tmp_path: Path
) -> None:
    tree.script(GATED, tool="hang", warm="hang")
    tree.files(2, "x = 1\n")
    with client_of(tree, cluster, tmp_path) as client:
        await until(lambda: busy(cluster), "the tool runs")
        client.kill()
    await until(lambda: not busy(cluster), "all of it ends")


async def test_a_client_that_was_suspended_has_each_result_once(
    tree: ScriptedTree, cluster: Cluster, tmp_path: Path
) -> None:
    tree.script(PLUS, GATED, tool="hang")
    tree.files(3, "x = y + z\nx = 1\n")
    with client_of(tree, cluster, tmp_path) as client:
        await until(lambda: busy(cluster), "the tool runs")
        client.send_signal(signal.SIGSTOP)
        await until(lambda: not busy(cluster), "nobody asks for its results, so it ends")
        tree.open("gate")
        client.send_signal(signal.SIGCONT)
        await until(lambda: client.poll() is not None, "the client ends")
        assert client.stdout is not None
        assert Counter(client.stdout.read().splitlines()) == {"plus Survived": 3, "digit Killed": 3}


async def test_tests_that_fail_without_a_mutant_are_that_error_with_its_failing_tests(
    tree: ScriptedTree, cluster: Cluster
) -> None:
    failing = {"raises": ["BaselineError", "2 tests fail"], "failing": {"t1": "assert 0", "t2": ""}}
    tree.script(PLUS, testing=failing)
    tree.files(1, "x = y + z\n")
    async with tree.adapter(cluster) as adapter:
        with pytest.raises(BaselineError, match="2 tests fail") as raised:
            await results_of(adapter, await discovered(adapter))
        assert raised.value.failing == ("t1", "t2")
        assert raised.value.first_failure == "assert 0"


async def test_a_test_that_a_worker_leaves_out_is_told_in_each_request(tree: ScriptedTree, cluster: Cluster) -> None:
    tree.script(PLUS, testing={"failing": {"t1": "assert 0"}})
    tree.files(2, "x = y + z\n")
    async with tree.adapter(cluster) as adapter:
        mutants = await discovered(adapter)
        for _ in range(2):
            async with contextlib.aclosing(adapter.test(mutants)) as items:
                assert [item async for item in items if isinstance(item, Notice)] == [FailingTest("t1", "assert 0")]


async def test_a_mutant_of_a_file_that_was_edited_since_has_no_result(tree: ScriptedTree, cluster: Cluster) -> None:
    tree.script(PLUS)
    tree.files(2, "x = y + z\n")
    async with tree.adapter(cluster) as adapter:
        mutants = await discovered(adapter)
        (tree.root / "f0.py").write_text("x = y + z\n\n")
        results = await results_of(adapter, mutants)
        assert [result.mutant.path for result in results] == ["f1.py"]


async def test_a_worker_with_another_tool_is_refused_and_the_others_go_on(
    tree: ScriptedTree, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """The last of those that share the cluster: no test wants the workers again that it kills."""
    tree.script(PLUS, surroundings={"tool": "1.0"})
    tree.files(3, "x = y + z\n")
    async with tree.adapter(cluster) as adapter:
        cluster.start_worker("other", SCRIPTED_VERSION="2.0")
        await cluster.joined(3)
        with caplog.at_level(logging.WARNING):
            mutants = await discovered(adapter)
            assert once_each(await results_of(adapter, mutants), mutants)
        findings = [finding async for finding in adapter.diagnose()]
        workers = sorted((finding.good, finding.text) for finding in findings if finding.subject == "worker")
        assert [good for good, _ in workers] == [False, True, True]
        assert "version is 2.0 there, and missing here" in workers[0][1]
        assert "is ready: 1 thread" in workers[1][1]
        cluster.kill("w0")
        cluster.kill("w1")
        await cluster.joined(1)
        with pytest.raises(ToolError, match=r"version is 2\.0 there, and missing here \(on the worker tcp"):
            await results_of(adapter, mutants)


async def test_a_few_mutants_are_tested_here_without_a_cluster(tree: ScriptedTree, tmp_path: Path) -> None:
    tree.script(PLUS)
    tree.files(2, "x = y + z\n")
    adapter = behind_cluster(Scripted, "tcp://127.0.0.1:9", local=2).detect(
        Project(root=tree.root, cache=tmp_path / "cache")
    )
    assert adapter is not None
    async with contextlib.aclosing(adapter):
        mutants = await discovered(adapter)
        assert once_each(await results_of(adapter, mutants), mutants)


@pytest.mark.parametrize(
    ("address", "code", "sentence"),
    [
        ("tcp://127.0.0.1:9", Exit.NO_VERDICTS, "the cluster's scheduler tcp://127.0.0.1:9 can't be reached"),
        ("scheduler-8786", Exit.USAGE, "scheduler-8786 can't be used as a cluster"),
    ],
)
def test_a_run_whose_mutants_are_few_says_that_the_cluster_is_not_there(
    address: str, code: int, sentence: str, tree: ScriptedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msp_bridge.cluster.connection.CONNECT_S", 1)
    tree.script(PLUS)
    tree.files(1, "x = y + z\n")
    ran = CliRunner().invoke(run, ["--root", str(tree.root), "--adapter", "scripted", "--cluster", address])
    assert ran.exit_code == code
    assert sentence in ran.output
    assert "Survived" not in ran.output

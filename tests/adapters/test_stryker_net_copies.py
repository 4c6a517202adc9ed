"""Copies: the user's tree is never written to, nothing stays behind, and the newest goes first. Against the scripted dotnet."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from msp_bridge.adapters.stryker_net.bench import Visit
from support.net_trees import BRIDGE, Scripted, adapter_on, copied, discovered, results_of, scripted_dotnet, statuses

from msp_bridge.adapter import Location, Mutant, Position, Result, Status
from msp_bridge.testing import Running, TreeState

SUMS = "src/Calc/Calc.cs"
TESTED = ("a - b", "g - h", "i - j")


@pytest.fixture
def dotnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    return scripted_dotnet(tmp_path, monkeypatch)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return copied("net_calc", tmp_path)


def chosen(mutants: list[Mutant], *replacements: str) -> list[Mutant]:
    return [mutant for mutant in mutants if mutant.replacement in replacements]


async def begun(dotnet: Scripted, runs: int) -> None:
    while len(dotnet.runs) < runs:
        await asyncio.sleep(0.01)


async def test_closing_a_request_ends_every_process_and_puts_the_assemblies_back(dotnet: Scripted, root: Path) -> None:
    running = Running()
    async with adapter_on(root) as adapter:
        mutants = chosen(await discovered(adapter), *TESTED)
        dotnet.say(gate=str(dotnet.gate), stray=True)
        async with contextlib.aclosing(adapter.test(mutants)) as results:
            await anext(results)
            assert len(running.look()) >= 4  # its guard and supervisor, the tool, and what that has left to itself
            assert list((root.parent / "cache").rglob("*.stryker-unchanged"))
        assert await running.settled(0) == []
        assert not list((root.parent / "cache").rglob("*.stryker-unchanged"))
        dotnet.say()
        assert len(await results_of(adapter, mutants)) == 3


@pytest.mark.parametrize("seed", range(4))
async def test_a_request_that_is_cancelled_at_any_moment_leaves_nothing(
    dotnet: Scripted, root: Path, seed: int
) -> None:
    running = Running()
    async with adapter_on(root) as adapter:
        mutants = chosen(await discovered(adapter), *TESTED)
        dotnet.say(gate=str(dotnet.gate), stray=True)
        testing = asyncio.create_task(results_of(adapter, mutants))
        await asyncio.sleep(random.Random(seed).uniform(0, 0.5))
        testing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await testing
        assert await running.settled(0) == []
        dotnet.say()
        assert len(await results_of(adapter, mutants)) == 3


async def test_a_discovery_that_is_cancelled_leaves_nothing(dotnet: Scripted, root: Path) -> None:
    running = Running()
    async with adapter_on(root) as adapter:
        dotnet.say(fault="hang")
        discovering = asyncio.create_task(discovered(adapter))
        await begun(dotnet, 1)
        discovering.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await discovering
        assert await running.settled(0) == []
        dotnet.say()
        assert await discovered(adapter)


@pytest.mark.parametrize("seed", range(3))
async def test_a_killed_bridge_leaves_the_tree_as_it_was_and_no_process(
    dotnet: Scripted, root: Path, seed: int
) -> None:
    before, running = TreeState.of(root), Running()
    bridge = subprocess.Popen([sys.executable, "-c", BRIDGE, root], stdout=subprocess.PIPE)
    try:
        assert bridge.stdout is not None
        if seed:
            assert await asyncio.to_thread(bridge.stdout.readline)
        await asyncio.sleep(random.Random(seed).uniform(0, 0.4))
        running.look()
    finally:
        bridge.kill()
        bridge.communicate()
    assert await running.settled(0) == []
    assert before.differences(TreeState.of(root)) == []
    async with adapter_on(root) as adapter:  # which finds the copies that the other one left in disorder
        results = await results_of(adapter, chosen(await discovered(adapter), *TESTED))
    assert statuses(results) == {"a - b": "Killed", "g - h": "Survived", "i - j": "Timeout"}


async def test_assemblies_that_a_killed_bridge_has_left_mutated_are_put_back(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = chosen(await discovered(adapter), "a - b")
        await results_of(adapter, mutants)
    [assembly] = (root.parent / "cache/testing-0/project/tests").rglob("*.dll")
    assembly.rename(f"{assembly}.stryker-unchanged")
    assembly.write_bytes(b"mutated")
    async with adapter_on(root) as adapter:
        assert statuses(await results_of(adapter, mutants)) == {"a - b": "Killed"}
    assert assembly.read_bytes() == b"assembly of Calc"


async def test_work_goes_on_no_further_than_a_few_results_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> AsyncGenerator[Result, None]:
        for number in range(100):
            started.append(number)
            yield Result(a_mutant(number), Status.KILLED)

    monkeypatch.setattr("msp_bridge.adapters.stryker_net.bench.AHEAD", 3)
    started: list[int] = []
    visit = Visit(0, work())
    async with contextlib.aclosing(visit.results()) as results:
        await anext(results)
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(started) <= 5  # one was taken, three are ready, one waits
        assert len([result async for result in results]) == 99
    assert visit.finished


def a_mutant(number: int) -> Mutant:
    return Mutant("a.cs", "any", Location(Position(1, 1), Position(1, 2)), str(number))


async def test_a_newer_request_goes_first_and_the_older_one_goes_on(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        older_ones, newer_ones = chosen(mutants, *TESTED), chosen(mutants, "c != d")
        dotnet.say(gate=str(dotnet.gate))
        async with contextlib.aclosing(adapter.test(older_ones)) as older:
            results = [await anext(older)]
            waiting = asyncio.ensure_future(anext(older))  # its run waits at the gate
            [newer] = await results_of(adapter, newer_ones)  # a single mutant passes it
            assert not waiting.done()
            dotnet.gate.touch()
            results.append(await waiting)
            results += [result async for result in older]
    assert newer.mutant == newer_ones[0]
    assert statuses(results) == {"a - b": "Killed", "g - h": "Survived", "i - j": "Timeout"}
    again = dotnet.patterns()[0]
    assert again.count("..") == 2  # only what had no result yet


async def test_a_newer_request_goes_first_when_nobody_asks_the_older_one(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        dotnet.say(gate=str(dotnet.gate))
        async with contextlib.aclosing(adapter.test(chosen(mutants, *TESTED))) as older:
            results = [await anext(older)]
            assert len(await results_of(adapter, chosen(mutants, "c != d"))) == 1
            dotnet.gate.touch()
            results += [result async for result in older]
    assert statuses(results) == {"a - b": "Killed", "g - h": "Survived", "i - j": "Timeout"}


async def test_a_request_that_nobody_reads_makes_way(
    dotnet: Scripted, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msp_bridge.adapters.stryker_net.bench.AHEAD", 1)
    monkeypatch.setattr("msp_bridge.adapters.stryker_net.bench.STALLED", 0.0)
    monkeypatch.setattr("msp_bridge.adapters.stryker_net.bench.LOOK", 0.05)
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        dotnet.say(gate=str(dotnet.gate))
        async with contextlib.aclosing(adapter.test(chosen(mutants, *TESTED))) as older:
            results = [await anext(older)]
            dotnet.gate.touch()
            async with contextlib.aclosing(adapter.test(mutants)) as newer:
                others = [await anext(newer)]
                results += [result async for result in older]  # although the newer one isn't done
                others += [result async for result in newer]
    assert len(results) == 3
    assert {result.mutant for result in others} == set(mutants)
    assert len(others) == len(mutants)


async def test_a_request_that_waits_for_a_newer_one_can_be_cancelled(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = chosen(await discovered(adapter), *TESTED)
        dotnet.say(gate=str(dotnet.gate))
        async with (
            contextlib.aclosing(adapter.test(mutants)) as older,
            contextlib.aclosing(adapter.test(mutants)) as newer,
        ):
            taken = [await anext(older), await anext(newer)]
            waiting = asyncio.ensure_future(anext(older))
            await asyncio.sleep(0.1)
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await waiting
            dotnet.gate.touch()
            assert len([result async for result in newer]) == 2
        assert [result.mutant.replacement for result in taken] == ["a - b", "a - b"]
        assert len(await results_of(adapter, mutants)) == 3


async def test_discovery_answers_while_tests_run(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        dotnet.say(gate=str(dotnet.gate))
        async with contextlib.aclosing(adapter.test(chosen(mutants, *TESTED))) as results:
            await anext(results)
            assert await discovered(adapter) == mutants
            dotnet.gate.touch()
            assert len([result async for result in results]) == 2


async def test_discovery_answers_after_an_edit_while_tests_run(dotnet: Scripted, root: Path, tmp_path: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        dotnet.say(gate=str(dotnet.gate))
        file = root / SUMS
        before = file.stat()
        async with contextlib.aclosing(adapter.test(chosen(mutants, *TESTED))) as results:
            await anext(results)
            text = file.read_text()
            file.write_text(f"// \n{text}")
            assert {m.location.start.line for m in await discovered(adapter, SUMS)} == {
                m.location.start.line + 1 for m in mutants if m.path == SUMS
            }
            file.write_text(text)
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


async def test_mutants_are_found_out_once_for_the_same_files(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        assert await discovered(adapter, SUMS) == [mutant for mutant in mutants if mutant.path == SUMS]
    async with adapter_on(root) as adapter:  # as after a restart
        assert await discovered(adapter) == mutants
    (root / "tests/Calc.Tests/SumsTests.cs").write_text("")
    (root / "README.md").write_text("What one edits while one looks at mutants.")
    async with adapter_on(root) as adapter:
        assert await discovered(adapter) == mutants
    assert len(dotnet.runs) == 1
    (root / "src/Calc/Calc.csproj").write_text("<Project />")
    async with adapter_on(root) as adapter:
        assert await discovered(adapter) == mutants
    assert len(dotnet.runs) == 2


async def test_edited_tests_are_what_the_next_run_runs(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = chosen(await discovered(adapter), "g - h")
        assert statuses(await results_of(adapter, mutants)) == {"g - h": "Survived"}
    tests = root / "tests/Calc.Tests/SumsTests.cs"
    tests.write_text(tests.read_text().replace("covers: g + h", "kills: g + h"))
    async with adapter_on(root) as adapter:
        assert statuses(await results_of(adapter, mutants)) == {"g - h": "Killed"}


async def test_a_build_of_the_user_changes_nothing(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
    for project in ("src/Calc", "tests/Calc.Tests"):
        (root / project / "bin/Debug/net9.0").mkdir(parents=True)
        (root / project / "bin/Debug/net9.0/Calc.dll").write_bytes(b"mutated, by a run in the user's own tree")
        (root / project / "obj").mkdir()
        (root / project / "obj/project.assets.json").write_text(f'"{root}"')
    async with adapter_on(root) as adapter:
        assert await discovered(adapter) == mutants
        assert len(await results_of(adapter, mutants)) == len(mutants)
    assert len(dotnet.runs) == 2
    assert not list((root.parent / "cache").rglob("project.assets.json"))


async def test_artifacts_of_the_user_stay_out_of_the_copy_and_its_own_stay_in_it(dotnet: Scripted, root: Path) -> None:
    (root / "Directory.Build.props").write_text("<Project><UseArtifactsOutput>true</UseArtifactsOutput></Project>")
    (root / "artifacts").mkdir()
    (root / "artifacts" / "ours.dll").write_text("")
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        assert not list((root.parent / "cache").rglob("ours.dll"))
        own = root.parent / "cache/discovery-0/project/artifacts/own.dll"
        own.parent.mkdir(exist_ok=True)
        own.write_text("mutated")
        own.with_name("own.dll.stryker-unchanged").write_text("as it was built")
    (root / "src/Calc/Calc.cs").write_text("")
    async with adapter_on(root) as adapter:
        assert len(await discovered(adapter)) < len(mutants)
    assert own.read_text() == "as it was built"


async def test_builds_in_the_copy_are_incremental(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        await results_of(adapter, mutants[:1])
        await results_of(adapter, mutants[:1])
    [copy] = (root.parent / "cache").glob("testing-*/project/src/Calc/obj/built")
    assert copy.read_text() == "xx"


async def test_what_lies_above_the_project_is_found_beside_the_copy(dotnet: Scripted, root: Path) -> None:
    (root.parent / "Directory.Build.props").write_text("<Project><!-- ours --></Project>")
    (root.parent / "nuget.config").write_text("<configuration />")
    async with adapter_on(root) as adapter:
        await discovered(adapter)
        home = root.parent / "cache" / "discovery-0"
        assert (home / "Directory.Build.props").read_text() == "<Project><!-- ours --></Project>"
        assert (home / "global.json").read_text() == "{}\n"
        assert (home / "nuget.config").exists()
        (root.parent / "nuget.config").unlink()
        await discovered(adapter)
        assert not (home / "nuget.config").exists()


async def test_requests_side_by_side_never_meet_in_one_copy(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = chosen(await discovered(adapter), *TESTED)
        runs = await asyncio.gather(*(results_of(adapter, mutants) for _ in range(3)))
    assert [len(results) for results in runs] == [3, 3, 3]

"""Serve: what is different when Stryker.NET has a mutation server of its own. Against the scripted dotnet, whose server
behaves as https://github.com/stryker-mutator/stryker-net/pull/3847 says: never against the real tool."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msp_bridge.adapters.stryker_net import StrykerNet
from msp_bridge.adapters.stryker_net.plan import Plan
from support.net_trees import (
    BRIDGE,
    SDK,
    Scripted,
    adapter_on,
    copied,
    discovered,
    results_of,
    scripted_dotnet,
    statuses,
)

from msp_bridge.adapter import Mutant, Project, Result, Status, ToolError
from msp_bridge.testing import Running, TreeState, check_adapter

SUMS = "src/Calc/Calc.cs"
TESTED = ("a - b", "g - h", "i - j")
ALL = {
    "a - b": "Killed",
    "e - f": "NoCoverage",
    "g - h": "Survived",
    "i - j": "Timeout",
    "k - l": "CompileError",
}


@pytest.fixture
def dotnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    monkeypatch.setattr("msp_bridge.adapters.stryker_net.warm.PROMPT", 60.0)  # however busy the machine is
    return scripted_dotnet(tmp_path, monkeypatch, serves=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return copied("net_calc", tmp_path)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msp_bridge.adapters.stryker_net.warm.PROMPT", 0.2)


def chosen(mutants: list[Mutant], *replacements: str) -> list[Mutant]:
    return [mutant for mutant in mutants if mutant.replacement in replacements]


def servers(dotnet: Scripted) -> set[int]:
    """The processes that were asked to test something."""
    return {request["pid"] for request in dotnet.requests if request["method"] == "mutationTest"}


async def begun(dotnet: Scripted, requests: int, method: str = "mutationTest") -> None:
    while [request["method"] for request in dotnet.requests].count(method) < requests:
        await asyncio.sleep(0.01)


def mutated(root: Path) -> list[Path]:
    return list((root.parent / "cache").rglob("*.stryker-unchanged"))


@pytest.mark.parametrize("tree", ["net_calc", "net_repo"])
async def test_the_adapter_keeps_its_promises_through_the_server(
    dotnet: Scripted, tree: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tree == "net_repo":
        monkeypatch.setenv("PATH", str(SDK / "tools"), prepend=os.pathsep)
    root = copied(tree, tmp_path)
    await check_adapter(StrykerNet, Project(root=root, cache=tmp_path / "cache", jobs=2), sample=6)
    assert all(run["arguments"][:3] == ["serve", "stdio", "--"] for run in dotnet.runs)


async def test_every_status_is_told_and_ids_of_tests_are_not(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        results = await results_of(adapter, mutants)
    assert statuses(results) == ALL  # without the one that a comment disables: the server doesn't list it
    assert {result.mutant for result in results} == set(mutants)
    assert len(results) == len(mutants)
    assert {result.covered_by for result in results} | {result.killed_by for result in results} == {None}
    [untested] = [result for result in results if result.mutant.replacement == "e - f"]
    assert untested.status_reason == "Not covered by any test."
    assert untested.static is False


async def test_mutants_are_the_same_as_by_the_command_line(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        by_server = await discovered(adapter)
    async with adapter_on(root, settings={"serve": False}) as adapter:
        by_command_line = await discovered(adapter)
        results = await results_of(adapter, chosen(by_command_line, "a - b"))
    assert {mutant.id for mutant in by_command_line} - {mutant.id for mutant in by_server} == {
        mutant.id for mutant in by_command_line if mutant.replacement == "m - n"
    }
    assert set(by_server) < set(by_command_line)
    assert results[0].killed_by == ("Calc.Tests.Adds",)  # found out anew, with handles for the command line


async def test_places_are_right_whatever_the_file_is_like(dotnet: Scripted, root: Path) -> None:
    text = "class A { /* \N{GRINNING FACE} */ int B(int a, int b) { return a + b; }\u2028\u2028\r\nint C(int o, int p) => o + p; }\r\n"
    (root / SUMS).write_bytes(codecs.BOM_UTF8 + text.encode())
    (root / "src/Calc/Names.cs").write_bytes(text.encode("utf-16"))
    async with adapter_on(root) as adapter:
        by_server = await discovered(adapter)
        assert len(await results_of(adapter, by_server)) == len(by_server)
    places = {mutant.replacement: mutant.location for mutant in by_server if mutant.path == SUMS}
    assert {mutant.replacement: mutant.location for mutant in by_server if mutant.path != SUMS} == places
    assert (places["o - p"].start.line, places["o - p"].start.column) == (2, 24)
    assert (places["a - b"].start.line, places["a - b"].start.column) == (1, text.index("a + b") + 2)


async def test_only_what_is_asked_for_is_tested(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        [block] = [mutant for mutant in mutants if mutant.replacement == "{}" and mutant.location.start.line == 5]
        [result] = await results_of(adapter, [block])
    assert (result.mutant, result.status) == (block, Status.KILLED)
    [asked] = [request for request in dotnet.requests if request["method"] == "mutationTest"]
    [[entry]] = [file["mutants"] for file in asked["params"]["mutants"].values()]
    assert list(asked["params"]["mutants"]) == [SUMS]
    assert len(entry["id"]) == 64


async def test_a_result_arrives_before_the_next_mutant_is_tested(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = chosen(await discovered(adapter), "a - b", "e - f", "g - h")
        dotnet.say(gate=str(dotnet.gate))
        async with contextlib.aclosing(adapter.test(mutants)) as results:
            first, second = await anext(results), await anext(results)
            assert not dotnet.gate.exists()
            dotnet.gate.touch()
            rest = [result async for result in results]
    assert [result.mutant.replacement for result in (first, second, *rest)] == ["e - f", "a - b", "g - h"]


async def test_one_server_serves_request_after_request(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = chosen(await discovered(adapter), *TESTED)
        for _ in range(3):
            assert len(await results_of(adapter, mutants)) == 3
        assert len(dotnet.runs) == 2  # one to find mutants, one to test them
        assert len(servers(dotnet)) == 1
        assert not mutated(root)


async def test_a_cancel_leaves_the_server_warm_and_the_assemblies_as_they_were(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = chosen(await discovered(adapter), *TESTED)
        dotnet.say(gate=str(dotnet.gate))
        async with contextlib.aclosing(adapter.test(mutants)) as results:
            await anext(results)
            assert mutated(root)
        assert not mutated(root)
        dotnet.say()
        assert len(await results_of(adapter, mutants)) == 3
        assert len(servers(dotnet)) == 1


@pytest.mark.parametrize("fault", ["deaf", "hang"])
async def test_a_server_that_does_not_answer_a_cancel_is_ended(
    dotnet: Scripted, root: Path, impatient: None, fault: str
) -> None:
    running = Running()
    async with adapter_on(root) as adapter:
        mutants = chosen(await discovered(adapter), *TESTED)
        idle = len(running.look())
        dotnet.say(fault=fault, gate=str(dotnet.gate), stray=True)
        testing = asyncio.create_task(results_of(adapter, mutants))
        await begun(dotnet, 1)
        testing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await testing
        assert len(await running.settled(idle)) <= idle
        assert not mutated(root)
        dotnet.say()
        assert len(await results_of(adapter, mutants)) == 3
        assert len(servers(dotnet)) == 2


@pytest.mark.parametrize("seed", range(3))
async def test_a_request_that_is_cancelled_at_any_moment_disturbs_no_later_one(
    dotnet: Scripted, root: Path, seed: int
) -> None:
    async with adapter_on(root) as adapter:
        mutants = chosen(await discovered(adapter), *TESTED)
        dotnet.say(gate=str(dotnet.gate))
        testing = asyncio.create_task(results_of(adapter, mutants))
        await asyncio.sleep(random.Random(seed).uniform(0, 0.4))
        testing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await testing
        assert not mutated(root)
        dotnet.say()
        assert statuses(await results_of(adapter, mutants)) == {
            "a - b": "Killed",
            "g - h": "Survived",
            "i - j": "Timeout",
        }


async def test_a_discovery_that_is_cancelled_leaves_nothing_behind(
    dotnet: Scripted, root: Path, impatient: None
) -> None:
    running = Running()
    async with adapter_on(root) as adapter:
        dotnet.say(fault="hang")
        discovering = asyncio.create_task(discovered(adapter))
        await begun(dotnet, 1, "discover")
        discovering.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await discovering
        assert await running.settled(0) == []
        dotnet.say()
        assert await discovered(adapter)


@pytest.mark.parametrize("moment", ["later on", "in the middle"])
async def test_a_killed_bridge_takes_the_servers_with_it(dotnet: Scripted, root: Path, moment: str) -> None:
    if moment == "in the middle":
        dotnet.say(gate=str(dotnet.gate))
    before, running = TreeState.of(root), Running()
    bridge = subprocess.Popen([sys.executable, "-c", BRIDGE, root], stdout=subprocess.PIPE)
    try:
        assert bridge.stdout is not None
        for _ in range(len(ALL) + 6 if moment == "later on" else 1):
            assert await asyncio.to_thread(bridge.stdout.readline)
        assert len(running.look()) >= 6  # two servers with their guards and supervisors
    finally:
        bridge.kill()
        bridge.communicate()
    assert await running.settled(0) == []
    assert before.differences(TreeState.of(root)) == []
    dotnet.say()
    async with adapter_on(root) as adapter:  # which finds the copies that the other one left in disorder
        results = await results_of(adapter, chosen(await discovered(adapter), *TESTED))
    assert statuses(results) == {"a - b": "Killed", "g - h": "Survived", "i - j": "Timeout"}


async def test_a_newer_request_goes_first_in_the_same_server(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        dotnet.say(gate=str(dotnet.gate))
        async with contextlib.aclosing(adapter.test(chosen(mutants, *TESTED))) as older:
            results = [await anext(older)]
            waiting = asyncio.ensure_future(anext(older))
            [newer] = await results_of(adapter, chosen(mutants, "c != d"))  # a single mutant passes the gate
            assert not waiting.done()
            dotnet.gate.touch()
            results.append(await waiting)
            results += [result async for result in older]
    assert newer.status is Status.KILLED
    assert statuses(results) == {"a - b": "Killed", "g - h": "Survived", "i - j": "Timeout"}
    again = dotnet.requests[-1]["params"]["mutants"][SUMS]["mutants"]
    assert len(again) == 2  # only what had no result yet
    assert len(servers(dotnet)) == 1


async def test_discovery_answers_while_tests_run_also_after_an_edit(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        dotnet.say(gate=str(dotnet.gate))
        file, running = root / SUMS, Running()
        text, before = file.read_text(), file.stat()
        async with contextlib.aclosing(adapter.test(chosen(mutants, *TESTED))) as results:
            await anext(results)
            file.write_text(f"// \n{text}")
            assert {m.location.start.line for m in await discovered(adapter, SUMS)} == {
                m.location.start.line + 1 for m in mutants if m.path == SUMS
            }
            assert running.look()  # and the tests still run
            file.write_text(text)
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


async def test_edited_code_and_tests_are_seen_by_the_same_server(dotnet: Scripted, root: Path) -> None:
    tests, code = root / "tests/Calc.Tests/SumsTests.cs", root / SUMS
    original = tests.read_text(), code.read_text()
    async with adapter_on(root) as adapter:
        weak = chosen(await discovered(adapter), "g - h")
        assert statuses(await results_of(adapter, weak)) == {"g - h": "Survived"}
        tests.write_text(original[0].replace("covers: g + h", "kills: g + h"))
        assert statuses(await results_of(adapter, weak)) == {"g - h": "Killed"}
        code.write_text(f"\n{original[1]}")
        assert await results_of(adapter, weak) == []  # it is elsewhere now
        moved = chosen(await discovered(adapter), "g - h")
        assert statuses(await results_of(adapter, moved)) == {"g - h": "Killed"}
        assert len(servers(dotnet)) == 1
        tests.write_text(original[0])
        code.write_text(original[1])
        _restore_times(root, tests, code)


async def test_mutants_whose_file_has_changed_in_the_meantime_are_no_failure(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        plan = Plan.make(adapter._project)
        found = await adapter._discovery.mutants(plan)
        (root / SUMS).write_text("\n" + (root / SUMS).read_text())
        async with contextlib.aclosing(adapter._testing.test(plan, found, found.files[SUMS])) as results:
            assert [result async for result in results] == []
        (root / SUMS).write_text((root / SUMS).read_text().removeprefix("\n"))
        _restore_times(root, root / SUMS)


async def test_another_server_is_started_when_the_build_has_changed(
    dotnet: Scripted, root: Path, tmp_path: Path
) -> None:
    async with adapter_on(root) as adapter:
        mutants = chosen(await discovered(adapter), "a - b")
        await results_of(adapter, mutants)
        (tmp_path / "Directory.Build.props").write_text("<Project><!-- above the project --></Project>")
        assert len(await results_of(adapter, mutants)) == 1
        assert len(servers(dotnet)) == 2


async def test_another_server_is_started_when_one_has_died_meanwhile(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = chosen(await discovered(adapter), *TESTED)
        await results_of(adapter, mutants)
        [server] = servers(dotnet)
        kept = adapter._testing._warm._server
        assert kept is not None
        os.kill(server, signal.SIGKILL)
        while not kept.ended:
            await asyncio.sleep(0.01)
        assert len(await results_of(adapter, mutants)) == 3
        assert len(servers(dotnet)) == 2


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("crash", "ended unexpectedly .*No space left on device"),
        ("killed", "ended unexpectedly"),
        ("compile-error", r"failed: Initial build of targeted project failed: Calc\.cs\(3,5\): error CS1002.*by hand"),
        ("silent", "answered without a single result .*Compilation failed: the mutated code has an error"),
        ("flood", "announced a message of 999999999 bytes"),
    ],
)
async def test_a_server_that_breaks_down_fails_with_a_clear_sentence_and_the_next_request_works(
    dotnet: Scripted, root: Path, fault: str, words: str
) -> None:
    async with adapter_on(root) as adapter:
        mutants = chosen(await discovered(adapter), *TESTED)
        dotnet.say(fault=fault)
        told: list[Result] = []
        with pytest.raises(ToolError, match=f"(?s){words}") as failure:
            await results_of(adapter, mutants, told)
        assert str(root.parent / "cache") not in str(failure.value)
        assert len(told) == (1 if fault in ("crash", "killed", "flood") else 0)  # which it had told until then
        assert not mutated(root)
        dotnet.say()
        assert len(await results_of(adapter, mutants)) == 3


async def test_a_discovery_that_fails_says_why(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        for fault, words in (("compile-error", "error CS1002"), ("other-shape", "listed mutants in an unknown shape")):
            dotnet.say(fault=fault)
            with pytest.raises(ToolError, match=words):
                await discovered(adapter)
        dotnet.say()
        assert await discovered(adapter)


async def test_noise_around_messages_and_a_mutant_it_did_not_finish_are_no_failure(
    dotnet: Scripted, root: Path
) -> None:
    dotnet.say(fault="noise")
    async with adapter_on(root) as adapter:
        mutants = chosen(await discovered(adapter), *TESTED)
        assert len(await results_of(adapter, mutants)) == 3
        dotnet.say(fault="unfinished")
        results = await results_of(adapter, mutants)
    assert statuses(results) == {"a - b": "Killed", "g - h": "Survived", "i - j": "RuntimeError"}
    assert results[-1].status_reason == "Stryker did not complete this mutant test."


async def test_a_server_that_never_says_it_is_ready_is_given_up(
    dotnet: Scripted, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msp_bridge.adapters.stryker_net.serve.PATIENCE", 0.3)
    running = Running()
    async with adapter_on(root) as adapter:
        dotnet.say(fault="mute")
        with pytest.raises(ToolError, match="did not answer within"):
            await discovered(adapter)
        assert await running.settled(0) == []


async def test_whether_there_is_a_server_is_asked_once_for_each_installation(dotnet: Scripted, root: Path) -> None:
    for _ in range(2):
        async with adapter_on(root) as adapter:
            mutants = await discovered(adapter)
            await results_of(adapter, mutants[:1])
            (root / SUMS).write_text((root / SUMS).read_text() + "\n")
            await discovered(adapter)
            (root / SUMS).write_text((root / SUMS).read_text().removesuffix("\n"))
            _restore_times(root, root / SUMS)
    assert dotnet.asked == 1


def _restore_times(root: Path, *files: Path) -> None:
    """Those of the fixture, for `adapter_on` compares the whole tree."""
    for file in files:
        original = Path(__file__).parent.parent / "projects" / "net_calc" / file.relative_to(root)
        times = original.stat()
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


async def test_a_tool_that_gets_a_server_is_asked_again(dotnet: Scripted, root: Path) -> None:
    without = Scripted(dotnet.directory, dotnet.monkeypatch, serves=False)
    without.say()
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        assert chosen(mutants, "m - n")
    dotnet.say()
    async with adapter_on(root) as adapter:
        assert await discovered(adapter) == mutants  # the manifest is the same: nobody asks
    (root / ".config/dotnet-tools.json").write_text((root / ".config/dotnet-tools.json").read_text() + "\n")
    async with adapter_on(root) as adapter:
        assert not chosen(await discovered(adapter), "m - n")
    assert dotnet.asked == 2


@pytest.mark.parametrize("settings", [{"serve": False}, {"command": f"{SDK / 'dotnet'} stryker --skip-version-check"}])
async def test_the_command_line_is_used_when_it_is_wanted_and_when_the_command_has_options(
    dotnet: Scripted, root: Path, settings: dict[str, object]
) -> None:
    async with adapter_on(root, settings=settings) as adapter:
        mutants = await discovered(adapter)
        assert statuses(await results_of(adapter, chosen(mutants, "a - b"))) == {"a - b": "Killed"}
    assert not any("serve" in run["arguments"] for run in dotnet.runs)
    assert dotnet.asked == 0


async def test_a_tool_that_is_not_restored_is_asked_again(dotnet: Scripted, root: Path) -> None:
    dotnet.say(fault="not-restored")
    async with adapter_on(root) as adapter:
        with pytest.raises(ToolError, match="not restored: run `dotnet tool restore`"):
            await discovered(adapter)
    dotnet.say()
    async with adapter_on(root) as adapter:
        await discovered(adapter)
    assert dotnet.requests


async def test_a_command_without_a_version_is_asked_in_each_life(dotnet: Scripted, root: Path) -> None:
    for _ in range(2):
        async with adapter_on(root, settings={"command": f"{SDK / 'dotnet'} stryker"}) as adapter:
            assert await discovered(adapter)
            assert await discovered(adapter)
    assert dotnet.asked == 2
    assert len(dotnet.runs) == 1  # the mutants were kept


async def test_doctor_says_that_the_server_is_used(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        before = [finding.subject async for finding in adapter.diagnose()]
        await discovered(adapter)
        after = [finding.subject async for finding in adapter.diagnose()]
    assert [subject for subject in after if subject not in before] == ["server"]

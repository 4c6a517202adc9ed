"""The private copy: the user's tree is never written to, nothing stays behind, and nothing is prepared twice.

Against the scripted dotnet.
"""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from support.adapters import discovered
from support.cancelling import cancelled
from support.net_trees import VERDICTS, Scripted, adapter_on, chosen, results_of, statuses
from support.projects import copied
from support.servers import until

from msp_bridge.testing import RunningProcesses

SUMS = "src/Calc/Calc.cs"


@pytest.fixture
def root(dotnet: Scripted, tmp_path: Path) -> Path:
    return copied("net_calc", tmp_path)


@pytest.mark.parametrize("seed", range(2))
async def test_a_request_that_is_cancelled_at_any_moment_leaves_nothing(
    dotnet: Scripted, root: Path, seed: int
) -> None:
    running = RunningProcesses()
    async with adapter_on(root) as adapter:
        mutants = chosen(await discovered(adapter))
        dotnet.say(stray=True, fault="hang" if seed % 2 else None)
        testing = asyncio.create_task(results_of(adapter, mutants))
        await asyncio.sleep(random.Random(seed).uniform(0, 0.5))
        await cancelled(testing)
        assert await running.settled(0) == []
        dotnet.say()
        assert statuses(await results_of(adapter, mutants)) == VERDICTS


async def test_a_discovery_that_is_cancelled_leaves_nothing(dotnet: Scripted, root: Path) -> None:
    running = RunningProcesses()
    async with adapter_on(root, settings={"engine": "tool"}) as adapter:
        dotnet.say(fault="hang")
        discovering = asyncio.create_task(discovered(adapter))
        await until(lambda: bool(dotnet.runs))
        await cancelled(discovering)
        assert await running.settled(0) == []
        dotnet.say()
        assert await discovered(adapter)


async def test_assemblies_that_a_killed_bridge_has_left_mutated_are_put_back(root: Path) -> None:
    async with adapter_on(root) as adapter:
        assert await discovered(adapter)
    [backup] = (root.parent / "cache/prepared-0/project/tests").rglob("*.stryker-unchanged")
    assert backup.read_bytes() == b"assembly of Calc"
    (root / SUMS).write_text((root / SUMS).read_text() + "\n")
    async with adapter_on(root) as adapter:  # the scripted tool fails when it is to build on a mutated assembly
        assert await discovered(adapter)


async def test_what_is_kept_is_no_good_when_the_copy_was_touched(dotnet: Scripted, root: Path) -> None:
    dotnet.say(host="empty")  # its assemblies have a switch
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
    cache = root.parent / "cache"
    [assembly] = (cache / "prepared-0/project/tests").rglob("Calc.dll")
    damages: list[Callable[[], object]] = [
        lambda: assembly.write_bytes(b"another one"),
        assembly.unlink,
        lambda: (cache / "answers.sqlite").write_text("{"),
    ]
    for runs, damage in enumerate(damages, 2):
        damage()
        async with adapter_on(root) as adapter:
            assert await discovered(adapter) == mutants
        assert len(dotnet.runs) == runs


async def test_what_is_kept_is_no_good_for_another_environment(
    dotnet: Scripted, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dotnet.say(host="empty")  # its assemblies have a switch
    (root / "tests/Only.cs").write_text(
        'class Only { bool Slow = Environment.GetEnvironmentVariable("CALC_SLOW") != null; }'
    )
    wanted = []
    for name in (None, "CALC_OTHER", "CALC_SLOW", "TZ"):  # the second one is not named anywhere
        with monkeypatch.context() as patch:
            if name:
                patch.setenv(name, "1")
            async with adapter_on(root) as adapter:
                assert await discovered(adapter)
        wanted.append(len(dotnet.runs))
    assert wanted == [1, 1, 2, 3]


async def test_what_was_prepared_before_an_edit_holds_for_no_later_build(dotnet: Scripted, root: Path) -> None:
    dotnet.say(host="empty")  # its assemblies have a switch
    text = (root / SUMS).read_text()
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
    (root / SUMS).write_text(text + "\n")
    async with adapter_on(root) as adapter:
        assert await discovered(adapter)
    [assembly] = (root.parent / "cache/prepared-0/project/tests").rglob("Calc.dll")
    assembly.write_bytes(b"as the build of the edited file left it")
    (root / SUMS).write_text(text)
    async with adapter_on(root) as adapter:
        assert await discovered(adapter) == mutants
    assert len(dotnet.runs) == 3


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
    assert len(dotnet.runs) == 1
    restored = (root.parent / "cache").rglob("project.assets.json")
    assert {file.read_text() for file in restored} == {"{}"}, "what is in the copy is of the copy's own restore"


async def test_artifacts_of_the_user_stay_out_of_the_copy_and_its_own_stay_in_it(root: Path) -> None:
    (root / "Directory.Build.props").write_text("<Project><UseArtifactsOutput>true</UseArtifactsOutput></Project>")
    (root / "artifacts").mkdir()
    (root / "artifacts" / "ours.dll").write_text("")
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        assert not list((root.parent / "cache").rglob("ours.dll"))
        own = root.parent / "cache/prepared-0/project/artifacts/own.dll"
        own.parent.mkdir(exist_ok=True)
        own.write_text("mutated")
        own.with_name("own.dll.stryker-unchanged").write_text("as it was built")
    (root / "src/Calc/Calc.cs").write_text("")
    async with adapter_on(root) as adapter:
        assert len(await discovered(adapter)) < len(mutants)
    assert own.read_text() == "as it was built"


async def test_what_lies_above_the_project_is_found_beside_the_copy(dotnet: Scripted, root: Path) -> None:
    (root.parent / "Directory.Build.props").write_text("<Project><!-- ours --></Project>")
    (root.parent / "nuget.config").write_text("<configuration />")
    async with adapter_on(root) as adapter:
        await discovered(adapter)
        home = root.parent / "cache" / "prepared-0"
        assert (home / "Directory.Build.props").read_text() == "<Project><!-- ours --></Project>"
        assert (home / "global.json").read_text() == "{}\n"
        assert (home / "nuget.config").exists()
        before = await adapter.surroundings()
        assert before is not None
        (root.parent / "nuget.config").unlink()
        assert await adapter.surroundings() != before
        await discovered(adapter)
        assert not (home / "nuget.config").exists()
    assert len(dotnet.runs) == 2


async def test_requests_side_by_side_never_meet_in_one_copy(root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = chosen(await discovered(adapter))
        runs = await asyncio.gather(*(results_of(adapter, mutants) for _ in range(3)))
    assert [statuses(results) for results in runs] == [VERDICTS] * 3


async def test_runs_leave_no_temporary_files(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        await results_of(adapter, chosen(await discovered(adapter)))
        temporary = root.parent / "cache/prepared-0/tmp"
        assert {run["temporary"] for run in dotnet.runs} == {str(temporary)}
        assert list(temporary.iterdir()) == []
        sockets = {Path("/tmp", run["compiler"]) for run in dotnet.runs if run["compiler"]}  # of the one that prepares
        assert len(sockets) == 1
        assert not any(socket.exists() for socket in sockets)


async def test_packages_are_restored_once(dotnet: Scripted, root: Path) -> None:
    restored = root.parent / "restored"
    dotnet.say(restored=str(restored))
    for text in ("", "// an edit\n"):
        with (root / "src/Calc/Calc.cs").open("a") as file:
            file.write(text)
        async with adapter_on(root) as adapter:
            assert await discovered(adapter)
    assert len(dotnet.runs) == 2
    assert restored.read_text() == "Calc.sln\n"

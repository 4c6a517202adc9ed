"""A cache that is full, closed, damaged, shared or gone: a right result, or one sentence that says what to do."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest
from support.faulty_servers import Served, served
from support.kits import MUTMUT, Kit, each_engine, with_files
from support.msp_client import Client, Refused
from support.mutmut_trial import PACKAGE, Trial
from support.places import bound, mounted, remount
from support.servers import launched

from msp_bridge.adapter import Status
from msp_bridge.testing import TreeState

RIGHT = {"steady": "Killed"}


@each_engine
async def test_a_disk_that_is_full_at_any_moment_is_reported_and_used_when_it_has_room(
    kit: Kit, tmp_path: Path
) -> None:
    root = with_files(kit, {"data/large.txt": "x" * 200_000}).lay_out(tmp_path / "project")
    tree = TreeState.of(root)
    sentences = []
    with mounted(tmp_path / "cache", "16k"):
        async with served(kit, root, "--jobs", "1") as there:
            for kilobytes in (16, 220, 240, 270, 340):
                remount(tmp_path / "cache", f"size={kilobytes}k")
                try:
                    status = await there.statuses("steady")
                except Refused as refused:
                    sentences.append(refused.message)
                else:
                    assert status in (RIGHT, {"steady": "RuntimeError"})
            remount(tmp_path / "cache", "size=64m")
            assert await there.statuses("steady") == RIGHT
    assert sentences
    assert [refused for refused in sentences if "free some space" not in refused] == []
    assert tree.differences(TreeState.of(root)) == []


@each_engine
async def test_a_cache_that_is_a_file_is_reported_and_one_that_vanishes_under_a_warm_server_is_made_anew(
    kit: Kit, tmp_path: Path
) -> None:
    root = kit.lay_out(tmp_path / "project")
    (tmp_path / "cache").write_text("")
    async with served(kit, root) as there:
        refused = await there.refusal("mutationTest")
        assert "no private copy can be made in" in refused
        assert "set MSP_BRIDGE_CACHE to a directory elsewhere" in refused
        (tmp_path / "cache").unlink()
        assert await there.statuses("steady") == RIGHT
        shutil.rmtree(tmp_path / "cache")
        assert await there.statuses("steady") == RIGHT


@each_engine
async def test_a_cache_that_may_not_be_written_is_reported(kit: Kit, tmp_path: Path) -> None:
    user = bound(tmp_path)
    root = kit.lay_out(tmp_path / "project")
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o555)
    async with served(kit, root, **user) as there:
        refused = await there.refusal("mutationTest")
        assert "Permission denied" in refused
        assert "set MSP_BRIDGE_CACHE to a directory elsewhere" in refused
        cache.chmod(0o755)
        assert await there.statuses("steady") == RIGHT


@each_engine
async def test_a_cache_that_becomes_read_only_is_reported(kit: Kit, tmp_path: Path) -> None:
    root = kit.lay_out(tmp_path / "project")
    with mounted(tmp_path / "cache", "64m"):
        async with served(kit, root, "--jobs", "1") as there:
            assert await there.statuses("steady") == RIGHT
        remount(tmp_path / "cache", "ro")
        async with served(kit, root, "--jobs", "1") as there:
            assert "Read-only file system" in await there.refusal("mutationTest")
            remount(tmp_path / "cache", "rw")
            assert await there.statuses("steady") == RIGHT


DAMAGES = {
    "bytecode": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "shape": lambda file: file.write_bytes(
        b"[[7], {}]" if file.name == "baseline.json" else b'{"version": 1, "key": 7}'
    ),
    "directory": lambda file: (file.unlink(), file.mkdir(), (file / "file").touch()),
}


@each_engine
async def test_a_damaged_cache_is_made_anew(kit: Kit, tmp_path: Path) -> None:
    root = kit.lay_out(tmp_path / "project")
    for file in root.rglob("*.py"):  # bytecode of what was saved just now is not kept
        os.utime(file, (1e9, 1e9))
    tree = TreeState.of(root)
    await check_anew(kit, root)
    for damage, spoil in DAMAGES.items():
        if damage == "bytecode" and kit is not MUTMUT:
            continue
        patterns = ["*.pyc"] if damage == "bytecode" else ["*.json", "*.ini"]
        files = [file for pattern in patterns for file in (tmp_path / "cache").rglob(pattern)]
        assert files, damage
        for file in files:
            spoil(file)
        await check_anew(kit, root, edit=damage == "shape")
    assert tree.entries.keys() == TreeState.of(root).entries.keys()


async def check_anew(kit: Kit, root: Path, *, edit: bool = False) -> None:
    """Another server gives the right verdict; with `edit`, also of a test that was edited."""
    async with served(kit, root, "--jobs", "1") as there:
        assert await there.statuses("steady") == RIGHT
        if edit:
            await edited(there)


async def edited(there: Served) -> None:
    """A test that was edited is asked anew."""
    file = there.root / there.kit.tests
    text = file.read_text()
    file.write_text(text.replace(") == 8", ") != 7"))
    assert await there.statuses("steady") == {"steady": "Survived"}
    file.write_text(text)
    assert await there.statuses("steady") == RIGHT


async def test_facts_about_tests_that_can_not_be_recorded_cost_no_verdict(tmp_path: Path) -> None:
    """Each test is run alone when a mutant has survived; there is no room for what that shows."""
    async with Trial.of(
        {
            **PACKAGE,
            "pkg/m.py": b'def f(a):\n    note = "nobody looks at it"\n    return a + 1, note\n',
            "tests/test_m.py": b"from pkg.m import f\n\ndef test_f():\n    assert f(1)[0] == 2\n",
        },
        tmp_path,
    ) as trial:
        mutants = await trial.discover()
        seen = [mutant for mutant in mutants if mutant.location.start.line == 3]
        unseen = [mutant for mutant in mutants if mutant.location.start.line == 2]
        assert {result.status for result in (await trial.test(seen)).values()} == {Status.KILLED}
        (trial.copy.parent / "baseline.new").mkdir()
        assert {result.status for result in (await trial.test(unseen)).values()} == {Status.SURVIVED}


@each_engine
async def test_two_servers_on_one_project_work_at_once_and_agree(kit: Kit, tmp_path: Path) -> None:
    harms = ("steady", "leave", "daemon")
    root = kit.lay_out(tmp_path / "project", *harms)
    tree = TreeState.of(root)
    right = {harm: kit.status(harm) for harm in harms}
    async with served(kit, root, "--jobs", "1") as one, served(kit, root, "--jobs", "1", alone=False) as other:
        assert await asyncio.gather(one.statuses(), other.statuses()) == [right, right]
    assert tree.differences(TreeState.of(root)) == []


async def test_the_next_bridge_deletes_the_temporary_files_of_a_killed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = MUTMUT.lay_out(tmp_path / "project")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    async with launched(root, "serve", "stdio", "--", "--adapter", "mutmut", "--python", sys.executable) as server:
        client = Client(server.stdio())
        assert await client.request("mutationTest") == {"files": {}}
        (left,) = (tmp_path / "tmp").glob("msp-*")
        server.process.kill()
        await server.exited()
    async with served(MUTMUT, root) as there:
        assert await there.statuses("steady") == RIGHT
        assert not left.exists()
    assert list((tmp_path / "tmp").glob("msp-*")) == []

"""Projects that are deleted, moved, broken and repaired while a server works on them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.faulty_servers import served
from support.kits import KITS, Kit
from support.servers import mutants_of

from msp_bridge.testing import TreeState

each_kit = pytest.mark.parametrize("kit", KITS, ids=lambda kit: kit.adapter)
HARMS = ("steady", "slow", "leave", "flood")


@each_kit
async def test_a_project_that_is_deleted_during_a_run_is_reported_and_found_when_it_is_back(
    kit: Kit, tmp_path: Path
) -> None:
    root = kit.lay_out(tmp_path / "project", *HARMS)
    right = {harm: kit.status(harm) for harm in HARMS}
    async with served(kit, root, "--jobs", "1") as there:
        mutants = await there.mutants()
        names = {mutant["id"]: harm for harm, mutant in mutants.items()}
        chosen = {kit.source: {"mutants": list(mutants.values())}}
        running = await there.client.ask("mutationTest", {"mutants": chosen})
        await there.client.some_progress()
        shutil.rmtree(root)
        answer = await there.client.answer(running)
        assert answer.get("result") == {"files": {}} or str(root) in answer["error"]["message"]
        assert "error" not in answer or answer["error"]["code"] == -32803
        for _, result in there.client.take_results():
            assert result["status"] in (right[names[result["id"]]], "Ignored")
        refused = await there.refusal("discover")
        assert str(root) in refused
        kit.lay_out(root, *HARMS)
        assert await there.statuses() == right


@each_kit
async def test_a_project_that_another_takes_the_place_of_is_that_other(kit: Kit, tmp_path: Path) -> None:
    root = kit.lay_out(tmp_path / "project", "steady")
    async with served(kit, root, "--jobs", "1") as there:
        assert await there.statuses() == {"steady": "Killed"}
        root.rename(tmp_path / "before")
        kit.lay_out(root, "steady", "leave")
        other = Path(kit.source).with_name(f"other{Path(kit.source).suffix}")
        (root / other).write_text((root / kit.source).read_text())
        tree = TreeState.of(root)
        found = mutants_of(await there.client.request("discover"))
        assert {path for path, _ in found} == {kit.source, other.as_posix()}
        assert await there.statuses() == {"steady": "Killed", "leave": kit.status("leave")}
    assert tree.differences(TreeState.of(root)) == []


@each_kit
async def test_tests_that_turn_red_are_reported_until_they_are_green(kit: Kit, tmp_path: Path) -> None:
    root = kit.lay_out(tmp_path / "project")
    tests = root / kit.tests
    text = tests.read_text()
    async with served(kit, root, "--jobs", "1") as there:
        assert await there.statuses() == {"steady": "Killed"}
        tests.write_text(kit.red)
        refused = await there.refusal("mutationTest")
        assert "test_red" in refused
        assert "it is red" in refused
        assert mutants_of(await there.client.request("discover")), "discovery runs no test"
        tests.write_text(text)
        assert await there.statuses() == {"steady": "Killed"}


@each_kit
async def test_a_source_that_is_no_code_any_more_has_no_mutants_and_spoils_no_other(kit: Kit, tmp_path: Path) -> None:
    root = kit.lay_out(tmp_path / "project", "steady", "leave")
    source = root / kit.source
    text = source.read_text()
    other = source.with_name(f"other{source.suffix}")
    other.write_text(text)
    async with served(kit, root, "--jobs", "1") as there:
        right = {"steady": "Killed", "leave": kit.status("leave")}
        assert await there.statuses() == right
        for broken in (b"def ((", b"\0" * 5000, b"\xff\xfe\xfd", b""):
            other.write_bytes(broken)
            found = mutants_of(await there.client.request("discover"))
            assert {path for path, _ in found} == {kit.source}
        assert await there.statuses() == right

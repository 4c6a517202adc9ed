"""Trees that are unreadable, read-only, endless, huge, or named in any way that a file may be named."""

import os
from pathlib import Path

from support.faulty_servers import served
from support.kits import MUTMUT, Kit, each_engine
from support.places import bound
from support.servers import mutants_of

from msp_bridge.testing import TreeState

RIGHT = {"steady": "Killed"}
ODD = [
    "with space",
    "new\nline",
    "tab\tbell\a",
    "quote'\"",
    "-dash",
    "*star[1]?",
    "back\\slash",
    "emoji\N{PILE OF POO}",
    os.fsdecode(b"no text \xff"),
    "percent%20#x&y=z",
    "e\N{COMBINING ACUTE ACCENT}",
    "$HOME `x`;",
    "colon:",
    "long" * 60,
    "right to left \N{RIGHT-TO-LEFT OVERRIDE}",
]


@each_engine
async def test_what_can_not_be_read_is_left_out_and_named(kit: Kit, tmp_path: Path) -> None:
    user = bound(tmp_path)
    root = kit.lay_out(tmp_path / "project")
    source = root / kit.source
    for name in ("secret", "hidden/inner"):
        file = source.parent / f"{name}{source.suffix}"
        file.parent.mkdir(exist_ok=True)
        file.write_text(source.read_text())
    (root / "data").write_text("not needed")
    closed = [source.parent / f"secret{source.suffix}", source.parent / "hidden", root / "data"]
    for path in closed:
        path.chmod(0)
    async with served(kit, root, **user) as there:
        assert await there.statuses() == RIGHT
        assert {path for path, _ in mutants_of(await there.client.request("discover"))} == {kit.source}
        said = "\n".join(there.server.said)
        for path in closed:
            name = f"{path.relative_to(root)}{'/' if path.is_dir() else ''}"
            assert said.count(f"{name} is left out of the copy: Permission denied") == 1
            path.chmod(0o755)
        found = mutants_of(await there.client.request("discover"))
        assert closed[0].relative_to(root).as_posix() in {path for path, _ in found}


@each_engine
async def test_a_tree_that_may_not_be_written_is_tested_like_any_other(kit: Kit, tmp_path: Path) -> None:
    user = bound(tmp_path)
    root = kit.lay_out(tmp_path / "project")
    for directory, _, files in os.walk(root):
        for name in (".", *files):
            os.chmod(os.path.join(directory, name), 0o555 if name == "." else 0o444)
    tree = TreeState.of(root)
    async with served(kit, root, **user) as there:
        assert await there.statuses() == RIGHT
    assert tree.differences(TreeState.of(root)) == []


@each_engine
async def test_files_and_projects_may_have_any_name(kit: Kit, tmp_path: Path) -> None:
    root = kit.lay_out(tmp_path / f"{ODD[0]}{ODD[3]}{ODD[8]}{ODD[12]}")
    if kit.nameless:
        async with served(kit, root) as there:
            assert kit.nameless in await there.refusal("discover")
        root = root.rename(tmp_path / f"{ODD[0]}{ODD[3]}{ODD[12]}")
    source, tests = root / kit.source, root / kit.tests
    names = [name for name in ODD if not any(part in name for part in kit.unnameable)]
    for name in ODD:  # what has no name for the tool spoils no other
        source.with_name(f"{name}{source.suffix}").write_bytes(source.read_bytes())
    tests.write_text(kit.importing.format(names=kit.literal(names)))
    paths = {f"{source.parent.name}/{name}{source.suffix}" for name in names}
    tree = TreeState.of(root)
    async with served(kit, root) as there:
        found = mutants_of(await there.client.request("discover"))
        chosen = {path: mutant for path, mutant in found if mutant["mutatorName"] == kit.mutator}
        assert chosen.keys() == {*paths, kit.source}
        request = {path: {"mutants": [chosen[path]]} for path in sorted(paths)}
        assert await there.client.request("mutationTest", {"mutants": request}) == {"files": {}}
        results = there.client.take_results()
        assert {path: result["status"] for path, result in results} == dict.fromkeys(paths, "Killed")
        for name in names[:9]:
            path = f"{source.parent.name}/{name}{source.suffix}"
            target = {"files": [{"path": path}]}
            assert {at for at, _ in mutants_of(await there.client.request("discover", target))} == {path}
    assert tree.differences(TreeState.of(root)) == []


@each_engine
async def test_links_that_lead_in_circles_lead_nobody_astray(kit: Kit, tmp_path: Path) -> None:
    root = kit.lay_out(tmp_path / "project")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "back").symlink_to(root)
    (outside / "itself").symlink_to(outside)
    source = root / kit.source
    again = source.parent / f"again{source.suffix}"
    for at, target in {
        root / "loop": "loop",
        root / "here": ".",
        root / "up": "..",
        root / "out": outside,
        source.parent / "self": ".",
        source.parent / "root": "..",
        again: source.name,
        source.parent / f"never{source.suffix}": f"never{source.suffix}",
    }.items():
        at.symlink_to(target)
    tree = TreeState.of(root)
    async with served(kit, root) as there:
        found = mutants_of(await there.client.request("discover"))
        assert {path for path, _ in found} <= {kit.source, again.relative_to(root).as_posix()}
        assert await there.statuses() == RIGHT
    assert tree.differences(TreeState.of(root)) == []


async def test_ten_thousand_files_are_no_obstacle(tmp_path: Path) -> None:
    kit = MUTMUT  # what the bridge does with so many, its private copy, is the same for all; the rest is the tool's own
    root = kit.lay_out(tmp_path / "project")
    for directory in range(100):
        (root / f"data/d{directory}").mkdir(parents=True)
        for number in range(100):
            (root / f"data/d{directory}/f{number}.py").touch()
    async with served(kit, root, "--jobs", "1") as there:
        assert await there.statuses() == RIGHT

"""What surrounds a Python project: packages by name and version, and where else modules are imported from."""

import sys
from pathlib import Path

import pytest

from msp_bridge.adapter import Project, Surroundings
from msp_bridge.python_engine import python_surroundings


async def asked(root: Path) -> Surroundings:
    return await python_surroundings(Project(root=root, cache=root.parent / "cache"), Path(sys.executable))


async def test_the_interpreter_and_its_packages_are_named(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    found = await asked(root)
    assert found.values["python"] == sys.version
    assert ["pytest", pytest.__version__] in [package[:2] for package in found.values["packages"]]
    assert found == await asked(root)


async def test_modules_from_elsewhere_are_trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for directory in (root / "src", elsewhere):
        directory.mkdir(parents=True)
    before = await asked(root)
    monkeypatch.setenv("PYTHONPATH", f"{elsewhere}:{root / 'src'}")
    assert set((await asked(root)).trees) - set(before.trees) == {elsewhere}


async def test_an_editable_package_is_a_tree_and_a_new_version_another_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, neighbour, target = tmp_path / "project", tmp_path / "neighbour", tmp_path / "site-packages"
    for directory in (root, target):
        directory.mkdir()
    info = target / "neighbour-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: neighbour\nVersion: 1.0\n")
    (info / "direct_url.json").write_text(f'{{"url": "{neighbour.as_uri()}", "dir_info": {{"editable": true}}}}')
    monkeypatch.setenv("PYTHONPATH", str(target))
    first = await asked(root)
    assert neighbour in first.trees
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: neighbour\nVersion: 1.1\n")
    assert (await asked(root)).values != first.values
    (info / "direct_url.json").write_text(f'{{"url": "{root.as_uri()}", "dir_info": {{"editable": true}}}}')
    assert root not in (await asked(root)).trees

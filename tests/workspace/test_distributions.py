"""What is installed is read as `importlib.metadata` reads it."""

import importlib.metadata
import re
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from msp_bridge.environment.distributions import EntryPoint, distributions, entry_points

REQUIREMENT = re.compile(r"[\w.-]+")
GROUPS = sorted({one.group for found in importlib.metadata.distributions() for one in found.entry_points})
PLUGIN = "[x.plugins]\none = package.module:Class [extra]\n"


def directory(at: Path, metadata: str = "METADATA", **files: str) -> Path:
    """The metadata of a distribution."""
    at.mkdir(parents=True)
    (at / metadata).write_text("Metadata-Version: 2.1\nname: A.Plugin\nRequires-Dist: b>=1\n\nRequires-Dist: none\n")
    for name, text in files.items():
        (at / f"{name}.txt").write_text(text)
    return at


def test_this_environment_is_as_the_standard_library_has_it() -> None:
    theirs = {found.name: found for found in importlib.metadata.distributions()}
    ours = {found.name: found for found in distributions(sys.path)}
    assert ours.keys() - {None} == {re.sub(r"[-_.]+", "-", name).lower() for name in theirs}
    for name, found in theirs.items():
        mine = ours[re.sub(r"[-_.]+", "-", name).lower()]
        assert [REQUIREMENT.match(line)[0] for line in mine.requires] == [
            REQUIREMENT.match(line)[0] for line in found.requires or ()
        ]
        assert mine.stem == mine.name


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_of_entry_points_is_as_the_standard_library_has_it(group: str) -> None:
    theirs = {(one.name, one.value.partition("[")[0].strip()) for one in importlib.metadata.entry_points(group=group)}
    assert {(one.name, one.value) for one in entry_points(group)} == theirs


@pytest.mark.parametrize(
    ("name", "metadata"), [("a_plugin-1.dist-info", "METADATA"), ("A.Plugin-1-py3.11.egg-info", "PKG-INFO")]
)
def test_an_older_form_is_read_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, metadata: str) -> None:
    directory(tmp_path / name, metadata, entry_points=PLUGIN, requires="c\n\n[extra]\nd\n")
    (found,) = distributions([str(tmp_path)])
    assert (found.name, found.stem) == ("a-plugin", "a-plugin")
    assert [*found.requires] == ["b>=1", "c"]
    monkeypatch.setattr(sys, "path", [str(tmp_path / "missing"), str(tmp_path)])
    assert entry_points("x.plugins") == [EntryPoint("one", "package.module:Class")]


def test_the_first_of_two_versions_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory(tmp_path / "new" / "a_plugin-2.dist-info")
    directory(tmp_path / "old" / "a_plugin-1.dist-info", entry_points=PLUGIN)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "new"), str(tmp_path / "old")])
    assert entry_points("x.plugins") == []
    monkeypatch.setattr(sys, "path", [str(tmp_path / "old"), str(tmp_path / "new")])
    assert len(entry_points("x.plugins")) == 1


def test_a_program_that_is_one_file_has_its_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ZipFile(tmp_path / "program.pyz", "w") as file:
        file.writestr("a_plugin-1.dist-info/METADATA", "Name: a-plugin\n")
        file.writestr("a_plugin-1.dist-info/entry_points.txt", PLUGIN)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "program.pyz")])
    assert entry_points("x.plugins") == [EntryPoint("one", "package.module:Class")]


def test_what_is_named_is_loaded() -> None:
    assert EntryPoint("one", "pathlib:Path.cwd").load() == Path.cwd

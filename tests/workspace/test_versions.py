"""Which files have changed since a version, and which were merely written."""

import os
from pathlib import Path

import pytest

from msp_bridge.incremental import state
from msp_bridge.workspace.versions import FileVersions


async def test_a_change_counts_until_it_is_undone_and_a_touch_always(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "b.py").write_text("1")
    versions = FileVersions(tmp_path)
    first = await versions.look()
    assert await versions.look() == first
    (tmp_path / "a.py").write_text("2")
    (tmp_path / "new.py").write_text("1")
    (tmp_path / "b.py").unlink()
    second = await versions.look()
    assert (second > first, versions.changed(first), versions.changed(second)) == (True, ["a.py", "b.py", "new.py"], [])
    assert (versions.has("new.py"), versions.has("b.py")) == (True, False)
    (tmp_path / "a.py").write_text("1")
    await versions.look()
    assert (versions.changed(first), versions.changed(second)) == (["b.py", "new.py"], ["a.py"])
    assert versions.touched(second) == ["a.py"]
    (tmp_path / "new.py").unlink()
    (tmp_path / "b.py").write_text("1")
    last = await versions.look()
    assert (versions.changed(first), versions.touched(first)) == ([], ["a.py", "b.py", "new.py"])
    os.utime(tmp_path / "a.py", (1, 1))
    await versions.look()
    assert (versions.changed(last), versions.touched(last)) == ([], ["a.py"])


async def test_what_runs_leave_in_the_tree_does_not_count(tmp_path: Path) -> None:
    versions = FileVersions(tmp_path)
    first = await versions.look()
    for name in (
        ".coverage",
        ".coverage.host.1",
        "server.log",
        ".a.py.swp",
        "__pycache__/a.pyc",
        ".venv/a.py",
        "new/d/",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).mkdir() if name.endswith("/") else (tmp_path / name).write_text("1")
    assert await versions.look() == first


async def test_a_tree_with_too_many_files_counts_by_those_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "MAX_FILES", 1)
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_text("1")
    versions = FileVersions(tmp_path)
    first = await versions.look(["a.py"])
    assert versions.too_large
    (tmp_path / "b.py").write_text("2")
    assert await versions.look() == first
    (tmp_path / "a.py").write_text("2")
    await versions.look()
    assert versions.changed(first) == ["a.py"]
    monkeypatch.undo()
    await versions.look()
    assert not versions.too_large

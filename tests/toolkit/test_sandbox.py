"""Sandbox: the copy equals the source after each refresh, and nothing done to it reaches the source."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from msp_bridge.errors import ConfigurationError, ToolError
from msp_bridge.toolkit import Sandbox, SandboxPool


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src" / "pkg").mkdir(parents=True)
    (root / "src" / "pkg" / "__init__.py").write_text("")
    (root / "src" / "pkg" / "a.py").write_text("x = 1\n")
    (root / "tests").mkdir()
    (root / "tests" / "test_a.py").write_text("import pkg.a\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    return root


@pytest.fixture
def shadow(source: Path, tmp_path: Path) -> Sandbox:
    return Sandbox(source, tmp_path / "cache" / "project")


def contents(root: Path) -> dict[str, bytes | str]:
    """Relative path to bytes, a link's target, or `/` for a directory."""
    found: dict[str, bytes | str] = {}
    for path in root.rglob("*"):
        name = path.relative_to(root).as_posix()
        found[name] = f"-> {path.readlink()}" if path.is_symlink() else "/" if path.is_dir() else path.read_bytes()
    return found


def test_the_first_refresh_copies_everything_and_says_so(source: Path, shadow: Sandbox) -> None:
    assert shadow.refresh() == {"src/pkg/__init__.py", "src/pkg/a.py", "tests/test_a.py", "run.sh"}
    assert contents(shadow.path) == contents(source)
    assert stat.S_IMODE((shadow.path / "run.sh").stat().st_mode) == 0o755
    assert (shadow.path / "run.sh").stat().st_mtime_ns == (source / "run.sh").stat().st_mtime_ns


def test_a_link_in_the_place_of_the_copy_is_not_followed(source: Path, shadow: Sandbox, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "mine.py").write_text("mine")
    shadow.path.parent.mkdir()
    shadow.path.symlink_to(precious)
    shadow.refresh()
    assert contents(precious) == {"mine.py": b"mine"}
    assert contents(shadow.path) == contents(source)


def test_a_refresh_without_changes_changes_nothing(source: Path, shadow: Sandbox) -> None:
    shadow.refresh()
    before = (shadow.path / "src/pkg/a.py").stat()
    assert shadow.refresh() == frozenset()
    assert (shadow.path / "src/pkg/a.py").stat() == before


def test_what_changed_appeared_or_vanished_in_the_source_is_brought_over(source: Path, shadow: Sandbox) -> None:
    shadow.refresh()
    (source / "src/pkg/a.py").write_text("x = 22\n")
    (source / "tests/test_a.py").unlink()
    (source / "new").mkdir()
    (source / "new/b.py").write_text("b\n")
    assert shadow.refresh() == {"src/pkg/a.py", "tests/test_a.py", "new/b.py"}
    assert contents(shadow.path) == contents(source)


def test_an_edit_of_the_same_size_and_time_is_seen(source: Path, shadow: Sandbox) -> None:
    file = source / "src/pkg/a.py"
    for _ in range(30):
        before = file.stat()
        shadow.refresh()
        file.write_text("x = 2\n" if file.read_text() == "x = 1\n" else "x = 1\n")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert shadow.refresh() == {"src/pkg/a.py"}
        assert contents(shadow.path) == contents(source)


def test_a_file_that_was_only_touched_has_not_changed(source: Path, shadow: Sandbox) -> None:
    shadow.refresh()
    (source / "run.sh").touch()
    assert shadow.refresh() == frozenset()


def test_a_change_of_the_right_to_execute_is_brought_over(source: Path, shadow: Sandbox) -> None:
    shadow.refresh()
    (source / "run.sh").chmod(0o644)
    assert shadow.refresh() == {"run.sh"}
    assert not os.access(shadow.path / "run.sh", os.X_OK)


def test_what_tools_and_tests_did_to_the_copy_is_undone(source: Path, shadow: Sandbox) -> None:
    shadow.refresh()
    file = shadow.path / "src/pkg/a.py"
    before = file.stat()
    file.write_text("x = 9\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    (shadow.path / "run.sh").unlink()
    (shadow.path / "litter/deep").mkdir(parents=True)
    (shadow.path / "litter/deep/file").write_text("")
    (shadow.path / "litter/deep").chmod(0o500)
    (shadow.path / "tests").chmod(0o500)
    os.mkfifo(shadow.path / "pipe")
    assert shadow.refresh() == frozenset()
    assert contents(shadow.path) == contents(source)
    assert stat.S_IMODE((shadow.path / "tests").stat().st_mode) & 0o700 == 0o700


def test_what_is_written_to_the_copy_at_once_is_undone_though_the_source_is_as_young(
    source: Path, shadow: Sandbox
) -> None:
    edited, copy = source / "src/pkg/a.py", shadow.path / "src/pkg/a.py"
    for number in range(30):
        edited.write_text(f"x = {number:02}\n")
        shadow.refresh()
        copy.write_text("y = 00\n")
        shadow.refresh()
        assert copy.read_bytes() == edited.read_bytes()


def test_a_link_put_into_the_copy_never_leads_a_refresh_into_the_source(source: Path, shadow: Sandbox) -> None:
    shadow.refresh()
    before = contents(source)
    (shadow.path / "src/pkg/a.py").unlink()
    (shadow.path / "src/pkg/a.py").symlink_to(source / "src/pkg/a.py")
    for name in ("test_a.py",):
        (shadow.path / "tests" / name).unlink()
    (shadow.path / "tests").rmdir()
    (shadow.path / "tests").symlink_to(source / "tests")
    shadow.refresh()
    assert contents(source) == before == contents(shadow.path)


def test_bytecode_of_a_replaced_file_is_forgotten(source: Path, shadow: Sandbox) -> None:
    file = source / "src/pkg/a.py"
    os.utime(file, (1_000_000_000, 1_000_000_000))
    shadow.refresh()
    command = [sys.executable, "-c", "import pkg.a; print(pkg.a.x)"]
    run = {"cwd": shadow.path / "src", "env": {"PATH": os.defpath}, "text": True}
    assert subprocess.check_output(command, **run) == "1\n"  # type: ignore[call-overload]
    assert list((shadow.path / "src/pkg/__pycache__").glob("a.*.pyc"))
    file.write_text("x = 2\n")
    os.utime(file, (1_000_000_000, 1_000_000_000))
    shadow.refresh()
    assert subprocess.check_output(command, **run) == "2\n"  # type: ignore[call-overload]


def test_overlaid_paths_are_left_alone_and_still_reported(source: Path, shadow: Sandbox) -> None:
    shadow.overlaid.update({"src/pkg/a.py", "made/by/"})
    assert "src/pkg/a.py" in shadow.refresh()
    (shadow.path / "src/pkg/a.py").write_text("mutated\n")
    (shadow.path / "made/by").mkdir(parents=True)
    (shadow.path / "made/by/owner.py").write_text("")
    (shadow.path / "made/litter").write_text("")
    assert shadow.refresh() == frozenset()
    (source / "src/pkg/a.py").write_text("x = 22\n")
    assert shadow.refresh() == {"src/pkg/a.py"}
    assert (shadow.path / "src/pkg/a.py").read_text() == "mutated\n"
    assert (shadow.path / "made/by/owner.py").exists()
    assert not (shadow.path / "made/litter").exists()
    shadow.overlaid.clear()
    assert shadow.refresh() == frozenset()
    assert contents(shadow.path) == contents(source)


def test_version_control_environments_caches_and_sockets_stay_out(
    source: Path, shadow: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = contents(source)
    for name in (".git", "deep/.git", "venv", "node_modules", "src/__pycache__", ".mypy_cache"):
        (source / name).mkdir(parents=True)
        (source / name / "file").write_text("")
    for name, marker in (("env3", "pyvenv.cfg"), ("target", "CACHEDIR.TAG")):
        (source / name).mkdir()
        (source / name / marker).write_text("")
    (source / ".#a.py").symlink_to("somebody@somewhere.1")
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(source)  # a socket's path must be short
        listening.bind("socket")
        shadow.refresh()
    copied = contents(shadow.path)
    assert copied == expected | {"deep": "/"}


def test_what_a_tool_makes_at_the_root_stays_out_where_that_is_said(source: Path, tmp_path: Path) -> None:
    expected = contents(source)
    for name in ("mutants", "src/mutants"):
        (source / name).mkdir()
        (source / name / "mine.py").write_text("")
    usual, without = (tmp_path / "cache" / name / "project" for name in ("usual", "without"))
    Sandbox(source, usual).refresh()
    assert contents(usual) == contents(source)
    shadow = Sandbox(source, without, left_out=frozenset({"mutants"}))
    assert "mutants/mine.py" not in shadow.refresh()
    (without / "mutants").mkdir()
    (without / "mutants" / "made by the tool").touch()
    (source / "mutants" / "mine.py").write_text("changed")
    assert shadow.is_current()
    assert shadow.refresh() == frozenset()
    nested = {"src/mutants": "/", "src/mutants/mine.py": b""}
    assert contents(without) == expected | nested | {"mutants": "/", "mutants/made by the tool": b""}


def test_links_within_the_tree_lead_to_the_copy(source: Path, shadow: Sandbox) -> None:
    (source / "plain").symlink_to("src/pkg")
    (source / "src/absolute").symlink_to(source / "tests" / "test_a.py")
    (source / "tests/around").symlink_to(Path("..", "..", source.name, "run.sh"))
    (source / "loop").symlink_to("loop")
    (source / "dangling").symlink_to("nowhere")
    shadow.refresh()
    assert (shadow.path / "plain").readlink() == Path("src/pkg")
    assert (shadow.path / "dangling").readlink() == Path("nowhere")
    for name in ("plain", "src/absolute", "tests/around"):
        assert (shadow.path / name).resolve().is_relative_to(shadow.path)
    (shadow.path / "src/absolute").write_text("written in the copy")
    assert (source / "tests/test_a.py").read_text() == "import pkg.a\n"
    assert shadow.refresh() == frozenset()


def test_links_that_lead_out_of_the_tree_become_copies(source: Path, shadow: Sandbox, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "data").mkdir(parents=True)
    (outside / "data" / "one.txt").write_text("one")
    (outside / "data" / "up").symlink_to("..")
    (outside / "data" / "back").symlink_to(source)
    (source / "data").symlink_to(outside / "data")
    (source / "one.txt").symlink_to(Path("..", "outside", "data", "one.txt"))
    (source / "parent").symlink_to("..")
    (source / "nowhere").symlink_to(tmp_path / "nowhere")
    shadow.refresh()
    assert not (shadow.path / "one.txt").is_symlink()
    assert not (shadow.path / "data").is_symlink()
    for name in ("one.txt", "data/one.txt"):
        (shadow.path / name).write_text("written in the copy")
    assert (outside / "data/one.txt").read_text() == "one"
    assert not os.path.lexists(shadow.path / "parent")
    assert not os.path.lexists(shadow.path / "nowhere")
    assert not os.path.lexists(shadow.path / "data/up")
    assert (shadow.path / "data/back").resolve() == shadow.path
    (outside / "data/one.txt").write_text("changed")
    assert shadow.refresh() == {"one.txt", "data/one.txt"}
    assert (shadow.path / "data/one.txt").read_text() == "changed"


def test_a_directory_that_becomes_a_file_or_a_link_is_replaced(source: Path, shadow: Sandbox) -> None:
    shadow.refresh()
    (source / "tests/test_a.py").unlink()
    (source / "tests").rmdir()
    (source / "tests").write_text("a file now")
    (source / "run.sh").unlink()
    (source / "run.sh").symlink_to("tests")
    assert shadow.refresh() == {"tests", "tests/test_a.py", "run.sh"}
    assert contents(shadow.path) == contents(source)


def test_read_only_files_can_be_written_in_the_copy(source: Path, shadow: Sandbox) -> None:
    (source / "src/pkg/a.py").chmod(0o444)
    (source / "src/pkg").chmod(0o555)
    try:
        shadow.refresh()
    finally:
        (source / "src/pkg").chmod(0o755)
    assert stat.S_IMODE((shadow.path / "src/pkg/a.py").stat().st_mode) == 0o644
    assert stat.S_IMODE((shadow.path / "src/pkg").stat().st_mode) == 0o755


def test_unreadable_files_are_left_out_with_a_warning(
    source: Path, shadow: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    (source / "src/pkg/a.py").chmod(0)
    if os.access(source / "src/pkg/a.py", os.R_OK):
        pytest.skip("nothing is unreadable to this user")
    (source / "tests").chmod(0)
    try:
        assert shadow.refresh() == {"src/pkg/__init__.py", "run.sh"}
        assert shadow.refresh() == frozenset()
    finally:
        (source / "tests").chmod(0o755)
    assert "src/pkg/a.py is left out" in caplog.text
    (source / "src/pkg/a.py").chmod(0o644)
    assert shadow.refresh() == {"src/pkg/a.py", "tests/test_a.py"}


def test_names_that_are_no_text_are_copied(source: Path, shadow: Sandbox) -> None:
    name = os.fsdecode(b"caf\xe9 [1] *.py")
    (source / name).write_text("1")
    assert name in shadow.refresh()
    again = Sandbox(source, shadow.path)
    assert again.refresh() == frozenset()
    assert (shadow.path / name).read_text() == "1"


def test_a_file_that_vanishes_while_it_is_copied_is_left_out(
    source: Path, shadow: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    from msp_bridge.toolkit import clone as cloning

    clone = cloning.clone

    def deleting(file: str, target: str) -> str:
        if file.endswith("a.py"):
            Path(file).unlink()
        return clone(file, target)

    monkeypatch.setattr("msp_bridge.toolkit.refresh.clone", deleting)
    shadow.refresh()
    assert contents(shadow.path) == contents(source)
    assert "src/pkg/a.py" not in contents(shadow.path)


def test_another_process_goes_on_where_the_last_one_stopped(source: Path, shadow: Sandbox) -> None:
    shadow.refresh()
    inode = (shadow.path / "run.sh").stat().st_ino
    (source / "src/pkg/a.py").write_text("x = 3\n")
    again = Sandbox(source, shadow.path)
    assert again.refresh() == {"src/pkg/a.py"}
    assert (shadow.path / "run.sh").stat().st_ino == inode


def test_a_copy_of_another_project_or_with_a_broken_manifest_is_made_anew(
    source: Path, shadow: Sandbox, tmp_path: Path
) -> None:
    shadow.refresh()
    (shadow.path.parent / "manifest.json").write_text('{"version": 1')
    assert len(Sandbox(source, shadow.path).refresh()) == 4
    other = tmp_path / "other"
    other.mkdir()
    (other / "only.py").write_text("")
    assert Sandbox(other, shadow.path).refresh() == {"only.py"}
    assert contents(shadow.path) == contents(other)


def test_the_digest_names_the_content(source: Path, shadow: Sandbox, tmp_path: Path) -> None:
    shadow.refresh()
    first = shadow.digest
    second = Sandbox(source, tmp_path / "second" / "project")
    second.refresh()
    assert second.digest == first != ""
    (source / "run.sh").write_text("#!/bin/bash\n")
    shadow.refresh()
    assert shadow.digest != first


def test_a_cache_within_the_project_is_refused(source: Path) -> None:
    with pytest.raises(ConfigurationError, match="lies in the project"):
        Sandbox(source, source / ".cache" / "project").refresh()
    assert not (source / ".cache").exists()


def test_a_disk_without_room_is_told(source: Path, shadow: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: str, target: str) -> str:
        raise OSError(28, "No space left on device", target)

    monkeypatch.setattr("msp_bridge.toolkit.refresh.clone", full)
    with pytest.raises(ToolError, match="free some space"):
        shadow.refresh()


def test_two_claims_get_two_copies_and_a_third_is_refused(source: Path, tmp_path: Path) -> None:
    home = tmp_path / "cache"
    first = Sandbox.claim(home, source, limit=2)
    second = Sandbox.claim(home, source, limit=2)
    assert first.path.name == second.path.name == source.name
    assert first.path != second.path
    with pytest.raises(ToolError, match="in use"):
        Sandbox.claim(home, source, limit=2)
    first.close()
    first.close()
    assert Sandbox.claim(home, source, limit=2).path == first.path


def _hold(home: Path, source: Path, claimed: multiprocessing.synchronize.Event) -> None:
    shadow = Sandbox.claim(home, source)
    shadow.refresh()
    claimed.set()
    socket.socketpair()[0].recv(1)


def test_the_copy_of_a_killed_process_is_free_again(source: Path, tmp_path: Path) -> None:
    home = tmp_path / "cache"
    spawning = multiprocessing.get_context("spawn")
    claimed = spawning.Event()
    holder = spawning.Process(target=_hold, args=(home, source, claimed))
    holder.start()
    try:
        assert claimed.wait(60)
        ours = Sandbox.claim(home, source)
        assert ours.path.parent.name == "copy-1"
    finally:
        holder.kill()
        holder.join()
    again = Sandbox.claim(home, source)
    assert again.path.parent.name == "copy-0"
    assert again.refresh() == frozenset()


def test_stale_and_surplus_copies_are_swept_and_those_in_use_are_not(source: Path, tmp_path: Path) -> None:
    home = tmp_path / "cache"
    used, old, large = (Sandbox.claim(home, source) for _ in range(3))
    for shadow in (used, old, large):
        shadow.refresh()
    (old.path / "src" / "pkg").chmod(0)
    old.close()
    large.close()
    os.utime(home / "copy-0.lock", (0, 0))
    os.utime(home / "copy-1.lock", (0, 0))
    Sandbox.claim(home, source, "other").close()
    assert used.path.exists()
    assert not old.path.exists()
    assert large.path.exists()
    Sandbox.claim(home, source, "other", size=1).close()
    assert not large.path.exists()
    assert used.path.exists()


def test_ten_thousand_files_are_copied_and_refreshed(tmp_path: Path) -> None:
    source = tmp_path / "many"
    for directory in range(100):
        (source / f"d{directory}").mkdir(parents=True)
        for file in range(100):
            (source / f"d{directory}" / f"f{file}.py").write_text(f"{file}\n")
    shadow = Sandbox(source, tmp_path / "cache" / "many")
    assert len(shadow.refresh()) == 10_000
    (source / "d7" / "f7.py").write_text("changed\n")
    assert Sandbox(source, shadow.path).refresh() == {"d7/f7.py"}


def test_whether_a_copy_is_current_is_told_without_writing(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.py").write_text("a = 1\n")
    shadow = Sandbox(source, tmp_path / "copy" / "source")
    assert not shadow.is_current()
    shadow.refresh()
    assert shadow.is_current()
    (shadow.path / "a.py").write_text("written by a test\n")
    assert shadow.is_current()  # it asks about the source alone
    (source / "b.py").write_text("b = 1\n")
    assert not shadow.is_current()
    assert not (shadow.path / "b.py").exists()
    shadow.refresh()
    assert shadow.is_current()


async def test_each_run_has_a_copy_of_its_own_and_the_next_run_gets_it_again(source: Path, tmp_path: Path) -> None:
    copies = SandboxPool(tmp_path / "cache", source)
    async with contextlib.aclosing(copies):
        async with copies.lease() as one, copies.lease() as other:
            assert one.path != other.path
        async with copies.lease() as again:
            assert again in (one, other)
        with pytest.raises(LookupError):
            async with copies.lease() as failed:
                raise LookupError
        async with copies.lease() as again:
            assert again is failed
    elsewhere = SandboxPool(tmp_path / "cache", source)
    async with contextlib.aclosing(elsewhere), elsewhere.lease() as free:
        assert free.path in (one.path, other.path)


async def test_a_cancel_while_a_copy_is_claimed_loses_it_not(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()
    claim = Sandbox.claim

    def slowly(*arguments: Any) -> Sandbox:
        begun.set()
        may_end.wait(60)
        return claim(*arguments)

    monkeypatch.setattr(Sandbox, "claim", slowly)
    copies = SandboxPool(tmp_path / "cache", source)

    async def take() -> Path:
        async with copies.lease() as copy:
            return copy.path

    async with contextlib.aclosing(copies):
        taking = asyncio.create_task(take())
        await asyncio.to_thread(begun.wait, 60)
        taking.cancel()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await taking
        assert (await take()).parent.name == "copy-0"

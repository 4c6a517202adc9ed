"""Sandbox: the copy equals the source after each refresh, and nothing done to it reaches the source."""

import multiprocessing.synchronize
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from msp_bridge.errors import ConfigurationError, ToolError
from msp_bridge.toolkit import Sandbox, sync


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
def sandbox(source: Path, tmp_path: Path) -> Sandbox:
    return Sandbox(source, tmp_path / "cache" / "project")


def contents(root: Path) -> dict[str, bytes | str]:
    """Relative path to bytes, a link's target, or `/` for a directory."""
    found: dict[str, bytes | str] = {}
    for path in root.rglob("*"):
        name = path.relative_to(root).as_posix()
        found[name] = f"-> {path.readlink()}" if path.is_symlink() else "/" if path.is_dir() else path.read_bytes()
    return found


def test_the_first_refresh_copies_everything_and_says_so(source: Path, sandbox: Sandbox) -> None:
    assert sandbox.refresh() == {"src/pkg/__init__.py", "src/pkg/a.py", "tests/test_a.py", "run.sh"}
    assert contents(sandbox.path) == contents(source)
    assert stat.S_IMODE((sandbox.path / "run.sh").stat().st_mode) == 0o755
    assert (sandbox.path / "run.sh").stat().st_mtime_ns == (source / "run.sh").stat().st_mtime_ns


def test_a_link_in_the_place_of_the_copy_is_not_followed(source: Path, sandbox: Sandbox, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "mine.py").write_text("mine")
    sandbox.path.parent.mkdir()
    sandbox.path.symlink_to(precious)
    sandbox.refresh()
    assert contents(precious) == {"mine.py": b"mine"}
    assert contents(sandbox.path) == contents(source)


def test_a_refresh_without_changes_changes_nothing(source: Path, sandbox: Sandbox) -> None:
    sandbox.refresh()
    (source / "run.sh").touch()
    file = sandbox.path / "src/pkg/a.py"
    before = file.stat()
    assert sandbox.refresh() == frozenset()
    after = file.stat()
    # Not the time of access: reading the file may change that.
    assert (after.st_ino, after.st_ctime_ns) == (before.st_ino, before.st_ctime_ns)


def test_what_changed_appeared_or_vanished_in_the_source_is_brought_over(source: Path, sandbox: Sandbox) -> None:
    sandbox.refresh()
    (source / "src/pkg/a.py").write_text("x = 22\n")
    (source / "tests/test_a.py").unlink()
    (source / "new").mkdir()
    (source / "new/b.py").write_text("b\n")
    assert sandbox.refresh() == {"src/pkg/a.py", "tests/test_a.py", "new/b.py"}
    assert contents(sandbox.path) == contents(source)


def test_an_edit_of_the_same_size_and_time_is_seen(source: Path, sandbox: Sandbox) -> None:
    file = source / "src/pkg/a.py"
    for _ in range(30):
        before = file.stat()
        sandbox.refresh()
        file.write_text("x = 2\n" if file.read_text() == "x = 1\n" else "x = 1\n")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert sandbox.refresh() == {"src/pkg/a.py"}
        assert contents(sandbox.path) == contents(source)


def test_a_change_of_the_right_to_execute_is_brought_over(source: Path, sandbox: Sandbox) -> None:
    sandbox.refresh()
    (source / "run.sh").chmod(0o644)
    assert sandbox.refresh() == {"run.sh"}
    assert not os.access(sandbox.path / "run.sh", os.X_OK)


def test_what_tools_and_tests_did_to_the_copy_is_undone(source: Path, sandbox: Sandbox) -> None:
    sandbox.refresh()
    file = sandbox.path / "src/pkg/a.py"
    before = file.stat()
    file.write_text("x = 9\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    (sandbox.path / "run.sh").unlink()
    (sandbox.path / "litter/deep").mkdir(parents=True)
    (sandbox.path / "litter/deep/file").write_text("")
    (sandbox.path / "litter/deep").chmod(0o500)
    (sandbox.path / "tests").chmod(0o500)
    os.mkfifo(sandbox.path / "pipe")
    assert sandbox.refresh() == frozenset()
    assert contents(sandbox.path) == contents(source)
    assert stat.S_IMODE((sandbox.path / "tests").stat().st_mode) & 0o700 == 0o700


def test_a_write_to_the_copy_is_undone_though_the_source_is_as_young(source: Path, sandbox: Sandbox) -> None:
    edited, copy = source / "src/pkg/a.py", sandbox.path / "src/pkg/a.py"
    for number in range(30):
        edited.write_text(f"x = {number:02}\n")
        sandbox.refresh()
        copy.write_text("y = 00\n")
        sandbox.refresh()
        assert copy.read_bytes() == edited.read_bytes()


def test_what_is_copied_or_put_back_has_a_new_time_where_that_is_said(source: Path, tmp_path: Path) -> None:
    for path in ("run.sh", "src/pkg/a.py"):
        os.utime(source / path, (1, 1))
    copy = Sandbox(source, tmp_path / "cache" / "project", compiled=".py")
    copy.refresh()
    first = {path: (copy.path / path).stat().st_mtime_ns for path in ("run.sh", "src/pkg/a.py")}
    assert min(first.values()) > 1_000_000_000
    (copy.path / "run.sh").write_text("a mutant")
    written = (copy.path / "run.sh").stat().st_mtime_ns
    assert copy.refresh() == frozenset()
    assert (copy.path / "run.sh").read_text() == "#!/bin/sh\n"
    assert (copy.path / "run.sh").stat().st_mtime_ns >= written
    assert (copy.path / "src/pkg/a.py").stat().st_mtime_ns == first["src/pkg/a.py"]


@pytest.mark.parametrize("changes", [{"src/pkg/a.py": "x = 7"}, {"run.sh": "7"}, {"src/new.py": ""}, {"run.sh": None}])
def test_all_have_a_new_time_where_more_than_the_text_of_a_source_has_changed(
    source: Path, tmp_path: Path, changes: Mapping[str, str | None]
) -> None:
    copy = Sandbox(source, tmp_path / "cache" / "project", compiled=".py")
    copy.refresh()
    other = copy.path / "tests/test_a.py"
    before = other.stat().st_mtime_ns
    for path, text in changes.items():
        (source / path).unlink() if text is None else (source / path).write_text(text)
    copy.refresh()
    after = other.stat().st_mtime_ns
    assert (after > before) == (changes.keys() != {"src/pkg/a.py"})
    copy.refresh()
    assert other.stat().st_mtime_ns == after


def test_a_link_put_into_the_copy_never_leads_a_refresh_into_the_source(source: Path, sandbox: Sandbox) -> None:
    sandbox.refresh()
    before = contents(source)
    (sandbox.path / "src/pkg/a.py").unlink()
    (sandbox.path / "src/pkg/a.py").symlink_to(source / "src/pkg/a.py")
    for name in ("test_a.py",):
        (sandbox.path / "tests" / name).unlink()
    (sandbox.path / "tests").rmdir()
    (sandbox.path / "tests").symlink_to(source / "tests")
    sandbox.refresh()
    assert contents(source) == before == contents(sandbox.path)


def test_bytecode_of_a_replaced_file_is_forgotten(source: Path, sandbox: Sandbox) -> None:
    file = source / "src/pkg/a.py"
    os.utime(file, (1_000_000_000, 1_000_000_000))
    sandbox.refresh()
    command = [sys.executable, "-c", "import pkg.a; print(pkg.a.x)"]
    run = {"cwd": sandbox.path / "src", "env": {"PATH": os.defpath}, "text": True}
    assert subprocess.check_output(command, **run) == "1\n"  # type: ignore[call-overload]
    assert list((sandbox.path / "src/pkg/__pycache__").glob("a.*.pyc"))
    file.write_text("x = 2\n")
    os.utime(file, (1_000_000_000, 1_000_000_000))
    sandbox.refresh()
    assert subprocess.check_output(command, **run) == "2\n"  # type: ignore[call-overload]


def test_overlaid_paths_are_left_alone_and_still_reported(source: Path, sandbox: Sandbox) -> None:
    sandbox.overlaid.update({"src/pkg/a.py", "made/by/"})
    assert "src/pkg/a.py" in sandbox.refresh()
    (sandbox.path / "src/pkg/a.py").write_text("mutated\n")
    (sandbox.path / "made/by").mkdir(parents=True)
    (sandbox.path / "made/by/owner.py").write_text("")
    (sandbox.path / "made/litter").write_text("")
    assert sandbox.refresh() == frozenset()
    (source / "src/pkg/a.py").write_text("x = 22\n")
    assert sandbox.refresh() == {"src/pkg/a.py"}
    assert (sandbox.path / "src/pkg/a.py").read_text() == "mutated\n"
    assert (sandbox.path / "made/by/owner.py").exists()
    assert not (sandbox.path / "made/litter").exists()
    sandbox.overlaid.clear()
    assert sandbox.refresh() == frozenset()
    assert contents(sandbox.path) == contents(source)


def test_version_control_environments_caches_and_sockets_stay_out(
    source: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
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
        sandbox.refresh()
    copied = contents(sandbox.path)
    assert copied == expected | {"deep": "/"}


def test_what_a_tool_makes_at_the_root_stays_out_where_that_is_said(source: Path, tmp_path: Path) -> None:
    expected = contents(source)
    for name in ("mutants", "src/mutants"):
        (source / name).mkdir()
        (source / name / "mine.py").write_text("")
    usual, without = (tmp_path / "cache" / name / "project" for name in ("usual", "without"))
    Sandbox(source, usual).refresh()
    assert contents(usual) == contents(source)
    sandbox = Sandbox(source, without, left_out=frozenset({"mutants"}))
    assert "mutants/mine.py" not in sandbox.refresh()
    (without / "mutants").mkdir()
    (without / "mutants" / "made by the tool").touch()
    (source / "mutants" / "mine.py").write_text("changed")
    assert sandbox.is_current()
    assert sandbox.refresh() == frozenset()
    nested = {"src/mutants": "/", "src/mutants/mine.py": b""}
    assert contents(without) == expected | nested | {"mutants": "/", "mutants/made by the tool": b""}


def test_links_within_the_tree_lead_to_the_copy(source: Path, sandbox: Sandbox) -> None:
    (source / "plain").symlink_to("src/pkg")
    (source / "src/absolute").symlink_to(source / "tests" / "test_a.py")
    (source / "tests/around").symlink_to(Path("..", "..", source.name, "run.sh"))
    (source / "loop").symlink_to("loop")
    (source / "dangling").symlink_to("nowhere")
    sandbox.refresh()
    assert (sandbox.path / "plain").readlink() == Path("src/pkg")
    assert (sandbox.path / "dangling").readlink() == Path("nowhere")
    for name in ("plain", "src/absolute", "tests/around"):
        assert (sandbox.path / name).resolve().is_relative_to(sandbox.path)
    (sandbox.path / "src/absolute").write_text("written in the copy")
    assert (source / "tests/test_a.py").read_text() == "import pkg.a\n"
    assert sandbox.refresh() == frozenset()


def test_links_that_lead_out_of_the_tree_become_copies(source: Path, sandbox: Sandbox, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "data").mkdir(parents=True)
    (outside / "data" / "one.txt").write_text("one")
    (outside / "data" / "up").symlink_to("..")
    (outside / "data" / "back").symlink_to(source)
    (source / "data").symlink_to(outside / "data")
    (source / "one.txt").symlink_to(Path("..", "outside", "data", "one.txt"))
    (source / "parent").symlink_to("..")
    (source / "nowhere").symlink_to(tmp_path / "nowhere")
    sandbox.refresh()
    assert not (sandbox.path / "one.txt").is_symlink()
    assert not (sandbox.path / "data").is_symlink()
    for name in ("one.txt", "data/one.txt"):
        (sandbox.path / name).write_text("written in the copy")
    assert (outside / "data/one.txt").read_text() == "one"
    assert not os.path.lexists(sandbox.path / "parent")
    assert not os.path.lexists(sandbox.path / "nowhere")
    assert not os.path.lexists(sandbox.path / "data/up")
    assert (sandbox.path / "data/back").resolve() == sandbox.path
    (outside / "data/one.txt").write_text("changed")
    assert sandbox.refresh() == {"one.txt", "data/one.txt"}
    assert (sandbox.path / "data/one.txt").read_text() == "changed"


def test_a_directory_that_becomes_a_file_or_a_link_is_replaced(source: Path, sandbox: Sandbox) -> None:
    sandbox.refresh()
    (source / "tests/test_a.py").unlink()
    (source / "tests").rmdir()
    (source / "tests").write_text("a file now")
    (source / "run.sh").unlink()
    (source / "run.sh").symlink_to("tests")
    assert sandbox.refresh() == {"tests", "tests/test_a.py", "run.sh"}
    assert contents(sandbox.path) == contents(source)


def test_read_only_files_can_be_written_in_the_copy(source: Path, sandbox: Sandbox) -> None:
    (source / "src/pkg/a.py").chmod(0o444)
    (source / "src/pkg").chmod(0o555)
    try:
        sandbox.refresh()
    finally:
        (source / "src/pkg").chmod(0o755)
    assert stat.S_IMODE((sandbox.path / "src/pkg/a.py").stat().st_mode) == 0o644
    assert stat.S_IMODE((sandbox.path / "src/pkg").stat().st_mode) == 0o755


def test_unreadable_files_are_left_out_with_a_warning(
    source: Path, sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    (source / "src/pkg/a.py").chmod(0)
    if os.access(source / "src/pkg/a.py", os.R_OK):
        pytest.skip("nothing is unreadable to this user")
    (source / "tests").chmod(0)
    try:
        assert sandbox.refresh() == {"src/pkg/__init__.py", "run.sh"}
        assert sandbox.refresh() == frozenset()
    finally:
        (source / "tests").chmod(0o755)
    assert "src/pkg/a.py is left out" in caplog.text
    (source / "src/pkg/a.py").chmod(0o644)
    assert sandbox.refresh() == {"src/pkg/a.py", "tests/test_a.py"}


def test_names_that_are_no_text_are_copied(source: Path, sandbox: Sandbox) -> None:
    name = os.fsdecode(b"caf\xe9 [1] *.py")
    (source / name).write_text("1")
    assert name in sandbox.refresh()
    again = Sandbox(source, sandbox.path)
    assert again.refresh() == frozenset()
    assert (sandbox.path / name).read_text() == "1"


def test_a_file_that_vanishes_while_it_is_copied_is_left_out(
    source: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = sync.clone

    def deleting(file: str, target: str) -> str:
        if file.endswith("a.py"):
            Path(file).unlink()
        return clone(file, target)

    monkeypatch.setattr("msp_bridge.toolkit.sync.clone", deleting)
    sandbox.refresh()
    assert contents(sandbox.path) == contents(source)
    assert "src/pkg/a.py" not in contents(sandbox.path)


def test_another_process_goes_on_where_the_last_one_stopped(source: Path, sandbox: Sandbox) -> None:
    sandbox.refresh()
    inode = (sandbox.path / "run.sh").stat().st_ino
    (source / "src/pkg/a.py").write_text("x = 3\n")
    again = Sandbox(source, sandbox.path)
    assert again.refresh() == {"src/pkg/a.py"}
    assert (sandbox.path / "run.sh").stat().st_ino == inode


def test_a_copy_of_another_project_or_with_a_broken_manifest_is_made_anew(
    source: Path, sandbox: Sandbox, tmp_path: Path
) -> None:
    sandbox.refresh()
    (sandbox.path.parent / "manifest.json").write_text('{"version": 1')
    assert len(Sandbox(source, sandbox.path).refresh()) == 4
    other = tmp_path / "other"
    other.mkdir()
    (other / "only.py").write_text("")
    assert Sandbox(other, sandbox.path).refresh() == {"only.py"}
    assert contents(sandbox.path) == contents(other)


def test_the_digest_names_the_content(source: Path, sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.refresh()
    first = sandbox.digest
    second = Sandbox(source, tmp_path / "second" / "project")
    second.refresh()
    assert second.digest == first != ""
    (source / "run.sh").write_text("#!/bin/bash\n")
    sandbox.refresh()
    assert sandbox.digest != first


def test_a_cache_within_the_project_is_refused(source: Path) -> None:
    with pytest.raises(ConfigurationError, match="lies in the project"):
        Sandbox(source, source / ".cache" / "project").refresh()
    assert not (source / ".cache").exists()


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
    sandbox = Sandbox.claim(home, source)
    sandbox.refresh()
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
    for sandbox in (used, old, large):
        sandbox.refresh()
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


def test_whether_a_copy_is_current_is_found_without_writing(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.py").write_text("a = 1\n")
    sandbox = Sandbox(source, tmp_path / "copy" / "source")
    assert not sandbox.is_current()
    sandbox.refresh()
    assert sandbox.is_current()
    (sandbox.path / "a.py").write_text("written by a test\n")
    assert sandbox.is_current()  # it asks about the source alone
    (source / "b.py").write_text("b = 1\n")
    assert not sandbox.is_current()
    assert not (sandbox.path / "b.py").exists()
    sandbox.refresh()
    assert sandbox.is_current()


def test_what_has_changed_is_found_by_its_bytes_without_writing(source: Path, sandbox: Sandbox) -> None:
    sandbox.refresh()
    before = contents(sandbox.path)
    assert sandbox.changed() == frozenset()
    (source / "src/pkg/a.py").write_text("x = 2\n")
    (source / "run.sh").write_bytes((source / "run.sh").read_bytes())
    (source / "tests/test_a.py").unlink()
    (source / "new.log").touch()
    assert sandbox.changed() == {"src/pkg/a.py", "tests/test_a.py", "new.log"}
    assert sandbox.changed({"new.log"}) == {"src/pkg/a.py", "tests/test_a.py"}
    assert contents(sandbox.path) == before


def test_one_file_is_looked_at_alone(source: Path, sandbox: Sandbox) -> None:
    sandbox.refresh()
    file = source / "src/pkg/a.py"
    assert not sandbox.is_touched("src/pkg/a.py")
    os.utime(file, ns=(1, 1))
    assert sandbox.is_touched("src/pkg/a.py")
    assert sandbox.changed() == frozenset()
    assert not sandbox.is_touched("src/pkg/a.py")  # its bytes were compared
    file.unlink()
    assert sandbox.is_touched("src/pkg/a.py")
    sandbox.refresh()
    assert not sandbox.is_touched("src/pkg/a.py")


def test_a_stopped_refresh_ends_early_and_the_next_one_is_complete(
    source: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, copied, clone = threading.Event(), [], sync.clone

    def stopping(file: str, target: str) -> str:
        copied.append(file)
        stop.set()
        return clone(file, target)

    monkeypatch.setattr("msp_bridge.toolkit.sync.clone", stopping)
    with pytest.raises(sync.Stopped):
        sandbox.refresh(stop)
    assert len(copied) == 1
    assert not sandbox.is_current()
    assert len(sandbox.refresh()) == 4
    assert contents(sandbox.path) == contents(source)


def test_many_files_are_copied_by_threads_and_an_error_ends_them_all(
    source: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(500):
        (source / "tests" / f"f{number}.txt").write_text(str(number))
    monkeypatch.setattr("msp_bridge.toolkit.sync.THREADS", 4)
    clone, copied = sync.clone, list[str]()

    def full(file: str, target: str) -> str:
        copied.append(target)
        if len(copied) > 20:
            raise OSError(28, "No space left on device", target)
        return clone(file, target)

    monkeypatch.setattr("msp_bridge.toolkit.sync.clone", full)
    with pytest.raises(ToolError, match="free some space"):
        sandbox.refresh()
    assert len(copied) < 30
    monkeypatch.setattr("msp_bridge.toolkit.sync.clone", clone)
    assert len(sandbox.refresh()) == 504
    assert contents(sandbox.path) == contents(source)
    assert sandbox.refresh() == frozenset()


def test_a_file_that_is_something_else_by_now_is_left_out(
    source: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clone = sync.clone

    def turning(file: str, target: str) -> str:
        if file.endswith("a.py"):
            Path(file).unlink()
            os.mkfifo(file) if file.endswith("test_a.py") else Path(file).mkdir()
        return clone(file, target)

    monkeypatch.setattr("msp_bridge.toolkit.sync.clone", turning)
    assert sandbox.refresh() == {"src/pkg/__init__.py", "run.sh"}
    assert "a.py is left out" in caplog.text

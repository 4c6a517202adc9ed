"""What a mutant did to a directory is undone, without namespaces."""

import mmap
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from msp_bridge.python_engine.programs.journal import Journal


def tree(directory: Path) -> dict[str, object]:
    return {
        str(path.relative_to(directory)): (
            path.lstat().st_mode,
            path.is_dir() or path.lstat().st_mtime_ns,
            os.readlink(path) if path.is_symlink() else path.is_file() and path.read_bytes(),
        )
        for path in directory.rglob("*")
    }


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    pristine = tmp_path / "pristine"
    (pristine / "package" / "deep").mkdir(parents=True)
    for name in ("a", "b", "package/c", "package/deep/d"):
        (pristine / name).write_text(name)
    (pristine / "link").symlink_to("a")
    (pristine / "empty").mkdir()
    os.chmod(pristine / "b", 0o751)
    shutil.copytree(pristine, tmp_path / "copy", symlinks=True)
    return tmp_path / "copy"


def in_place(path: Path) -> None:
    """Same size, same inode, modification time put back."""
    before = path.stat()
    with path.open("r+") as stream:
        stream.write("z")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def mapped(path: Path) -> None:
    with path.open("r+b") as stream, mmap.mmap(stream.fileno(), 0) as memory:
        memory[0:1] = b"z"


def into_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "x").write_text("x")


def into_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("x")


def unreadable(path: Path) -> None:
    (path / "new").write_text("x")
    path.chmod(0)


CHANGES: dict[str, Callable[[Path], object]] = {
    "a file is written": lambda copy: (copy / "a").write_text("longer than before"),
    "a file is written in place, its time put back": lambda copy: in_place(copy / "a"),
    "a file is written through a memory map": lambda copy: mapped(copy / "a"),
    "a file is replaced": lambda copy: (copy / "package/c").replace(copy / "b"),
    "a file is deleted": lambda copy: (copy / "a").unlink(),
    "a file is made": lambda copy: (copy / "empty" / "new").write_text("x"),
    "permissions change": lambda copy: (copy / "b").chmod(0),
    "a directory is deleted": lambda copy: shutil.rmtree(copy / "package"),
    "an empty directory is deleted": lambda copy: (copy / "empty").rmdir(),
    "a directory is renamed": lambda copy: (copy / "package").rename(copy / "renamed"),
    "a directory is made": lambda copy: (copy / "x/y/z").mkdir(parents=True),
    "a directory is made unreadable": lambda copy: unreadable(copy / "package"),
    "a link points elsewhere": lambda copy: ((copy / "link").unlink(), (copy / "link").symlink_to("b")),
    "a link to a directory is made": lambda copy: (copy / "new").symlink_to("package"),
    "a file becomes a directory": lambda copy: into_directory(copy / "a"),
    "a directory becomes a file": lambda copy: into_file(copy / "package"),
}


def journal_of(copy: Path) -> Journal:
    return Journal(str(copy), str(copy.parent / "pristine"), str(copy.parent / "kept"))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_undone_each_time(copy: Path, change: Callable[[Path], object]) -> None:
    before, journal = tree(copy), journal_of(copy)
    for _ in range(3):
        change(copy)
        assert journal.undo()
        assert tree(copy) == before
        assert journal.undo() == []


def test_the_changed_paths_are_named(copy: Path) -> None:
    journal = journal_of(copy)
    (copy / "a").write_text("x")
    (copy / "package" / "new").write_text("x")
    (copy / "package" / "deep" / "d").unlink()
    assert journal.undo() == ["a", "package/deep/d", "package/new"]


@pytest.mark.parametrize("seed", range(5))
def test_any_mixture_of_changes_is_undone(copy: Path, seed: int) -> None:
    order, before = random.Random(seed), tree(copy)
    journal = journal_of(copy)
    for _ in range(5):
        for change in order.sample(list(CHANGES.values()), 6):
            try:
                change(copy)
            except OSError:
                continue  # an earlier change has taken away what this one needs
        journal.undo()
        assert tree(copy) == before, f"seed {seed}"


def test_what_there_was_before_it_stays(copy: Path) -> None:
    """Importing the project has made or changed it: the pristine copy has none of it."""
    (copy / "made").mkdir()
    (copy / "made" / "app.db").write_text("empty")
    (copy / "made" / "link").symlink_to("app.db")
    (copy / "a").write_text("changed at import")
    before, journal = tree(copy), journal_of(copy)
    shutil.rmtree(copy / "made")
    (copy / "a").write_text("changed by a test")
    journal.undo()
    assert tree(copy) == before


def test_what_can_not_be_copied_stays_and_what_a_test_adds_of_it_goes(copy: Path) -> None:
    """As the socket of a server that importing the project has started."""
    os.mkfifo(copy / "package" / "listener")
    journal = journal_of(copy)
    os.mkfifo(copy / "package" / "of_a_test")
    assert journal.undo() == ["package/of_a_test"]
    assert (copy / "package" / "listener").is_fifo()

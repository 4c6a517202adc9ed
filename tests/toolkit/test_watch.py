"""Looks at a watched tree: after whatever was done to it, a look finds what a walk finds."""

import contextlib
import logging
import mmap
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.files import written

from msp_bridge.toolkit import Sandbox, watch
from msp_bridge.toolkit.tree import SourceTree
from msp_bridge.toolkit.watch import TreeLooks

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="trees are watched on Linux only")

Change = Callable[[Path], object]


@pytest.fixture(autouse=True)
def small_trees_are_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msp_bridge.toolkit.watch.LARGE", 3)
    (tmp_path / "table").write_bytes(Path(watch.MOUNTS).read_bytes())  # other tests mount file systems meanwhile
    monkeypatch.setattr("msp_bridge.toolkit.watch.MOUNTS", str(tmp_path / "table"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = Path(os.path.realpath(tmp_path), "1/2/3/4/5/6/project")  # a random `../..` below it stays in `tmp_path`
    names = ("a.py", "data/b.json", "data/deep/c.json", "data/deep/d.json", "other/e.txt")
    written(place, {name: name for name in names})
    (place / "inner").symlink_to("data/b.json")
    (place / "outer").symlink_to("../outside.txt")
    (place / "chain").symlink_to("../current/f.txt")
    (place.parent / "outside.txt").write_text("outside")
    for name in ("one", "two"):
        (place.parent / name).mkdir()
        (place.parent / name / "f.txt").write_text(name)
    (place.parent / "current").symlink_to("one")
    os.link(place.parent / "outside.txt", place / "hard.txt")
    return place


@pytest.fixture
def looks(root: Path) -> Iterator[TreeLooks]:
    looks = TreeLooks(str(root), lambda *_: None)
    yield looks
    looks.close()


def walked(root: Path) -> object:
    return SourceTree(str(root), lambda *_: None).entries()


def edited(path: str) -> Change:
    return lambda root: (root / path).write_text("edited")


def edited_with_the_time_set_back(root: Path) -> None:
    before = (root / "a.py").stat()
    (root / "a.py").write_text("A.py")
    os.utime(root / "a.py", ns=(before.st_atime_ns, before.st_mtime_ns))


def saved_as_editors_do(root: Path) -> None:
    (root / "a.py~").write_text("new")
    (root / "a.py~").replace(root / "a.py")


def replaced_by_a_directory_of_the_same_name(root: Path) -> None:
    shutil.copytree(root / "data", root.parent / "fresh")
    (root.parent / "fresh" / "deep" / "c.json").write_text("fresh")
    (root / "data").rename(root.parent / "gone")
    (root.parent / "fresh").rename(root / "data")


def written_through_a_memory_map(root: Path) -> None:
    with open(root / "data/b.json", "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0:1] = b"X"


def relinked(path: str, target: str) -> Change:
    def change(root: Path) -> None:
        (root / path).unlink()
        (root / path).symlink_to(target)

    return change


def made(path: str) -> Change:
    return lambda root: written(root, {path: "made"})


def moved_with_its_parent(root: Path) -> None:
    root.rename(root.parent / "elsewhere")
    shutil.copytree(root.parent / "elsewhere", root, symlinks=True)
    (root / "a.py").write_text("another tree")


CHANGES: dict[str, Change] = {
    "an edit": edited("data/deep/c.json"),
    "an edit at the root": edited("a.py"),
    "an edit with the time set back": edited_with_the_time_set_back,
    "a file saved as editors do": saved_as_editors_do,
    "a write through a memory map": written_through_a_memory_map,
    "a truncated file": lambda root: os.truncate(root / "data/b.json", 1),
    "a new file": made("data/deep/new.json"),
    "a new directory with a file": made("data/new/deeper/f.json"),
    "a deleted file": lambda root: (root / "data/b.json").unlink(),
    "a deleted directory": lambda root: shutil.rmtree(root / "data"),
    "a renamed file": lambda root: (root / "a.py").rename(root / "other/a.py"),
    "a renamed directory": lambda root: (root / "data/deep").rename(root / "deep"),
    "another mode of a file": lambda root: (root / "a.py").chmod(0o755),
    "another mode of a directory": lambda root: (root / "data").chmod(0o700),
    "a replaced directory": replaced_by_a_directory_of_the_same_name,
    "a file in the place of a directory": lambda root: (shutil.rmtree(root / "data"), (root / "data").write_text("x")),
    "another target of a link": relinked("inner", "data/deep/c.json"),
    "a link that leads out now": relinked("inner", "../one/f.txt"),
    "a link that leads to a directory out of the tree now": relinked("inner", "../one"),
    "a link in the place of a file": relinked("a.py", "data/b.json"),
    "a link to nowhere": relinked("inner", "../nowhere"),
    "a link to nowhere that leads somewhere now": lambda root: (
        relinked("inner", "../nowhere")(root),
        (root.parent / "nowhere").write_text("now"),
    ),
    "an edit of what a link leads to": lambda root: (root.parent / "outside.txt").write_text("other"),
    "another target of a link on the way": lambda root: (
        (root.parent / "current").unlink(),
        (root.parent / "current").symlink_to("two"),
    ),
    "an edit under another name of the file": lambda root: (root.parent / "outside.txt").write_text(
        "through the other"
    ),
    "an edit under a name that was given since": lambda root: (
        os.link(root / "a.py", root / "data/z.py"),
        os.utime(root / "a.py"),
        (root / "data/z.py").write_text("z"),
    ),
    "a directory that is a cache now": made("data/CACHEDIR.TAG"),
    "a cache": made("target/CACHEDIR.TAG"),
    "what does not belong to the tree": made("data/__pycache__/b.pyc"),
    "another directory in the place of the root": moved_with_its_parent,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_whatever_changes_is_found_by_the_next_look(root: Path, looks: TreeLooks, change: Change) -> None:
    assert looks.entries() == walked(root)
    assert looks._watched is not None
    unchanged = looks.entries()
    assert looks.entries() is unchanged
    change(root)
    for _ in range(3):
        assert looks.entries() == walked(root)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            edited("data/deep/d.json")(root)


def test_after_any_mixture_of_changes_a_look_finds_what_a_walk_finds(root: Path, looks: TreeLooks) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    names = ["a.py", "b.json", "new.txt", "sub", "deep", "data", "CACHEDIR.TAG", "__pycache__"]

    def anywhere() -> Path:
        return root.joinpath(*chance.choices(names, k=chance.randint(1, 3)))

    def remove(path: Path) -> None:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    operations: list[Callable[[Path], object]] = [
        lambda path: path.write_text(str(chance.random())),
        lambda path: path.write_text(str(chance.random())),
        lambda path: path.mkdir(),
        remove,
        lambda path: path.rename(anywhere()),
        lambda path: path.symlink_to(chance.choice(["b.json", "../outside.txt", "nowhere", *leading_out])),
        lambda path: path.chmod(chance.choice([0o644, 0o755, 0o700])),
        lambda path: (os.link(path, root / "sub"), os.utime(path)),
    ]
    watched, leading_out = 0, list[str]()
    for turn in range(300):
        if turn == 100:  # from then on nothing may be watched any more
            leading_out = ["../one", "../.."]
        for _ in range(chance.randint(1, 4)):
            with contextlib.suppress(OSError, ValueError):
                chance.choice(operations)(anywhere())
        assert looks.entries() == walked(root)
        watched += looks._watched is not None
    assert watched


def test_a_cache_that_a_tool_fills_needs_no_walk(root: Path, looks: TreeLooks, monkeypatch: pytest.MonkeyPatch) -> None:
    made("target/CACHEDIR.TAG")(root)
    looks.entries()
    made("target/debug/built")(root)
    monkeypatch.setattr(SourceTree, "entries", None)
    assert looks._watched is not None
    assert "target" not in looks.entries()


def test_more_events_than_the_queue_holds_are_a_reason_to_walk(root: Path, looks: TreeLooks) -> None:
    looks.entries()
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(limit + 2):
        os.utime(root / ("a.py" if number % 2 else "data/b.json"))
    edited("other/e.txt")(root)
    assert looks.entries() == walked(root)


def test_a_small_tree_is_not_watched(root: Path, looks: TreeLooks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msp_bridge.toolkit.watch.LARGE", 1_000)
    assert looks.entries() == walked(root)
    assert looks._watched is None


def out_of_watches(root: Path, patch: pytest.MonkeyPatch) -> None:
    (root.parent / "limit").write_text("16\n")
    patch.setattr("msp_bridge.toolkit.watch.LIMIT", root.parent / "limit")


def refused_by_the_kernel(root: Path, patch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    patch.setattr("msp_bridge.toolkit.watch.Watch.add", refuse)


def on_the_network(root: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("msp_bridge.toolkit.watch.LOCAL", frozenset({"another"}))


def with_a_mount_below(root: Path, patch: pytest.MonkeyPatch) -> None:
    table = Path(watch.MOUNTS).read_bytes()
    (root.parent / "mounts").write_bytes(table + f"1 2 3:4 / {root}/data rw - nfs server:/ rw\n".encode())
    patch.setattr("msp_bridge.toolkit.watch.MOUNTS", str(root.parent / "mounts"))


def with_a_linked_directory(root: Path, patch: pytest.MonkeyPatch) -> None:
    (root / "linked").symlink_to("../one")


@pytest.mark.parametrize(
    "why", [out_of_watches, refused_by_the_kernel, on_the_network, with_a_mount_below, with_a_linked_directory]
)
def test_what_can_not_be_watched_is_walked_each_time_and_the_log_says_why(
    root: Path,
    looks: TreeLooks,
    why: Callable[[Path, pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    why(root, monkeypatch)
    caplog.set_level(logging.INFO)
    for _ in range(3):
        assert looks.entries() == walked(root)
        assert looks._watched is None
        edited("data/b.json")(root)
    assert len(caplog.records) == 1
    assert "each look" in caplog.text


def test_a_mount_is_a_reason_to_walk(root: Path, looks: TreeLooks, monkeypatch: pytest.MonkeyPatch) -> None:
    before = looks.entries()
    (root.parent / "mounts").write_bytes(Path(watch.MOUNTS).read_bytes() + b"1 2 3:4 / /mnt\\040x rw - tmpfs none rw\n")
    monkeypatch.setattr("msp_bridge.toolkit.watch.MOUNTS", str(root.parent / "mounts"))
    after = looks.entries()
    assert after == before
    assert after is not before
    assert looks._watched is not None


def test_a_sandbox_of_a_watched_tree_finds_each_change(root: Path, tmp_path: Path) -> None:
    sandbox = Sandbox(root, tmp_path / "cache" / "project")
    sandbox.refresh()
    descriptors = len(os.listdir("/proc/self/fd"))
    for number in range(20):
        assert sandbox.is_current()
        assert sandbox.changed() == frozenset()
        before = (root / "data/b.json").stat()
        (root / "data/b.json").write_text(f"number {number:02}")
        os.utime(root / "data/b.json", ns=(before.st_atime_ns, before.st_mtime_ns))
        assert not sandbox.is_current()
        assert sandbox.changed() == {"data/b.json"}
        assert sandbox.refresh() == {"data/b.json"}
        assert (sandbox.path / "data/b.json").read_text() == f"number {number:02}"
    sandbox.close()
    assert len(os.listdir("/proc/self/fd")) == descriptors - 1

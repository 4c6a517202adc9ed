"""The tree of a snapshot at a worker is the project's, whatever was there before, and only what it lacks is sent."""

import os
import time
import zlib
from hashlib import blake2b
from pathlib import Path

import pytest
from support.clusters import PLUS, ScriptedTree
from support.files import written

from msp_bridge.cluster.connection import sends_openly
from msp_bridge.cluster.snapshot import DAYS, ContentStore, Snapshot, SnapshotTree
from msp_bridge.cluster.wire import SnapshotEntry, differences
from msp_bridge.errors import ToolError
from msp_bridge.testing import TreeState
from msp_bridge.toolkit import Sandbox
from msp_bridge.toolkit.slot import DAY
from msp_bridge.toolkit.tree import Kind
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.detection import detect_projects


def taken(project: Path, cache: Path) -> Snapshot:
    sandbox = Sandbox.claim(cache, project)
    sandbox.refresh()
    snapshot = Snapshot.of(sandbox)
    sandbox.close()
    return snapshot


def brought(snapshot: Snapshot, store: ContentStore) -> int:
    """Sends what the store lacks; how many files that were."""
    lacking = store.lacking(snapshot.entries.values())
    for piece in snapshot.pieces(lacking):
        store.keep(piece)
    return len(lacking)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = written(tmp_path / "shop", {"src/a.py": "a = 1\n", "src/deep/b.py": "b = 1\n", "run.sh": "#!/bin/sh\n"})
    os.chmod(root / "run.sh", 0o755)
    (root / "link").symlink_to("src/a.py")
    return root


@pytest.fixture
def store(tmp_path: Path) -> ContentStore:
    return ContentStore(tmp_path / "files")


@pytest.fixture
def there(store: ContentStore, tmp_path: Path) -> SnapshotTree:
    """At a worker."""
    return SnapshotTree(tmp_path / "slot" / "tree" / "shop", store)


@pytest.mark.parametrize(
    ("pattern", "left_out"),
    [
        ("b.py", {"src/deep/b.py"}),
        ("*.py", {"src/a.py", "src/deep/b.py"}),
        ("deep/", {"src/deep", "src/deep/b.py"}),
        ("src/*.py", {"src/a.py", "src/deep/b.py"}),
        ("src/deep", {"src/deep", "src/deep/b.py"}),
        ("/run.sh", {"run.sh"}),
        ("/a.py", set()),
    ],
)
def test_what_is_excluded_is_not_in_the_snapshot(
    pattern: str, left_out: set[str], project: Path, tmp_path: Path, store: ContentStore, there: SnapshotTree
) -> None:
    sandbox = Sandbox.claim(tmp_path / "cache", project)
    sandbox.refresh()
    whole, part = Snapshot.of(sandbox), Snapshot.of(sandbox, [pattern])
    sandbox.close()
    assert whole.entries.keys() - part.entries.keys() == left_out
    assert whole.id != part.id, "a worker has the one and not the other"
    brought(part, store)
    there.materialise(part.entries)
    assert not any(os.path.lexists(there.root / path) for path in left_out)


def test_the_configuration_says_what_is_excluded(tree: ScriptedTree) -> None:
    tree.script(PLUS)
    (tree.root / "msp-bridge.toml").write_text('cluster = {address = "tcp://a:1", exclude = [".env", "*.pem"]}\n')
    [tool] = detect_projects(tree.root, Configuration()).tools
    found = vars(type(tool.adapter))
    assert (found["address"], found["exclude"]) == ("tcp://a:1", (".env", "*.pem"))
    [tool] = detect_projects(tree.root, Configuration(cluster="tcp://b:1")).tools
    found = vars(type(tool.adapter))
    assert (found["address"], found["exclude"]) == ("tcp://b:1", (".env", "*.pem"))


@pytest.mark.parametrize(
    ("address", "openly"),
    [
        ("tcp://127.0.0.1:8786", False),
        ("tcp://localhost:8786", False),
        ("tcp://[::1]:8786", False),
        ("127.0.0.1:8786", False),
        ("tls://scheduler:8786", False),
        ("tcp://scheduler:8786", True),
        ("tcp://10.0.0.1:8786", True),
        ("10.0.0.1:8786", True),
        ("tcp://[2001:db8::1]:8786", True),
    ],
)
def test_files_go_openly_to_another_machine_without_tls(address: str, openly: bool) -> None:
    assert sends_openly(address) is openly


def contents(root: Path) -> dict[str, tuple[bool, str]]:
    """Whether it can be executed, and what is in it, by path."""
    return {path: (bool(mode & 0o100), content) for path, (mode, _, content) in TreeState.of(root).entries.items()}


def test_a_tree_follows_the_project_and_only_what_is_new_is_sent(
    project: Path, tmp_path: Path, store: ContentStore, there: SnapshotTree
) -> None:
    snapshot = taken(project, tmp_path / "cache")
    assert brought(snapshot, store) == 3
    there.materialise(snapshot.entries)
    assert contents(there.root) == contents(project)
    (project / "src" / "a.py").write_text("a = 2\n")
    (project / "src" / "deep" / "b.py").unlink()
    (project / "src" / "deep").rmdir()
    (project / "src" / "deep").write_text("now a file\n")
    (project / "run.sh").unlink()
    (project / "run.sh").mkdir()
    second = taken(project, tmp_path / "cache")
    assert second.id != snapshot.id
    assert brought(second, store) == 2
    there.materialise(second.entries)
    assert contents(there.root) == contents(project)
    state = TreeState.of(there.root)
    there.materialise(second.entries)
    assert state.differences(TreeState.of(there.root)) == []


def test_a_tree_that_was_left_half_written_is_made_anew(
    project: Path, tmp_path: Path, store: ContentStore, there: SnapshotTree
) -> None:
    snapshot = taken(project, tmp_path / "cache")
    brought(snapshot, store)
    there.materialise(snapshot.entries)
    (there.root / "src" / "a.py").write_text("half")
    (there.root.parent / "snapshot.json").unlink()
    there.materialise(snapshot.entries)
    assert contents(there.root) == contents(project)


def test_what_the_worker_has_of_its_own_is_linked_into_the_root(
    project: Path, tmp_path: Path, store: ContentStore
) -> None:
    own = written(tmp_path / "own", {"node_modules/x/index.js": "", "run.sh": "of the worker"})
    tree = SnapshotTree(tmp_path / "slot" / "tree" / "shop", store, own)
    snapshot = taken(project, tmp_path / "cache")
    brought(snapshot, store)
    tree.materialise(snapshot.entries)
    assert (tree.root / "node_modules" / "x").is_dir()
    assert (tree.root / "run.sh").read_text() == "#!/bin/sh\n"


@pytest.mark.parametrize("path", ["../outside", "/outside", "src/../../outside"])
def test_nothing_is_written_outside_of_the_tree(path: str, there: SnapshotTree) -> None:
    with pytest.raises(ToolError, match="outside of the project"):
        there.materialise({path: SnapshotEntry("d", "", 0o755)})


def test_a_file_that_arrives_damaged_is_refused(store: ContentStore) -> None:
    with pytest.raises(ToolError, match="damaged"):
        store.keep({"00" * 16: zlib.compress(b"something else")})


def test_a_file_that_was_damaged_on_the_workers_disk_is_not_used_and_is_sent_again(
    project: Path, tmp_path: Path, store: ContentStore, there: SnapshotTree
) -> None:
    snapshot = taken(project, tmp_path / "cache")
    brought(snapshot, store)
    (store.directory / snapshot.entries["src/a.py"].content).write_bytes(b"")
    with pytest.raises(ToolError, match="is damaged"):
        there.materialise(snapshot.entries)
    assert brought(snapshot, store) == 1
    there.materialise(snapshot.entries)
    assert contents(there.root) == contents(project)


def test_the_store_keeps_what_was_used_last_and_no_more_than_its_size(store: ContentStore) -> None:
    now = time.time()
    old = now - (DAYS + 1) * DAY
    contents = [bytes([number]) * 100 for number in range(5)]
    digests = [blake2b(content, digest_size=16).hexdigest() for content in contents]
    store.keep({digest: zlib.compress(content) for digest, content in zip(digests, contents, strict=True)})
    for hours, digest in enumerate(digests):
        os.utime(store.directory / digest, (now - hours * 3600 - 60, now - hours * 3600 - 60))
    os.utime(store.directory / digests[3], (old, old))
    (store.directory / "cut-short.new").write_bytes(b"x")
    os.utime(store.directory / "cut-short.new", (old, old))

    def left() -> list[int]:
        return [number for number, digest in enumerate(digests) if (store.directory / digest).exists()]

    store.sweep(size=400)
    assert left() == [0, 1, 2, 4], "what nobody asked for in two weeks is gone"
    assert not (store.directory / "cut-short.new").exists()
    assert store.lacking([SnapshotEntry(Kind.FILE.value, digests[4], 0o600)]) == []
    store.sweep(size=300)
    assert left() == [0, 1, 4], "the longest unused is gone"
    store.sweep(size=0)
    assert left() == [0, 4], "what was asked for within the hour stays"


def test_another_tool_or_package_is_a_difference_and_the_project_itself_is_none() -> None:
    here = {
        "python": "3.12",
        "packages": [["shop", "1", "editable", ""], ["pytest", "9", None, ""]],
        "files": {"x.pth": "1"},
    }
    assert differences(here, {"python": "3.12", "packages": [["pytest", "9", None, ""]], "files": {}}) == []
    there = {"python": "3.13", "packages": [["pytest", "8", None, ""], ["extra", "1", None, ""]], "files": {}}
    assert differences(here, there) == [
        "extra is 1 there, and missing here",
        "pytest is 8 there, and 9 here",
        "python is 3.13 there, and 3.12 here",
    ]

"""What of the real tree is mounted into the sandbox, and what text a mutant is put into."""

from pathlib import Path

import pytest

from msp_bridge.python_engine.programs.file_edit import FileEdit, digest_of
from msp_bridge.python_engine.programs.world import World, _left_out


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    """A copy of `root` without its environments, one of which is a link."""
    root, sandbox = tmp_path / "root", tmp_path / "sandbox"
    for name in (".venv", "node_modules", "src", "mutants", ".pytest_cache"):
        (root / name).mkdir(parents=True)
        (root / name / "file").touch()
    (root / "linked").symlink_to(root / ".venv")
    (root / "setup.cfg").touch()
    (sandbox / "src").mkdir(parents=True)
    (sandbox / "src/file").touch()
    return sandbox


def left_out(sandbox: Path) -> set[str]:
    return set(_left_out(str(sandbox.parent / "root"), str(sandbox)))


def test_directories_that_the_sandbox_lacks_are_mounted_and_caches_are_not(sandbox: Path) -> None:
    assert left_out(sandbox) == {".venv", "node_modules", "linked"}


def test_a_mount_point_of_an_earlier_run_is_no_copy(sandbox: Path) -> None:
    for name in (".venv", "node_modules", "linked"):
        (sandbox / name).mkdir()
    assert left_out(sandbox) == {".venv", "node_modules", "linked"}


def test_what_the_sandbox_has_is_its_own(sandbox: Path) -> None:
    (sandbox / "node_modules").mkdir()
    (sandbox / "node_modules/package").touch()
    (sandbox / "linked").symlink_to("src")
    assert left_out(sandbox) == {".venv"}


def test_a_mutant_is_one_of_the_text_that_was_read_ahead_or_of_the_same_version_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # the world has one of its own
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (file := tmp_path / "sandbox/m.py").parent.mkdir()
    world = World(str(tmp_path), str(file.parent), tmp_path / "layers", wanted=(), temporary=str(tmp_path))

    def edit(content: bytes) -> FileEdit:
        return FileEdit("m.py", digest_of(content), 4, 5, "2")

    def put(content: bytes) -> bytes:
        world.put(edit(content))
        return file.read_bytes()

    world.read_ahead(edit(b"a = 1\r\n"))  # there is none
    file.write_bytes(b"a = 1\r\n")
    world.read_ahead(edit(b"a = 1\r\n"))
    file.write_bytes(b"b = 1\n")
    assert put(b"b = 1\n") == b"b = 2\n"
    assert put(b"a = 1\r\n") == b"a = 2\r\n"
    with pytest.raises(OSError, match=r"m\.py is not the version"):
        put(b"b = 1\n")

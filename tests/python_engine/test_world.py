"""What of the real tree is mounted into the sandbox: the directories that the sandbox lacks, in every run."""

from pathlib import Path

import pytest

from msp_bridge.python_engine.programs.world import _left_out


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

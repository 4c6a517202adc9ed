"""The cache holds what is run: nobody else may put anything into it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from msp_bridge.errors import ConfigurationError
from msp_bridge.workspace.cache import make_private

ANOTHER = 54321  # a user's id
pytestmark = pytest.mark.skipif(os.name != "posix", reason="files have no such owners there")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")


def mode(directory: Path) -> int:
    return stat.S_IMODE(directory.stat().st_mode)


def test_what_is_made_is_for_this_user_alone(tmp_path: Path) -> None:
    cache = tmp_path / "home" / "project-1"
    make_private(cache, tmp_path)
    assert mode(cache) == 0o700


def test_what_others_may_write_into_is_closed_to_them(tmp_path: Path) -> None:
    cache = tmp_path / "home" / "project-1"
    cache.mkdir(parents=True)
    for directory in (cache.parent, cache):
        directory.chmod(0o777)
    make_private(cache, tmp_path)
    assert (mode(cache.parent), mode(cache)) == (0o755, 0o755)


@as_root
@pytest.mark.parametrize("planted", ["home", "home/project-1"])
def test_a_directory_of_another_user_is_refused_by_its_name(tmp_path: Path, planted: str) -> None:
    cache = tmp_path / "home" / "project-1"
    cache.mkdir(parents=True)
    os.chown(tmp_path / planted, ANOTHER, ANOTHER)
    with pytest.raises(ConfigurationError) as caught:
        make_private(cache, tmp_path)
    assert str(tmp_path / planted) in caught.value.problem
    assert "MSP_BRIDGE_CACHE" in (caught.value.remedy or "")


@as_root
def test_a_link_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "home").mkdir()
    cache = tmp_path / "home" / "project-1"
    cache.symlink_to(tmp_path / "own")
    os.chown(cache, ANOTHER, ANOTHER, follow_symlinks=False)
    with pytest.raises(ConfigurationError, match="belongs to another user"):
        make_private(cache, tmp_path)


@as_root
def test_a_shared_directory_in_which_nobody_can_take_anothers_place_is_fine(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o1777)
    os.chown(home, ANOTHER, ANOTHER)
    make_private(home / "project-1", tmp_path)
    assert mode(home) == 0o1777


@as_root
def test_the_owner_of_the_project_is_trusted_whose_tests_are_run_anyway(tmp_path: Path) -> None:
    root, cache = tmp_path / "project", tmp_path / "home" / "project-1"
    root.mkdir()
    cache.mkdir(parents=True)
    for directory in (root, cache.parent, cache):
        os.chown(directory, ANOTHER, ANOTHER)
    make_private(cache, root)

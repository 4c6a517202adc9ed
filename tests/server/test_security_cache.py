"""The cache holds what is run: nobody else may put anything into it."""

import os
import stat
from pathlib import Path

import pytest

from msp_bridge.environment.cache import make_private
from msp_bridge.errors import ConfigurationError

ANOTHER = 54321  # a user's id
pytestmark = pytest.mark.skipif(os.name != "posix", reason="files have no such owners there")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")


def mode(directory: Path) -> int:
    return stat.S_IMODE(directory.stat().st_mode)


def test_what_others_may_write_into_is_closed_to_them(tmp_path: Path) -> None:
    cache = tmp_path / "home" / "project-1"
    cache.mkdir(parents=True)
    for directory in (cache.parent, cache):
        directory.chmod(0o777)
    make_private(cache, tmp_path)
    assert (mode(cache.parent), mode(cache)) == (0o755, 0o755)


def test_every_directory_that_is_made_on_the_way_is_for_this_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_private(tmp_path / "a" / "b" / "home" / "project-1", tmp_path)
    finally:
        os.umask(before)
    assert [mode(tmp_path / below) for below in ("a", "a/b", "a/b/home", "a/b/home/project-1")] == [0o700] * 4


@as_root
@pytest.mark.parametrize("permissions", [0o755, 0o1777])
@pytest.mark.parametrize("planted", ["above", "above/home", "above/home/project-1"])
def test_a_directory_of_another_user_is_refused_by_its_name(tmp_path: Path, planted: str, permissions: int) -> None:
    cache = tmp_path / "above" / "home" / "project-1"
    cache.mkdir(parents=True)
    (tmp_path / planted).chmod(permissions)
    os.chown(tmp_path / planted, ANOTHER, ANOTHER)
    with pytest.raises(ConfigurationError) as caught:
        make_private(cache, tmp_path)
    assert str(tmp_path / planted) in caught.value.problem
    assert "MSP_BRIDGE_CACHE" in (caught.value.remedy or "")


@as_root
@pytest.mark.parametrize("planted", ["above", "above/home", "above/home/project-1"])
def test_a_link_of_another_user_is_refused(tmp_path: Path, planted: str) -> None:
    own, link = tmp_path / "own", tmp_path / planted
    own.mkdir()
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(own)
    os.chown(link, ANOTHER, ANOTHER, follow_symlinks=False)
    with pytest.raises(ConfigurationError, match="belongs to another user"):
        make_private(tmp_path / "above" / "home" / "project-1", tmp_path)
    assert list(own.iterdir()) == [], "nothing is made behind it"


@as_root
def test_where_an_own_link_leads_is_looked_at_too(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    (theirs / "cache").mkdir(parents=True)
    os.chown(theirs, ANOTHER, ANOTHER)
    (tmp_path / "home").symlink_to("theirs/cache")
    with pytest.raises(ConfigurationError, match="theirs belongs to another user"):
        make_private(tmp_path / "home" / "project-1", tmp_path)


def test_an_own_link_is_fine_and_one_that_leads_to_itself_is_no_endless_loop(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to("../" + tmp_path.name + "/real")
    make_private(tmp_path / "home" / "project-1", tmp_path)
    assert mode(tmp_path / "real" / "project-1") == 0o700
    (tmp_path / "loop").symlink_to("loop")
    make_private(tmp_path / "loop" / "project-1", tmp_path)


def test_a_directory_above_that_every_user_may_write_into_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(ConfigurationError, match="open can be written by every user"):
        make_private(tmp_path / "open" / "home" / "project-1", tmp_path)


def test_a_shared_directory_in_which_nobody_can_take_anothers_place_is_fine(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o1777)
    make_private(home / "project-1", tmp_path)
    assert (mode(home), mode(home / "project-1")) == (0o1777, 0o700)


@as_root
def test_the_owner_of_the_project_is_trusted_whose_tests_are_run_anyway(tmp_path: Path) -> None:
    root, cache = tmp_path / "project", tmp_path / "home" / "project-1"
    root.mkdir()
    cache.mkdir(parents=True)
    for directory in (root, cache.parent, cache):
        os.chown(directory, ANOTHER, ANOTHER)
    make_private(cache, root)

"""The cache of a project: where it lies, and that nobody else can put anything into it."""

import hashlib
import logging
import os
import stat
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from platformdirs import user_cache_path

from msp_bridge.errors import ConfigurationError

log = logging.getLogger(__name__)

CACHE_VARIABLE = "MSP_BRIDGE_CACHE"
OTHERS = stat.S_IWGRP | stat.S_IWOTH
MAX_STEPS = 1000  # directories and links on the way to a cache: more are links that lead back


def cache_home() -> Path:
    """`$MSP_BRIDGE_CACHE`, or the bridge's part of the user's cache directory."""
    return Path(os.environ.get(CACHE_VARIABLE) or user_cache_path("msp-bridge"))


def cache_of(root: Path, opened: Path | None = None) -> Path:
    """The private directory of the project at `root`; not made yet.

    Below `$MSP_BRIDGE_CACHE`, or the user's cache directory, or, when that lies within the directory that the user
    `opened` (the project's own, unless it is nested), the temporary one.
    """
    home = cache_home()
    resolved, opened = root.resolve(), (opened or root).resolve()
    if home.resolve().is_relative_to(opened):
        home = _temporary_home(home, opened)
    digest = hashlib.sha256(os.fsencode(resolved)).hexdigest()[:16]
    return home.absolute() / f"{resolved.name or 'root'}-{digest}"


@cache  # said once
def _temporary_home(home: Path, opened: Path) -> Path:
    instead = Path(tempfile.gettempdir()) / f"msp-bridge-{os.getuid()}"
    log.warning("the cache %s would lie in %s, where nothing is written: it is in %s", home, opened, instead)
    return instead


def make_private(cache: Path, root: Path) -> None:
    """Make a project's directory in the cache, one that only this user can write into.

    What lies there is run: bytecode, copies of the project. So each directory and link on the way to it belongs to this
    user, to root, or to the owner of the project, whose tests are run anyway: anybody else could put another in its
    place. Raises ConfigurationError.
    """
    try:
        trusted = {os.geteuid(), 0, root.stat().st_uid}
        _check_way(cache, trusted)  # before anything is made behind a link of another user
        for directory in (*reversed(cache.parents), cache):
            directory.mkdir(mode=0o700, exist_ok=True)
        for directory in (cache.parent, cache):
            _close(directory)
        _check_way(cache, trusted)
    except OSError as error:  # the user of the cache says what can't be done
        log.debug("the cache can't be made: %s", error)


def _close(directory: Path) -> None:
    """Take from others the right to write into a directory of this user's; one like /tmp is shared on purpose."""
    status = directory.stat()
    if status.st_mode & OTHERS and status.st_uid == os.geteuid() and not status.st_mode & stat.S_ISVTX:
        directory.chmod(stat.S_IMODE(status.st_mode) & ~OTHERS)


def _check_way(cache: Path, trusted: set[int]) -> None:
    """Raises ConfigurationError for the first directory or link on the way to `cache` that others can exchange."""
    for path, status in _way(cache):
        shared = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX
        if status.st_uid not in trusted or (shared and path not in (str(cache), str(cache.parent))):
            whose = "can be written by every user" if status.st_uid in trusted else "belongs to another user"
            raise ConfigurationError(
                f"the cache can't lie in {cache}: {path} {whose}, who could put programs into it",
                f"set {CACHE_VARIABLE} to a directory of your own, or make {path} one",
            )


def _way(path: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Each directory and link that leads to `path`, as far as they exist, in the order of their lookup."""
    at, pending = os.sep, list(reversed(path.absolute().parts))
    for _ in range(MAX_STEPS):
        if not pending:
            return
        step = os.path.normpath(os.path.join(at, pending.pop()))
        try:
            status = os.lstat(step)
        except FileNotFoundError:
            return
        yield step, status
        if stat.S_ISLNK(status.st_mode):  # relative to the directory that it lies in, which is `at`
            pending += reversed(Path(os.readlink(step)).parts)
        else:
            at = step

"""The cache of a project: where it lies, and that nobody else can put anything into it."""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import tempfile
from functools import cache
from pathlib import Path

from platformdirs import user_cache_path

from msp_bridge.errors import ConfigurationError

log = logging.getLogger(__name__)

CACHE_VARIABLE = "MSP_BRIDGE_CACHE"


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
    instead = Path(tempfile.gettempdir()) / f"msp-bridge-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    log.warning("the cache %s would lie in %s, where nothing is written: it is in %s", home, opened, instead)
    return instead


def make_private(cache: Path, root: Path) -> None:
    """Make a project's directory in the cache, one that only this user can write into.

    What lies there is run: bytecode, copies of the project. So it belongs to this user, to root, or to the owner of the
    project, whose tests are run anyway; and so does the directory around it, unless that is one like /tmp, where nobody
    can take another's place. Raises ConfigurationError for any other.
    """
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.name == "posix":
            trusted = {os.geteuid(), 0, root.stat().st_uid}
            _check_owner(cache.parent, trusted, may_be_shared=True)
            _check_owner(cache, trusted, may_be_shared=False)
    except OSError as error:  # whoever uses it says what can't be done
        log.debug("the cache can't be made: %s", error)


def _check_owner(directory: Path, trusted: set[int], *, may_be_shared: bool) -> None:
    status = directory.stat()
    if may_be_shared and status.st_mode & stat.S_ISVTX:
        return
    if not {status.st_uid, directory.lstat().st_uid} <= trusted:
        raise ConfigurationError(
            f"the cache {directory} belongs to another user, who could put programs into it",
            f"delete it, or set {CACHE_VARIABLE} to a directory of your own",
        )
    others = stat.S_IWGRP | stat.S_IWOTH
    if status.st_mode & others and status.st_uid == os.geteuid():
        directory.chmod(stat.S_IMODE(status.st_mode) & ~others)

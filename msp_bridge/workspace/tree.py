"""The directory that the user opened: what lies within it, where in it projects may be, and their caches outside."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import stat
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from fnmatch import translate
from functools import cache
from pathlib import Path

from platformdirs import user_cache_path

from msp_bridge.errors import ConfigurationError
from msp_bridge.ignored import CACHE_MARKERS, IGNORED_DIRS

log = logging.getLogger(__name__)

BUILT = frozenset({"bin", "obj", "build", "dist", "out", "target", "vendor", "mutants", "site-packages"})
MAX_LOOKS = 20_000  # directories; a tree that has more is searched no further, nearest first
CACHE_VARIABLE = "MSP_BRIDGE_CACHE"


class Boundary:
    """The root as it was named, and as it really is.

    What directories really are is looked up once: keep one for a request, not for longer.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._root, self._real_root = os.fspath(root), os.path.realpath(root)
        self._real_directory = cache(os.path.realpath)

    def relative(self, path: str) -> str | None:
        """`path`, absolute or relative to the root, as relative to the root with `/`; None when it lies outside.

        A link lies where it leads, and keeps its own name. The root itself is ".". Whether something outside exists
        makes no difference.
        """
        if not _possible(path):
            return None
        absolute = os.path.normpath(os.path.join(self._root, path))
        real = _below(self._real_root, self._real(absolute))
        return None if real is None else _below(self._root, absolute) or real

    def holds(self, path: str) -> bool:
        """Whether `path` lies within."""
        return self.relative(path) is not None

    def _real(self, absolute: str) -> str:
        directory, name = os.path.split(absolute)
        real = os.path.join(self._real_directory(directory), name)
        return os.path.realpath(real) if os.path.islink(real) else real


def _possible(path: str) -> bool:
    """Whether a file could have that name: the functions of `os` raise ValueError for others."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _below(root: str, path: str) -> str | None:
    if path.startswith(root + os.sep):  # nearly always, and os.path.relpath costs more than all the rest
        return path[len(root) + 1 :].replace(os.sep, "/")
    try:
        relative = os.path.relpath(path, root)
    except ValueError:  # another drive
        return None
    relative = relative.replace(os.sep, "/")
    return None if relative == ".." or relative.startswith("../") else relative


def folders_with(root: str, patterns: Iterable[str]) -> Iterator[str]:
    """The folders below `root` (relative, with a `/` at the end) that hold a file whose name matches one of `patterns`.

    Nearest first. Not looked into: what is hidden or generated, environments, and links to directories.
    """
    marked = matcher(patterns)
    for folder, names in _walk(root):
        if folder and any(map(marked, names)):
            yield folder


def folders_above(start: Path, patterns: Iterable[str]) -> Iterator[Path]:
    """The directories above `start` that hold a file whose name matches one of `patterns`, nearest first.

    Up to the top of the repository, which has `.git`, and not the home directory. As for git, none of another user but
    root: what is set up there could be run.
    """
    marked, home = matcher(patterns), Path.home()
    trusted = {0, os.stat(start).st_uid, *([os.getuid()] if hasattr(os, "getuid") else [])}
    while start.parent not in (start, home) and not (start / ".git").exists():
        start = start.parent
        if os.stat(start).st_uid in trusted and any(map(marked, _entries(str(start))[0])):
            yield start


def files_below(root: str) -> Iterator[str]:
    """The files at and below `root`, relative to it with `/`, within the same limits."""
    for folder, names in _walk(root):
        yield from (f"{folder}{name}" for name in names)


def matcher(patterns: Iterable[str]) -> Callable[[str], re.Match[str] | None]:
    """Whether a file's name matches one of `patterns`."""
    return re.compile("|".join(map(translate, patterns)) or r"(?!)").match


def _walk(root: str) -> Iterator[tuple[str, list[str]]]:
    """Each folder from `root`, which is "", on, with the names of its files."""
    pending, looks = deque([""]), 0
    while pending:
        if (looks := looks + 1) > MAX_LOOKS:
            log.warning("%s is too large to look for projects in all of it: open the folder of a project", root)
            return
        folder = pending.popleft()
        names, below = _entries(os.path.join(root, folder))
        if folder and not CACHE_MARKERS.isdisjoint(names):
            continue
        yield folder, names
        pending.extend(f"{folder}{name}/" for name in below)


def _entries(directory: str) -> tuple[list[str], list[str]]:
    """The names of its files, and of its directories that are worth a look."""
    names, below = [], []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    names.append(entry.name)
                elif not (entry.name.startswith(".") or entry.name in IGNORED_DIRS or entry.name in BUILT):
                    below.append(entry.name)
    except OSError as error:
        log.debug("not looked into: %s", error)
    return names, sorted(below)


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
    log.info("the cache %s would lie in %s, where nothing is written: it is in %s", home, opened, instead)
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

"""The directory that the user opened: what lies within it, and where in it projects may be."""

import logging
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from fnmatch import translate
from functools import cache
from pathlib import Path

from msp_bridge.isolation.left_out import CACHE_MARKERS, IGNORED_DIRS

log = logging.getLogger(__name__)

BUILT = frozenset({"bin", "obj", "build", "dist", "out", "target", "vendor", "mutants", "site-packages"})
FIXTURES = frozenset({"testdata"})  # go builds nothing in it; a manifest there is for a test to read
SKIPPED = IGNORED_DIRS | BUILT | FIXTURES
MAX_LOOKS = 20_000  # directories; a tree that has more is searched no further, nearest first


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
        return path[len(root) + 1 :]
    relative = os.path.relpath(path, root)
    return None if relative == ".." or relative.startswith("../") else relative


def folders_with(root: str, patterns: Iterable[str]) -> Iterator[str]:
    """The folders below `root` (relative, with a `/` at the end) that hold a file whose name matches one of `patterns`.

    Nearest first. Not looked into: what is hidden, generated or data of tests, environments, and links to directories.
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
    trusted = {0, os.stat(start).st_uid, os.getuid()}
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
                elif not (entry.name.startswith(".") or entry.name in SKIPPED):
                    below.append(entry.name)
    except OSError as error:
        log.debug("not looked into: %s", error)
    return names, sorted(below)

"""Folders: where below the directory that the user opened there may be projects of their own."""

from __future__ import annotations

import logging
import os
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import translate

from msp_bridge.ignored import CACHE_MARKERS, IGNORED_DIRS

log = logging.getLogger(__name__)

BUILT = frozenset({"bin", "obj", "build", "dist", "out", "target", "vendor", "mutants", "site-packages"})
MAX_LOOKS = 20_000  # directories; a tree that has more is searched no further, nearest first


def folders_with(root: str, patterns: Iterable[str]) -> Iterator[str]:
    """The folders below `root` (relative, with a `/` at the end) that hold a file whose name matches one of `patterns`.

    Nearest first. Not looked into: what is hidden or generated, environments, and links to directories.
    """
    marked = _any_of(patterns)
    for folder, names in _walk(root):
        if folder and any(map(marked, names)):
            yield folder


def files_of(root: str, patterns: Mapping[str, Iterable[str]]) -> Counter[str]:
    """How many files at and below `root` have names that match the patterns of each key, within the same limits."""
    matching = {key: _any_of(wanted) for key, wanted in patterns.items()}
    found: Counter[str] = Counter()
    for _, names in _walk(root):
        for key, match in matching.items():
            found[key] += sum(1 for name in names if match(name))
    return found


def _any_of(patterns: Iterable[str]) -> Callable[[str], re.Match[str] | None]:
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

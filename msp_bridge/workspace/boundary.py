"""Boundary: what lies within a project's root, wherever links lead."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path


class Boundary:
    """The root as it was asked for, and as it really is.

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

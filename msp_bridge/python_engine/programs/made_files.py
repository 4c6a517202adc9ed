"""Files that importing the project makes in its tree, such as a database, a log or a cache.

Theory of operation
-------------------
Jobs of the live server find them as its import has left them. A fresh process imports the project itself, and has to
find none: else it does not do what it would do (`if not DATABASE.exists(): create()`). So its job deletes them. A
refresh of the sandbox deletes them, too: the host keeps copies, and puts these back for a live server that goes on.

Not seen is what native code makes, but databases of sqlite, and what processes do that an import starts.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ...isolation.left_out import CACHES

MAKES = {"open": 0, "os.mkdir": 0, "os.rename": 1, "os.link": 1, "os.symlink": 1, "sqlite3.connect": 0}  # audit events
TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def made_by(event: str, arguments: tuple[Any, ...]) -> str | None:
    """The path of what an audit event may make."""
    if event not in MAKES or (event == "open" and not arguments[2] & TO_WRITE):
        return None
    path = arguments[MAKES[event]]
    return os.path.abspath(os.fsdecode(path)) if isinstance(path, (str, bytes, os.PathLike)) else None


def made_in(place: str, pristine: str, paths: Iterable[str]) -> list[str]:
    """Find those of `paths` that the tree has and `pristine` has not, relative to it; none in a directory of these.

    Caches, such as hypothesis makes as the tests are collected, are no results of the project's code.
    """
    found: list[str] = []
    for path in sorted(paths):
        relative = os.path.relpath(path, place)
        is_ours = not relative.startswith("..") and not any(relative.startswith(f"{other}/") for other in found)
        is_ours = is_ours and CACHES.isdisjoint(relative.split("/"))
        if is_ours and os.path.lexists(path) and not os.path.lexists(os.path.join(pristine, relative)):
            found.append(relative)
    return found


def remove(place: str, paths: Sequence[str]) -> None:
    """Remove what is there. Raises OSError."""
    for path in paths:
        file = Path(place, path)
        if not file.is_symlink() and file.is_dir():
            shutil.rmtree(file)
        else:
            file.unlink(missing_ok=True)


def copy(source: str, target: str, paths: Sequence[str]) -> None:
    """Copy what is there from one tree to the other, where it is not there. Raises OSError."""
    for path in paths:
        file, to = Path(source, path), Path(target, path)
        with contextlib.suppress(FileNotFoundError):
            to.parent.mkdir(parents=True, exist_ok=True)
            if file.is_dir() and not file.is_symlink():
                shutil.copytree(file, to, symlinks=True, dirs_exist_ok=True)
            elif not to.exists():
                shutil.copy2(file, to, follow_symlinks=False)

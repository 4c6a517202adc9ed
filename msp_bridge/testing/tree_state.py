"""TreeState: whether a tree is, to the byte, what it was."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from attrs import frozen


@frozen
class TreeState:
    """What every file of a tree was: kind, permissions, time of the last change (ns), and content, by path."""

    entries: dict[str, tuple[int, int, str]]

    @classmethod
    def of(cls, root: Path) -> TreeState:
        """The present state of everything at and below `root`."""
        entries = {}
        for directory, names, files in os.walk(root):
            for name in [".", *names, *files]:
                path = os.path.join(directory, name)
                status = os.lstat(path)
                entries[os.path.relpath(path, root)] = (
                    status.st_mode,
                    status.st_mtime_ns,
                    _content(path, status.st_mode),
                )
        return cls(entries)

    def differences(self, later: TreeState) -> list[str]:
        """What has appeared, vanished or changed since, a line each."""
        before, after = self.entries, later.entries
        return sorted(
            [f"{path} has appeared" for path in after.keys() - before.keys()]
            + [f"{path} has vanished" for path in before.keys() - after.keys()]
            + [f"{path} has changed" for path in before.keys() & after.keys() if before[path] != after[path]]
        )


def _content(path: str, mode: int) -> str:
    if stat.S_ISLNK(mode):
        return os.readlink(path)
    if stat.S_ISREG(mode):
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return ""

"""Undo what a mutant did to a directory, where the kernel permits no world of its own: any system, any file system.

Theory of operation
-------------------
`Journal(directory, pristine, kept)` notes of every entry its type and permissions, size, inode, modification and change
time: one walk, no file is opened. `undo` walks again. What differs from the note is made again from `pristine`, a
second copy of the directory that no test knows of; what the note does not know is deleted. A process that still runs
can write after the walk: end the mutant's processes first.

Importing the project may have made files, or changed some, before the journal begins: a database, a log. So what
differs from `pristine` then is copied to `kept`, and made again from there.

Why times are enough here, though the clock of a file system may stand still for 4 ms: a restored file gets the (old)
modification time of its original, so a write in the same tick changes that; and a program that sets the modification
time back can't set back the change time (on POSIX). A write through a memory map sets both.

Cost: 4 to 7 µs an entry, which is 40 to 70 ms for 10,000 files; `ignore` names directories that cost nothing and are
left alone.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator

from .made_files import remove

Note = tuple[int, int, int, int, int]
COPIED = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)


class Journal:
    """The state of `directory` that every `undo` returns to."""

    def __init__(self, directory: str, pristine: str, kept: str, left_alone: str | None = None) -> None:
        """`kept` is a directory to make, where something is to be kept. Raises OSError.

        What is in `directory` and has a name that begins with `left_alone` is as if it were not there.
        """
        self._directory, self._pristine, self._kept, self._left_alone = directory, pristine, kept, left_alone
        shutil.rmtree(kept, ignore_errors=True)  # of an earlier journal
        self._alone: set[str] = set()  # sockets and the like: nobody could make them again
        found = dict(self._walk())
        self._notes = {path: note for path, note in found.items() if stat.S_IFMT(note[0]) in COPIED}
        self._alone = found.keys() - self._notes.keys()
        self._own: set[str] = set()  # what is in `kept`
        for path, note in self._notes.items():
            if self._is_other(path, note):
                os.makedirs(os.path.join(kept, os.path.dirname(path)), exist_ok=True)
                _copy(os.path.join(directory, path), os.path.join(kept, path))
                self._own.add(path)

    def undo(self) -> list[str]:
        """Make the directory as it was; -> the relative paths that were not, sorted.

        Raises OSError when it can't be.
        """
        now = dict(self._walk())
        if now == self._notes:
            return []
        changed = sorted(path for path in now.keys() | self._notes.keys() if now.get(path) != self._notes.get(path))
        for path in reversed(changed):  # what is in a directory before the directory
            before, after = self._notes.get(path), now.get(path)
            if after is not None and (before is None or not _both_directories(before, after)):
                remove(self._directory, [path])  # perhaps it is gone, with its directory
        for path in changed:
            if path in self._notes:
                _copy(self._source(path), os.path.join(self._directory, path))
        for path in reversed(changed):  # the times of a directory after those of what is in it
            if path in self._notes and stat.S_ISDIR(self._notes[path][0]):
                shutil.copystat(self._source(path), os.path.join(self._directory, path))
        for path in changed:
            if path in self._notes:
                self._notes[path] = _note(os.lstat(os.path.join(self._directory, path)))
        return changed

    def _walk(self) -> Iterator[tuple[str, Note]]:
        pending = [""]
        while pending:
            parent = pending.pop()
            for name, status in _entries(os.path.join(self._directory, parent)):
                if not parent and self._left_alone and name.startswith(self._left_alone):
                    continue
                path = f"{parent}/{name}" if parent else name
                if path in self._alone:
                    continue
                yield path, _note(status)
                if stat.S_ISDIR(status.st_mode):
                    pending.append(path)

    def _source(self, path: str) -> str:
        return os.path.join(self._kept if path in self._own else self._pristine, path)

    def _is_other(self, path: str, note: Note) -> bool:
        """Whether `pristine` has not what the directory has."""
        try:
            pristine = _note(os.lstat(os.path.join(self._pristine, path)))
        except OSError:
            return True
        return stat.S_IFMT(note[0]) != stat.S_IFMT(pristine[0]) or note[1:3] != pristine[1:3]


def _copy(source: str, target: str) -> None:
    mode = os.lstat(source).st_mode
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink(source), target)
        shutil.copystat(source, target, follow_symlinks=False)
    elif stat.S_ISDIR(mode):
        os.makedirs(target, exist_ok=True)
    else:
        shutil.copy2(source, target)


def _note(status: os.stat_result) -> Note:
    if stat.S_ISDIR(status.st_mode):  # its times and size change with what is in it
        return status.st_mode, 0, 0, 0, status.st_ino
    return status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _both_directories(one: Note, other: Note) -> bool:
    return stat.S_ISDIR(one[0]) and stat.S_ISDIR(other[0])


def _entries(directory: str) -> list[tuple[str, os.stat_result]]:
    """Also of a directory that a test has made unreadable."""
    for attempt in range(2):
        try:
            with os.scandir(directory) as entries:
                return [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
        except PermissionError:
            if attempt:
                raise
            os.chmod(directory, 0o700)
    raise AssertionError

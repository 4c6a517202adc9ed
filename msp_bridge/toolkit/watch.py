"""Looks at a large tree again and again: the kernel reports what was touched (inotify), so not every file is looked at.

Theory of operation
-------------------
The problem. A look at each of 20,000 files takes a tenth of a second, three times as long as a mutant. The times of the
directories don't tell of an edit. Yet a change that is missed gives a wrong verdict.

The way out, on Linux. Each directory of the tree is watched. An event is in the queue before the system call that
caused it returns. So a reader that empties the queue has heard of all that was saved before; no thread and no
delay is between. What was touched is looked at again, alone. The result is that of a walk, entry by entry.

The invariants.

- A directory is watched before it is listed: what changes in between is in the queue.
- What changes which directories there are, a queue that overflows, a mount, another directory in the place of the root:
  the next look is a walk, with new watches.
- Events tell nothing of changes that don't come through a directory of the tree. So links, and files that have several
  names (hard links), are looked at each time. A tree is not watched, but walked each time, where a link leads out of
  it to a directory, where anything is mounted in it, and on file systems that others may write: network, FUSE, the
  shared folders of virtual machines.
- Trees with few files are not watched, nor trees that need more than an eighth of the watches that the user may have:
  editors need them, too.

Known limits, as of the times of files: a write through a memory map is seen when the map or its file is closed, and
one through a hard link that was made since the walk, from outside of the tree, at the next walk.
"""

# Paths are plain strings here, as in `tree`.

from __future__ import annotations

import ctypes
import errno
import logging
import os
import re
import struct
import sys
import weakref
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from threading import Lock

from attrs import define, field, frozen

from msp_bridge.isolation.left_out import CACHE_MARKERS
from msp_bridge.toolkit.tree import Entry, Kind, Notes, SourceTree, excluded, within

log = logging.getLogger(__name__)

LARGE = 1_000  # files, directories and links: fewer are looked at in less time than a mutant's process takes to start
SHARE = 8  # of the user's watches one in so many
LOCAL = frozenset({"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs"})
MOUNTS = "/proc/self/mountinfo"
LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")
BLOCK = 1 << 16  # bytes

# linux/inotify.h
MODIFY, ATTRIB, CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x2, 0x4, 0x8, 0x40, 0x80, 0x100, 0x200
DELETE_SELF, MOVE_SELF, UNMOUNT, OVERFLOW, IGNORED = 0x400, 0x800, 0x2000, 0x4000, 0x8000
ONLYDIR, DONT_FOLLOW, OF_DIRECTORY = 0x1000000, 0x2000000, 0x40000000
TOUCHED = MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | MOVE_SELF
LOST = DELETE_SELF | MOVE_SELF | UNMOUNT | OVERFLOW | IGNORED
UNREADABLE = frozenset({errno.EACCES, errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name


class Unwatchable(Exception):
    """Events would not tell of all changes; the message says why."""


class WalkNeeded(Exception):
    """The events alone don't say what was touched."""


@define(eq=False)
class TreeLooks:
    """Looks at the tree at `root`, as `SourceTree` describes it. Blocks; calls wait for each other."""

    root: str  # a real path
    warn: Callable[[str, str], None]  # called with a path that is left out, and the reason
    left_out: Collection[str] = ()
    included: Collection[str] = ()
    _watched: WatchedWalk | None = field(default=None, init=False)
    _walks: bool = field(default=sys.platform != "linux", init=False)  # each time: it can't be watched
    _entries: dict[str, Entry] = field(factory=dict, init=False)
    _turn: Lock = field(factory=Lock, init=False)

    def entries(self) -> dict[str, Entry]:
        """The entries as `SourceTree.entries` has them: the same object if nothing was touched. Don't change it."""
        with self._turn:
            if self._watched is not None:
                try:
                    self._entries = self._watched.followed(self._entries, self._tree)
                except (WalkNeeded, OSError):
                    self._close()
                except BaseException:  # the events have been taken from the queue
                    self._close()
                    raise
            if self._watched is None:
                self._entries = self._walk()
            return self._entries

    def close(self) -> None:
        """Give up the watches; the next look is a walk. Idempotent."""
        with self._turn:
            self._close()

    def _close(self) -> None:
        if self._watched is not None:
            self._watched.close()
            self._watched = None

    @property
    def _tree(self) -> SourceTree:
        return SourceTree(self.root, self.warn, self.left_out, self.included)

    def _walk(self) -> dict[str, Entry]:
        if self._walks:
            return self._tree.entries()
        try:
            return self._tree.entries(_UpTo(LARGE))
        except _Large:
            pass
        try:
            watched = WatchedWalk(self.root)
            entries = self._tree.entries(watched)
        except (Unwatchable, OSError) as error:
            self._walks = True
            log.info("each look at %s is one at every file: %s", self.root, error)
            return self._tree.entries()
        self._watched = watched
        return entries


class _Large(Exception):
    """There are too many files to look at each time."""


@frozen
class _UpTo(Notes):
    limit: int

    def enter(self, prefix: str, found: int) -> None:
        if found > self.limit:
            raise _Large


class WatchedWalk(Notes):
    """A walk that has all directories watched, and what is known of the tree since then."""

    def __init__(self, root: str) -> None:
        """Raises OSError and Unwatchable."""
        self._root = root
        self._place = self._place_now()
        self._mounts = dict(_mounts(self._place[1]))
        over = max((point for point in self._mounts if within(root, point)), key=len, default="")
        if self._mounts.get(over) not in LOCAL:
            raise Unwatchable(f"it lies on a file system of the kind {self._mounts.get(over)}")
        self._limit = int(LIMIT.read_text("ascii")) // SHARE
        self._watch = Watch()
        self._prefixes: dict[int, str] = {}
        self._elsewhere: set[str] = set()  # paths that may change without an event
        self._links: set[str] = set()
        self._is_over = False

    def close(self) -> None:
        """Give up the watches."""
        self._watch.close()

    def enter(self, prefix: str, found: int) -> None:
        """Watch it. Raises OSError and Unwatchable."""
        full = f"{self._root}/{prefix}".rstrip("/")
        if prefix and full in self._mounts:
            raise Unwatchable(f"{prefix} is a file system of its own")
        if prefix[:-1] in self._links:
            raise Unwatchable(f"{prefix} leads to a directory elsewhere")
        if len(self._prefixes) >= self._limit:
            raise Unwatchable("it has too many directories")
        try:
            number = self._watch.add(full)
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise
            return  # what makes it readable, or a directory, is an event of the directory that it is in
        if self._prefixes.setdefault(number, prefix) != prefix:
            raise Unwatchable(f"{prefix} and {self._prefixes[number]} are the same directory")

    def link(self, path: str, above: tuple[str, ...]) -> None:
        """Note a link: what it leads to may change elsewhere."""
        self._links.add(path)
        self._elsewhere.add(path)

    def shared(self, path: str) -> None:
        """Note a file that may be written under another name, which may be in the tree, too."""
        if self._is_over and path not in self._elsewhere:
            raise WalkNeeded
        self._elsewhere.add(path)

    def followed(self, entries: dict[str, Entry], tree: SourceTree) -> dict[str, Entry]:
        """The present content of the tree; `entries` was in it at the last look. Raises WalkNeeded and OSError."""
        self._is_over = True
        if self._place_now() != self._place:
            raise WalkNeeded
        changes: dict[str, Entry | None] = {}
        for path in self._touched(entries, tree) | self._elsewhere:
            before = entries.get(path)
            now, _ = tree.entry(path, (self._root,), self)
            if now == before:
                continue
            kinds = {before and before.kind, now and now.kind}
            if Kind.DIRECTORY in kinds and len(kinds) > 1:
                raise WalkNeeded
            changes[path] = now
        if not changes:
            return entries
        return {path: entry for path, entry in (entries | changes).items() if entry is not None}

    def _touched(self, entries: Collection[str], tree: SourceTree) -> set[str]:
        """The paths of files that events tell of, and of the directories that these are in. Raises WalkNeeded."""
        touched = set[str]()
        for number, mask, name in self._watch.events():
            prefix = self._prefixes.get(number)
            if prefix is None or not name or mask & LOST or name in CACHE_MARKERS:
                raise WalkNeeded
            if prefix and prefix[:-1] not in entries:
                continue  # a marker keeps it out
            touched.add(prefix[:-1])
            if not excluded(prefix, name, tree.left_out, tree.included):
                if mask & OF_DIRECTORY:
                    raise WalkNeeded
                touched.add(prefix + name)
        return touched - {""}

    def _place_now(self) -> tuple[object, bytes]:
        """Which directory the root is, and what is mounted anywhere."""
        status = os.stat(self._root)
        return (status.st_dev, status.st_ino), Path(MOUNTS).read_bytes()


class Watch:
    """The kernel's queue of events about some directories."""

    def __init__(self) -> None:
        """Raises OSError where there can be no more of them."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self.close: Callable[[], object] = weakref.finalize(self, os.close, self._descriptor)  # idempotent

    def add(self, directory: str) -> int:
        """Watch it; the number is that of its events. Raises OSError."""
        mask = TOUCHED | ONLYDIR | DONT_FOLLOW
        return self._checked(self._libc.inotify_add_watch(self._descriptor, os.fsencode(directory), mask))

    def events(self) -> Iterator[tuple[int, int, str]]:
        """All that have happened: number, mask, and the name in the directory ("": the directory itself)."""
        while True:
            try:
                block = os.read(self._descriptor, BLOCK)
            except BlockingIOError:
                return
            at = 0
            while at < len(block):
                number, mask, _, length = EVENT.unpack_from(block, at)
                at += EVENT.size + length
                yield number, mask, os.fsdecode(block[at - length : at].rstrip(b"\0"))

    def _checked(self, answer: int) -> int:
        if answer < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return answer


def _mounts(table: bytes) -> Iterator[tuple[str, str]]:
    """Mount point and kind of file system, from what the kernel says of each mount; the last of a point counts."""
    for line in table.splitlines():
        before, _, after = line.partition(b" - ")
        point = re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), before.split(b" ")[4])
        yield os.fsdecode(point), after.split(b" ")[0].decode("ascii", "replace")

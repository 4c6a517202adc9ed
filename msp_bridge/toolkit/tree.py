"""Files of a project's tree, what stays out of copies, the copy of one file, and the digest of its bytes.

A refresh makes thousands of these copies: each system call counts.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import os
import stat
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from hashlib import blake2b, file_digest
from pathlib import Path

from attrs import frozen

from msp_bridge.isolation.left_out import ACCEPTED, CACHE_MARKERS, IGNORED_DIRS

EXCLUDED_PREFIX = ".#"  # Emacs marks an edited file with a dangling link of this name

Stamp = tuple[int, int, int, int, int]
if sys.platform == "linux":
    from fcntl import ioctl

FICLONE = 0x40049409  # linux/fs.h
BLOCK = 1 << 20  # bytes


class Kind(enum.Enum):
    """The kind of a path. The values are written to the manifest."""

    FILE = "f"
    DIRECTORY = "d"
    LINK = "l"
    OTHER = "o"  # a socket, a pipe, a device


KINDS = {stat.S_IFREG: Kind.FILE, stat.S_IFDIR: Kind.DIRECTORY, stat.S_IFLNK: Kind.LINK}


@frozen
class Entry:
    """One path of a tree. The stamp changes whenever the file is written, replaced or given other permissions."""

    kind: Kind
    stamp: Stamp  # modified and changed (ns since the epoch), size in bytes, inode, mode
    target: str = ""  # where a link points, as it has to stand in the copy

    @classmethod
    def of(cls, status: os.stat_result, target: str = "") -> Entry:
        """Make it from `lstat`, or from `stat` where a link is followed."""
        mode = status.st_mode
        stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, mode)
        return cls(KINDS.get(stat.S_IFMT(mode), Kind.OTHER), stamp, target)

    @property
    def mode(self) -> int:
        """The permission bits."""
        return stat.S_IMODE(self.stamp[4])


class Notes:
    """Facts that a walk meets besides the entries; nothing is kept here."""

    def enter(self, prefix: str, found: int) -> None:
        """The directory (with a `/` at its end, the root is "") is about to be listed; so many paths are known."""

    def link(self, path: str, above: tuple[str, ...]) -> None:
        """A link, followed or not, also one that is left out; `above` are the real directories that it lies in."""

    def shared(self, path: str) -> None:
        """A file that has other names, too (hard links)."""


@frozen
class SourceTree:
    """The user's tree, read only.

    Links: one that leads to a place within the tree stays a link, relative, so that in the copy it leads to the
    copy. One that leads out of the tree is followed and what it leads to is copied, because a write through such a link
    would reach the user's files. A link to an ancestor of the tree, or one that leads out to nowhere, is left out.
    """

    root: str  # a real path
    warn: Callable[[str, str], None]  # called with a path that is left out, and the reason
    left_out: Collection[str] = ()  # names, at the root alone
    included: Collection[str] = ()  # names of directories that never belong to a tree otherwise, such as node_modules

    def entries(self, notes: Notes | None = None) -> dict[str, Entry]:
        """Path (relative, with `/`) to entry, a directory before what is in it."""
        notes = notes or Notes()
        found: dict[str, Entry] = {}
        pending: list[tuple[str, tuple[str, ...]]] = [("", (self.root,))]
        while pending:
            prefix, above = pending.pop()
            notes.enter(prefix, len(found))
            names = self._names(prefix)
            if prefix and not CACHE_MARKERS.isdisjoint(names) and os.path.basename(prefix[:-1]) not in self.included:
                del found[prefix[:-1]]
                continue
            for name in names:
                entry, real = self.entry(prefix + name, above, notes)
                if entry is None:
                    continue
                found[prefix + name] = entry
                if entry.kind is Kind.DIRECTORY:
                    pending.append((f"{prefix}{name}/", (*above, real) if real else above))
        return found

    def _names(self, prefix: str) -> list[str]:
        try:
            names = os.listdir(f"{self.root}/{prefix}")
            return [name for name in names if not excluded(prefix, name, self.left_out, self.included)]
        except FileNotFoundError:
            return []
        except OSError as error:
            self.warn(prefix or ".", error.strerror or type(error).__name__)
            return []

    def entry(self, path: str, above: tuple[str, ...], notes: Notes) -> tuple[Entry | None, str]:
        """The entry (None: leave it out) and, for what a link leads to outside of the tree, its real path."""
        full = f"{self.root}/{path}"
        try:
            status = os.lstat(full)
            kind = KINDS.get(stat.S_IFMT(status.st_mode))
            if kind is not Kind.LINK:
                if kind is Kind.FILE and status.st_nlink > 1:
                    notes.shared(path)
                return (None if kind is None else Entry.of(status)), ""
            notes.link(path, above)
            target, real = os.readlink(full), os.path.realpath(full)
            if within(real, self.root):
                return Entry.of(status, self._inner_target(path, target, real)), ""
            if any(within(directory, real) for directory in above):
                self.warn(path, "it leads to a directory above it")
                return None, ""
            followed = Entry.of(os.stat(full))
            return (None if followed.kind is Kind.OTHER else followed), real
        except OSError:  # gone since it was listed, or a link to nowhere outside
            return None, ""

    def _inner_target(self, path: str, target: str, real: str) -> str:
        directory = os.path.dirname(path)
        lexical = os.path.normpath(os.path.join(directory, target))
        if not os.path.isabs(target) and lexical != ".." and not lexical.startswith(f"..{os.sep}"):
            return target
        return os.path.relpath(os.path.relpath(real, self.root), directory or ".")


@frozen
class CopyTree:
    """The copy, which is ours to change. Tests may have left anything in it."""

    root: str
    left_out: Collection[str] = ()  # names, at the root alone
    included: Collection[str] = ()  # as of the source

    def entries(self, known: Collection[str]) -> dict[str, Entry]:
        """Path to entry, a directory before what is in it; `known` are the paths of the source."""
        found: dict[str, Entry] = {}
        pending = [""]
        while pending:
            prefix = pending.pop()
            names = os.listdir(f"{self.root}/{prefix}")
            names = [name for name in names if not excluded(prefix, name, self.left_out, self.included)]
            if prefix and prefix[:-1] not in known and not CACHE_MARKERS.isdisjoint(names):
                del found[prefix[:-1]]
                continue
            for name in names:
                full = f"{self.root}/{prefix}{name}"
                status = os.lstat(full)
                target = os.readlink(full) if stat.S_ISLNK(status.st_mode) else ""
                found[prefix + name] = entry = Entry.of(status, target)
                if entry.kind is Kind.DIRECTORY:
                    if entry.mode & stat.S_IRWXU != stat.S_IRWXU:
                        os.chmod(full, stat.S_IRWXU)  # a test has locked it
                    pending.append(f"{prefix}{name}/")
        return found


def walk(root: str | Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk as `os.walk` does, in order, but not into what stays out of a copy, which the lists of names include."""
    for directory, names, files in os.walk(root):
        if directory != os.fspath(root) and not CACHE_MARKERS.isdisjoint(files):
            names.clear()
            continue
        yield directory, sorted(names), sorted(files)
        names[:] = sorted(name for name in names if not excluded(directory, name, ()))


def stamps(places: Iterable[str | Path], suffixes: tuple[str, ...] = ("",)) -> dict[str, Stamp]:
    """Path to stamp of the files in `places`, and of the ones that a copy of a directory among them would have. Blocks.

    So what a link leads to outside of the directory counts, too. `suffixes` are of the files in directories. A link has
    the stamp of what it leads to.
    """
    found = {}
    for place in (os.fspath(place) for place in places):
        entries = SourceTree(os.path.realpath(place), lambda *_: None).entries() if os.path.isdir(place) else {}
        inside = ((f"{place}/{path}", entry) for path, entry in entries.items() if path.endswith(suffixes))
        for path, known in [(place, None), *inside]:
            with contextlib.suppress(OSError):
                entry = Entry.of(os.stat(path)) if known is None or known.kind is Kind.LINK else known
                if entry.kind is not Kind.DIRECTORY:
                    found[path] = entry.stamp
    return found


def excluded(prefix: str, name: str, left_out: Collection[str], included: Collection[str] = ()) -> bool:
    """Whether what is called `name`, in the directory `prefix` (with a `/` at its end), never belongs to a tree.

    `left_out` are names at the root; `included` are names of directories that would be excluded otherwise.
    """
    return (
        (name in IGNORED_DIRS and name not in included)
        or name.startswith(EXCLUDED_PREFIX)
        or name == ACCEPTED
        or (not prefix and name in left_out)
    )


def within(path: str, directory: str) -> bool:
    """Whether `path` is `directory` or below it; both are real paths."""
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


def identity(directory: Path) -> tuple[int, int] | None:
    """Changes when another directory takes the place of this one: a process stays in the one that it was started in."""
    try:
        status = directory.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def clone(source: str, target: str) -> str:
    """Copy a file's bytes and times to `target`, which must not exist; its owner may write it. Returns the digest.

    Blocks are shared where the file system can (reflinks). Raises `OSError`.
    """
    reader = os.open(source, os.O_RDONLY | os.O_NONBLOCK)  # it may be a pipe by now
    try:
        status = os.fstat(reader)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", source)
        mode = stat.S_IMODE(status.st_mode) & 0o777 | stat.S_IRUSR | stat.S_IWUSR
        writer = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            digest = None if _reflink(reader, writer) else _copied(reader, writer, status.st_size)
            masked = stat.S_IMODE(os.fstat(writer).st_mode) != mode
        finally:
            os.close(writer)
    finally:
        os.close(reader)
    if masked:
        os.chmod(target, mode)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    return digest_of(target) if digest is None else digest


def digest_of(file: str) -> str:
    """A digest of the file's bytes; raises `OSError`."""
    with open(file, "rb") as reader:
        return file_digest(reader, partial(blake2b, digest_size=16)).hexdigest()


def _copied(reader: int, writer: int, size: int) -> str:
    """The digest; the file may have more bytes than `size` by now."""
    digest = blake2b(digest_size=16)
    while block := os.read(reader, min(size + 1, BLOCK)):
        digest.update(block)
        rest = memoryview(block)
        while rest:
            rest = rest[os.write(writer, rest) :]
    return digest.hexdigest()


def _reflink(reader: int, writer: int) -> bool:
    if sys.platform != "linux":
        return False
    try:
        ioctl(writer, FICLONE, reader)
    except OSError:  # another file system, or one that can't
        return False
    return True

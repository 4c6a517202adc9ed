"""Makes a copy equal to its source: one look at each tree, and then only what differs is written.

Theory of operation
-------------------
The problem. A copy of the whole project for each request would cost seconds. Yet a copy that is wrong in one file
gives wrong verdicts. Both trees change behind our back: the user saves files in the source, tools and tests write
whatever they like in the copy. And the user's tree must never be written to.

The manifest. Beside the copy lies a list of what it was made of: for each path its kind, the stamp of the source
(times, size, inode, mode), the digest of the bytes that were read, and the stamp of the copy. A *refresh* compares
four things: the source now, the source then, the copy now, the copy then. The usual case is that both stamps are
equal: nothing is read.

The invariants.

- A stamp counts only when it is *old*. A file that was written within one tick of the file system's clock before it
  was read may have been written again with the same stamp. Such a file is read again, and its digest decides. The
  same holds for the copy: a test may write a file right after it was copied, and restore its times.
- What is in the copy but not in the source is deleted first. So nothing is ever written through a link that a test
  has put into the copy: links are deleted, and never followed.
- Nothing in the copy leads to the user's tree. Links that lead out of the tree are followed, and their content is
  copied (`tree.SourceTree`). Files are new files, or share blocks where the file system has reflinks; hard links
  never, since a tool that writes in place would write the user's file.
- Bytecode that was compiled from a replaced file is deleted. Python trusts the time in whole seconds and the size,
  and both may be equal.
- *Overlaid* paths belong to the user of the copy. Their changes in the source are reported, but the copy's files are
  neither written nor deleted. The manifest notes no stamp of theirs, so that all are restored once they are no longer
  overlaid.
- A compiler in the copy goes by times (`compiled`). What is written gets the time of the refresh. A macro or a program
  of the build may have read any file, or the names in a directory, without a word to the compiler: so where anything
  but the text of a source has changed, all files get that time, and the next build is one of a new copy.
- A manifest is saved after a refresh that came to its end, whole or not at all. After a refresh that failed or was
  stopped the old one is still there. Everything that was written since differs from it, and is written again.
"""

# Paths are plain strings here: a refresh looks at every path of both trees, and `pathlib` would double its time.

from __future__ import annotations

import json
import os
import stat
import time
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from threading import Event

from attrs import define, evolve, field, frozen

from msp_bridge.phases import COPYING, Phase
from msp_bridge.toolkit.slot import erase
from msp_bridge.toolkit.tree import CopyTree, Entry, Kind, Stamp, clone, digest_of
from msp_bridge.writing import replace_content

VERSION = 1
GRANULARITY_NS = 2_000_000_000  # the coarsest clock of a file system in use (FAT)
MANY = 200  # files that are worth threads
THREADS = min(4, os.cpu_count() or 1)


class Stopped(Exception):
    """The refresh was stopped before its end."""


@frozen
class Record:
    """One path, as it was copied."""

    kind: Kind
    source: Stamp
    digest: str  # of a file's bytes or a link's target
    seen: int  # when the source was read, ns since the epoch
    copy: Stamp | None  # None: the path is overlaid

    @classmethod
    def of(cls, kind: str, source: list[int], digest: str, seen: int, copy: list[int] | None) -> Record:
        """Read the row of a manifest. Raises ValueError and TypeError."""
        return cls(Kind(kind), _stamp(*source), digest, seen, None if copy is None else _stamp(*copy))

    def vouches_for(self, entry: Entry) -> bool:
        """Whether the stamp alone shows that the source hasn't changed: it must be old, as above."""
        return self.source == entry.stamp and max(self.source[0], self.source[1]) + GRANULARITY_NS < self.seen

    @property
    def is_young(self) -> bool:
        """Whether the copy may have been written since without a change of its stamp.

        Once the source has been looked at again, which is when the copy is, too, it isn't young any more.
        """
        return self.copy is not None and self.copy[0] + GRANULARITY_NS >= self.seen


@define
class Manifest:
    """Path (relative, with `/`) to record, for one source."""

    source: str
    records: dict[str, Record]

    @classmethod
    def load(cls, file: Path, source: str) -> Manifest:
        """Load what was saved; empty when there is nothing, or nothing that can be used for `source`."""
        try:
            saved = json.loads(file.read_bytes())
            if saved["version"] == VERSION and saved["source"] == source:
                return cls(source, {path: Record.of(*row) for path, row in saved["records"].items()})
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass  # made anew: every file is then copied again
        return cls(source, {})

    def save(self, file: Path) -> None:
        """Write it, whole or not at all."""
        rows = {path: (r.kind.value, r.source, r.digest, r.seen, r.copy) for path, r in self.records.items()}
        replace_content(file, json.dumps({"version": VERSION, "source": self.source, "records": rows}))

    def digest(self, left_out: Collection[str]) -> str:
        """A name for the content: equal for equal files, links and rights to execute, wherever they lie."""
        total = blake2b(digest_size=16)
        for path, record in sorted(self.records.items()):
            if path in left_out:
                continue
            line = f"{path}\0{record.kind.value}\0{record.source[4] & 0o111:o}\0{record.digest}\n"
            total.update(line.encode("utf-8", "surrogatepass"))
        return total.hexdigest()

    @property
    def size(self) -> int:
        """Bytes in all files."""
        return sum(record.source[2] for record in self.records.values() if record.kind is Kind.FILE)


def _stamp(modified: int, changed: int, size: int, inode: int, mode: int) -> Stamp:
    return modified, changed, size, inode, mode


@define(eq=False)
class Refresh:
    """One refresh of the copy `target` from the source `root`. `old` is what the copy was made of."""

    root: str  # a real path
    target: str
    source: dict[str, Entry]  # what stands in the source
    old: Manifest
    overlaid: Collection[str]
    left_out: Collection[str]
    included: Collection[str]
    warn: Callable[[str, str], None]  # called with a path that can't be copied, and the reason
    stop: Event
    compiled: str = ""  # how the names of sources end that a compiler in the copy builds again if they are newer
    manifest: Manifest = field(init=False)  # what the copy is made of now
    changed: set[str] = field(factory=set, init=False)
    wrote: bool = field(default=False, init=False)  # whether the manifest differs from the old one
    _to_copy: deque[tuple[str, Entry, Record | None]] = field(factory=deque, init=False)

    def __attrs_post_init__(self) -> None:
        self.manifest = Manifest(self.root, {})

    def run(self) -> None:
        """Raises `OSError` when the copy can't be written, and `Stopped`."""
        source = self.source
        copy = CopyTree(self.target, self.left_out, self.included).entries(source.keys())
        self._delete_surplus(source, copy)
        copying = Phase(COPYING, len(source))
        for number, (path, entry) in enumerate(source.items()):
            if self.stop.is_set():
                raise Stopped
            copying.reached(number)
            self._update(path, entry, copy.get(path))
        self._copy_files(copying)
        for path, record in self.old.records.items():
            if path not in self.manifest.records:
                self.wrote = True
                if record.kind is not Kind.DIRECTORY:
                    self.changed.add(path)
        if self.compiled and self.old.records and not all(map(self._is_text_of_source, self.changed)):
            self._renew_times()

    def _is_text_of_source(self, path: str) -> bool:
        """Whether what has changed at `path` is the text of a source alone."""
        return path.endswith(self.compiled) and path in self.old.records and path in self.manifest.records

    def _renew_times(self) -> None:
        for path, record in self.manifest.records.items():
            if record.copy is not None:
                target = f"{self.target}/{path}"
                os.utime(target)
                self._keep(path, evolve(record, copy=Entry.of(os.lstat(target)).stamp))

    def _delete_surplus(self, source: dict[str, Entry], copy: dict[str, Entry]) -> None:
        """Delete from the copy what isn't in the source, or is something else there."""
        for path in list(copy):
            wanted = source.get(path)
            if (wanted and wanted.kind is copy[path].kind) or is_overlaid(path, self.overlaid):
                continue
            if copy[path].kind is Kind.DIRECTORY and any(inner.startswith(f"{path}/") for inner in self.overlaid):
                continue
            if os.path.lexists(f"{self.target}/{path}"):  # else it went with its directory
                erase(f"{self.target}/{path}")
            del copy[path]

    def _update(self, path: str, entry: Entry, there: Entry | None) -> None:
        if entry.kind is Kind.DIRECTORY:
            self._update_directory(path, entry, there)
            return
        seen = time.time_ns()
        old = self.old.records.get(path)
        if is_overlaid(path, self.overlaid):
            self._note_overlaid(path, entry, old, seen)
        elif entry.kind is Kind.LINK:
            if there is None or there.target != entry.target:
                if there is not None:
                    os.unlink(f"{self.target}/{path}")
                os.symlink(entry.target, f"{self.target}/{path}")
            self._note(path, Record(Kind.LINK, entry.stamp, _text_digest(entry.target), seen, None), old)
        elif old and there and self._is_intact(path, there, old) and self._is_unchanged(path, entry, old, seen):
            record = self.manifest.records[path]  # the usual case
            if record.copy != there.stamp or record.is_young:
                self._keep(path, evolve(record, copy=there.stamp, seen=seen))
        else:
            self._to_copy.append((path, entry, old))

    def _copy_files(self, copying: Phase) -> None:
        """Copy the files, many of them in threads: most of the time goes to the kernel. An error ends all threads."""
        others = THREADS - 1 if len(self._to_copy) > MANY else 0
        with ThreadPoolExecutor(THREADS) as threads:
            running = [threads.submit(self._copy_all) for _ in range(others)]
            self._copy_all(copying)
        for other in running:
            other.result()

    def _copy_all(self, copying: Phase | None = None) -> None:
        """Copy until nothing is left."""
        try:
            while self._to_copy:
                try:
                    path, entry, old = self._to_copy.popleft()
                except IndexError:  # another thread has taken the last one
                    return
                if self.stop.is_set():
                    raise Stopped
                if copying is not None:
                    copying.reached(len(self.source) - len(self._to_copy))
                self._update_file(path, entry, old, time.time_ns())
        except BaseException:
            self._to_copy.clear()
            raise

    def _update_directory(self, path: str, entry: Entry, there: Entry | None) -> None:
        mode = entry.mode & 0o777 | stat.S_IRWXU
        if there is None:
            os.makedirs(f"{self.target}/{path}", exist_ok=True)
        if there is None or there.mode != mode:
            os.chmod(f"{self.target}/{path}", mode)
        stamp = (0, 0, 0, 0, entry.stamp[4])  # its times change with what is in it
        self.manifest.records[path] = Record(Kind.DIRECTORY, stamp, "", 0, None)
        self.wrote = self.wrote or path not in self.old.records

    def _update_file(self, path: str, entry: Entry, old: Record | None, seen: int) -> None:
        source, target = f"{self.root}/{path}", f"{self.target}/{path}"
        if os.path.lexists(target):
            os.unlink(target)
        try:
            digest = clone(source, target)
        except OSError as error:
            if error.filename != source:
                raise
            if not isinstance(error, FileNotFoundError):  # else it has vanished
                self.warn(path, error.strerror or type(error).__name__)
            return
        if self.compiled:
            os.utime(target)
        if path.endswith(".py"):
            _delete_bytecode(target)
        self._note(path, Record(Kind.FILE, entry.stamp, digest, seen, Entry.of(os.lstat(target)).stamp), old)

    def _note_overlaid(self, path: str, entry: Entry, old: Record | None, seen: int) -> None:
        """Note what an overlaid path is in the source, and leave the copy alone."""
        if entry.kind is Kind.LINK:
            self._note(path, Record(Kind.LINK, entry.stamp, _text_digest(entry.target), seen, None), old)
        elif old is None or old.copy is not None or not self._is_unchanged(path, entry, old, seen):
            try:
                digest = digest_of(f"{self.root}/{path}")
            except OSError:
                return
            self._note(path, Record(Kind.FILE, entry.stamp, digest, seen, None), old)

    def _is_intact(self, path: str, there: Entry, old: Record) -> bool:
        """Whether the copy is as it was made, or was written and restored, its time included."""
        if old.copy is None:
            return False
        if old.copy == there.stamp and not old.is_young:
            return True
        same = (old.copy[0], old.copy[2], old.copy[4]) == (there.stamp[0], there.stamp[2], there.stamp[4])
        return same and digest_of(f"{self.target}/{path}") == old.digest

    def _is_unchanged(self, path: str, entry: Entry, old: Record, seen: int) -> bool:
        """Whether the source is as it was; its bytes decide where the stamp doesn't. If so, notes it."""
        if old.kind is not entry.kind or old.source[4] != entry.stamp[4]:
            return False
        if old.vouches_for(entry):
            self.manifest.records[path] = old
            return True
        try:
            if digest_of(f"{self.root}/{path}") != old.digest:
                return False
        except OSError:
            return False
        self._keep(path, evolve(old, source=entry.stamp, seen=seen))
        return True

    def _note(self, path: str, record: Record, old: Record | None) -> None:
        """Note what may have changed since the last refresh."""
        before = old and (old.kind, old.digest, old.source[4])
        if before != (record.kind, record.digest, record.source[4]):
            self.changed.add(path)
        if record != old:
            self._keep(path, record)
        else:
            self.manifest.records[path] = record

    def _keep(self, path: str, record: Record) -> None:
        self.manifest.records[path] = record
        self.wrote = True


def is_overlaid(path: str, overlaid: Collection[str]) -> bool:
    """Whether `path`, or a directory that it is in, is among `overlaid`."""
    if not overlaid:
        return False
    cuts = (at for at, character in enumerate(path) if character == "/")
    return path in overlaid or any(path[: at + 1] in overlaid for at in cuts)


def _delete_bytecode(file: str) -> None:
    directory, name = os.path.split(file)
    try:
        compiled = os.listdir(f"{directory}/__pycache__")
    except (FileNotFoundError, NotADirectoryError):
        return
    for other in compiled:
        if other.startswith(f"{name[:-3]}.") and other.endswith(".pyc"):
            os.unlink(f"{directory}/__pycache__/{other}")


def _text_digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()

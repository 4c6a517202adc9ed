"""A snapshot of the project: a private copy at the client, sent file by file, and the same tree at each worker.

Files are named by their content. A worker keeps files that it got in a store, asks only for what that lacks, and writes
the tree from it. The tree is somebody's project as far as the adapter is concerned, so nothing but this module writes
to it; what it was made of is noted beside it, and removed while it is changed.

What stays on a worker's disk is bounded: the store by `STORE_SIZE`, trees that nobody uses (slots of the cache) by
`TREES_SIZE`, both by `DAYS`. The longest unused goes first. `ContentStore.sweep` and `Slot.sweep` see to it.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from attrs import define, frozen

from msp_bridge import reading
from msp_bridge.cluster.wire import SnapshotEntry, is_within_tree
from msp_bridge.errors import ToolError
from msp_bridge.toolkit import Sandbox
from msp_bridge.toolkit.slot import DAY, erase, unwritable
from msp_bridge.toolkit.tree import Kind
from msp_bridge.writing import replace_content

PIECE = 4 << 20  # bytes in one message, unless one file has more
STORE_SIZE = 4 << 30  # bytes that a worker keeps of files
TREES_SIZE = 8 << 30  # bytes of trees that nobody uses, with what adapters keep beside them
DAYS = 14.0  # for which what nobody uses is kept
NEEDED_S = 3600.0  # a file that was asked for since then may be about to be written into a tree


@frozen
class Snapshot:
    """The tree as it was when the request began; a request tests it. Its files are read from `directory`."""

    id: str
    directory: Path
    entries: Mapping[str, SnapshotEntry]

    @classmethod
    def of(cls, sandbox: Sandbox, exclude: Sequence[str] = ()) -> Snapshot:
        """Make the snapshot of a sandbox that was just refreshed, and that nobody else uses. Blocks.

        What `exclude` matches is left out: a pattern with `*`, `?` and `[…]`, of the name of a file or directory. One
        with a `/` before its end is of the path from the root; its `*` stands for several directories, too.
        """
        entries = {}
        for path, record in sandbox.records.items():
            if _is_excluded(path, exclude):
                continue
            content = os.readlink(sandbox.path / path) if record.kind is Kind.LINK else record.digest
            entries[path] = SnapshotEntry(record.kind.value, content, record.source[4] & 0o777)
        digest = reading.digest_of(repr((sandbox.digest, *exclude)).encode("utf-8", "surrogatepass"))
        return cls(f"{sandbox.path.name}-{digest}", sandbox.path, entries)

    def pieces(self, digests: Collection[str]) -> Iterator[dict[str, bytes]]:
        """The files with these digests, compressed, in messages of some megabytes. Blocks."""
        piece: dict[str, bytes] = {}
        size = 0
        wanted = set(digests)
        places = {entry.content: path for path, entry in self.entries.items() if entry.content in wanted}
        for digest, path in places.items():
            piece[digest] = zlib.compress(reading.content(self.directory / path), 1)
            size += len(piece[digest])
            if size >= PIECE:
                yield piece
                piece, size = {}, 0
        if piece:
            yield piece

    def digest_of(self, path: str) -> str | None:
        """The `reading.digest` of the file when the snapshot was taken."""
        return reading.digest(self.directory / path)


def _is_excluded(path: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern matches the path, or a directory that it lies in."""
    places = [path, *(above.as_posix() for above in PurePosixPath(path).parents if above.name)] if patterns else []
    return any(
        fnmatchcase(place if "/" in pattern.rstrip("/") else place.rpartition("/")[2], pattern.strip("/"))
        for pattern in patterns
        for place in places
    )


@define(eq=False)
class Traffic:
    """Bytes and files that were sent to one worker before it could test."""

    files: int = 0
    bytes: int = 0  # compressed


@define
class ContentStore:
    """Files by the digest of their bytes, in one directory; workers on one machine may share it."""

    directory: Path

    def lacking(self, entries: Iterable[SnapshotEntry]) -> list[str]:
        """The digests of files that are not here; files that are here count as used now."""
        missing = []
        for digest in {entry.content for entry in entries if entry.kind == Kind.FILE.value}:
            try:
                os.utime(self.directory / digest)
            except OSError:
                missing.append(digest)
        return missing

    def keep(self, files: Mapping[str, bytes]) -> None:
        """Write compressed files, each whole or not at all. Raises ToolError."""
        try:
            for digest, compressed in files.items():
                content = zlib.decompress(compressed)
                if reading.digest_of(content) != digest:
                    raise ToolError("a file of the snapshot arrived damaged", "run it again")
                replace_content(self.directory / digest, content)
        except OSError as error:
            raise unwritable(self.directory, error) from error

    def read(self, digest: str) -> bytes:
        """Its content. Raises ToolError when it is not here, or not as it was: then it is wanted again."""
        file = self.directory / digest
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            raise ToolError(f"{file} was deleted before it was read", "run it again") from None
        if reading.digest_of(content) != digest:
            file.unlink(missing_ok=True)
            raise ToolError(f"{file} is damaged", "run it again")
        return content

    def sweep(self, size: int = STORE_SIZE) -> None:
        """Delete what nobody asked for in `DAYS`, and the longest unused until `size` bytes are left.

        What was asked for in the last `NEEDED_S` stays, whatever its size. Raises OSError.
        """
        total, now = 0, time.time()
        for status, path in self._last_used_first():
            total += status.st_size
            unused = now - status.st_mtime
            if unused > NEEDED_S and (total > size or unused > DAYS * DAY):
                with contextlib.suppress(FileNotFoundError):  # another worker sweeps, too
                    os.unlink(path)

    def _last_used_first(self) -> list[tuple[os.stat_result, str]]:
        files = []
        with os.scandir(self.directory) as found:
            for one in found:
                with contextlib.suppress(FileNotFoundError):
                    files.append((one.stat(), one.path))
        return sorted(files, key=lambda one: -one[0].st_mtime)


@define
class SnapshotTree:
    """The tree of a snapshot at a worker, in the directory `root`; `linked` are entries of the worker's own in it."""

    root: Path
    store: ContentStore
    linked: Path | None = None  # a directory: what the root of the snapshot lacks of its entries is linked there

    def materialise(self, entries: Mapping[str, SnapshotEntry]) -> None:
        """Make it equal to `entries`; what is so already is not touched. Blocks. Raises ToolError."""
        try:
            self._materialise(entries)
        except OSError as error:
            raise unwritable(self.root, error) from error

    def _materialise(self, entries: Mapping[str, SnapshotEntry]) -> None:
        old = self._noted()
        if old is None and self.root.exists():
            erase(str(self.root))
        self.root.mkdir(parents=True, exist_ok=True)
        if old == entries and old is not None:
            return
        self._note_file.unlink(missing_ok=True)
        old = old or {}
        for path in sorted(old, reverse=True):  # what is in a directory before the directory
            if old[path] != entries.get(path):
                self._remove(path, old[path], entries.get(path))
        for path in sorted(entries):
            if old.get(path) != entries[path]:
                self._write(path, entries[path])
        for own in sorted(self.linked.iterdir()) if self.linked is not None else ():
            if not os.path.lexists(self.root / own.name):
                (self.root / own.name).symlink_to(own)
        rows = {path: (entry.kind, entry.content, entry.mode) for path, entry in entries.items()}
        self._note_file.write_text(json.dumps(rows), encoding="ascii")

    @property
    def _note_file(self) -> Path:
        return self.root.parent / "snapshot.json"

    def _noted(self) -> dict[str, SnapshotEntry] | None:
        try:
            rows = reading.json_value(self._note_file)
            return {path: SnapshotEntry(*row) for path, row in rows.items()} if self.root.is_dir() else None
        except (OSError, ValueError, TypeError, AttributeError):
            return None

    def _remove(self, path: str, old: SnapshotEntry, new: SnapshotEntry | None) -> None:
        stays = new is not None and new.kind == old.kind == Kind.DIRECTORY.value
        if not stays and os.path.lexists(self.root / path):
            erase(str(self.root / path))

    def _write(self, path: str, entry: SnapshotEntry) -> None:
        if not is_within_tree(path):
            raise ToolError(
                f"the snapshot has a path outside of the project, {path!r}", "look for a link that leads out"
            )
        place = self.root / path
        if place.is_symlink():  # the worker's own, of an earlier snapshot
            place.unlink()
        if entry.kind == Kind.LINK.value:
            place.symlink_to(entry.content)
        elif entry.kind == Kind.DIRECTORY.value:
            place.mkdir(exist_ok=True)
            place.chmod(entry.mode | 0o700)
        else:
            place.write_bytes(self.store.read(entry.content))
            place.chmod(entry.mode | 0o600)

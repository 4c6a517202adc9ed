"""Refresh: how one look at the source and one at the copy make the copy equal to the source."""

# Paths are plain strings here, for a refresh looks at every one of the tree twice.

from __future__ import annotations

import os
import stat
import time
from glob import escape, iglob
from hashlib import blake2b
from typing import Protocol

from attrs import define, evolve, field

from msp_bridge.toolkit.clone import clone, digest_of
from msp_bridge.toolkit.manifest import Manifest, Record
from msp_bridge.toolkit.slot import erase
from msp_bridge.toolkit.tree import CopyTree, Entry, Kind, SourceTree


class Owner(Protocol):
    """What a refresh asks of the workspace."""

    @property
    def path(self) -> os.PathLike[str]:
        """The directory of the copy."""
        ...

    @property
    def left_out(self) -> frozenset[str]:
        """Names that belong to no tree when they stand at its root."""
        ...

    def is_overlaid(self, path: str) -> bool:
        """Whether `path` is left alone."""
        ...

    def holds_overlaid(self, directory: str) -> bool:
        """Whether something in `directory` is left alone."""
        ...

    def complain(self, path: str, reason: str) -> None:
        """Say that `path` can't be copied."""
        ...


@define(eq=False)
class Refresh:
    """One run of `refresh`: `old` is what the copy was made of, `manifest` what it is made of now."""

    shadow: Owner
    root: str
    old: Manifest
    source: dict[str, Entry] = field(factory=dict, init=False)  # what stood in the source when it was looked at
    manifest: Manifest = field(init=False)
    changed: set[str] = field(factory=set, init=False)
    wrote: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.manifest = Manifest(self.root, {})

    def run(self) -> None:
        """Do it; raises `OSError` when the copy can't be written."""
        left_out = self.shadow.left_out
        self.source = source = SourceTree(self.root, self.shadow.complain, left_out).entries()
        copy = CopyTree(os.fspath(self.shadow.path), left_out).entries(source.keys())
        self._clear(source, copy)
        for path, entry in source.items():
            self._bring(path, entry, copy.get(path))
        for path, record in self.old.records.items():
            if path not in self.manifest.records:
                self.wrote = True
                if record.kind is not Kind.DIRECTORY:
                    self.changed.add(path)

    def _clear(self, source: dict[str, Entry], copy: dict[str, Entry]) -> None:
        """Delete from the copy what isn't in the source, or is something else there."""
        for path in list(copy):
            wanted = source.get(path)
            if (wanted and wanted.kind is copy[path].kind) or self.shadow.is_overlaid(path):
                continue
            if copy[path].kind is Kind.DIRECTORY and self.shadow.holds_overlaid(path):
                continue
            if os.path.lexists(self._target(path)):  # else it went with its directory
                erase(self._target(path))
            del copy[path]

    def _bring(self, path: str, entry: Entry, there: Entry | None) -> None:
        if entry.kind is Kind.DIRECTORY:
            self._bring_directory(path, entry, there)
            return
        seen = time.time_ns()
        old = self.old.records.get(path)
        if self.shadow.is_overlaid(path):
            self._look(path, entry, old, seen)
        elif entry.kind is Kind.LINK:
            self._bring_link(path, entry, there, old, seen)
        elif old and there and self._intact(path, there, old) and self._unchanged(path, entry, old, seen):
            self._settle(path, there)  # the usual case
        else:
            self._bring_file(path, entry, old, seen)

    def _bring_directory(self, path: str, entry: Entry, there: Entry | None) -> None:
        mode = entry.mode & 0o777 | stat.S_IRWXU
        if there is None:
            os.makedirs(self._target(path), exist_ok=True)
        if there is None or there.mode != mode:
            os.chmod(self._target(path), mode)
        stamp = (0, 0, 0, 0, entry.stamp[4])  # its times change with what is in it
        self.manifest.records[path] = Record(Kind.DIRECTORY, stamp, "", 0, None)
        self.wrote = self.wrote or path not in self.old.records

    def _bring_link(self, path: str, entry: Entry, there: Entry | None, old: Record | None, seen: int) -> None:
        if there is None or there.target != entry.target:
            if there is not None:
                os.unlink(self._target(path))
            os.symlink(entry.target, self._target(path))
        self._note(path, Record(Kind.LINK, entry.stamp, _text_digest(entry.target), seen, None), old)

    def _bring_file(self, path: str, entry: Entry, old: Record | None, seen: int) -> None:
        target = self._target(path)
        if os.path.lexists(target):
            os.unlink(target)
        try:
            digest = clone(f"{self.root}/{path}", target)
        except OSError as error:
            if error.filename != f"{self.root}/{path}":
                raise
            if not isinstance(error, FileNotFoundError):  # else it has vanished
                self.shadow.complain(path, error.strerror or type(error).__name__)
            return
        self._forget_bytecode(path)
        self._note(path, Record(Kind.FILE, entry.stamp, digest, seen, Entry.of(os.lstat(target)).stamp), old)

    def _look(self, path: str, entry: Entry, old: Record | None, seen: int) -> None:
        """Note what an overlaid path is in the source, and leave the copy alone."""
        if entry.kind is Kind.LINK:
            self._note(path, Record(Kind.LINK, entry.stamp, _text_digest(entry.target), seen, None), old)
        elif old is None or old.copy is not None or not self._unchanged(path, entry, old, seen):
            try:
                digest = digest_of(f"{self.root}/{path}")
            except OSError:
                return
            self._note(path, Record(Kind.FILE, entry.stamp, digest, seen, None), old)

    def _intact(self, path: str, there: Entry, old: Record) -> bool:
        """Whether the copy is as it was made, or was written and put back, its time included."""
        if old.copy is None:
            return False
        if old.copy == there.stamp and not old.is_young:
            return True
        same = (old.copy[0], old.copy[2], old.copy[4]) == (there.stamp[0], there.stamp[2], there.stamp[4])
        return same and digest_of(self._target(path)) == old.digest

    def _settle(self, path: str, there: Entry) -> None:
        record = self.manifest.records[path]
        if record.copy != there.stamp:
            self.manifest.records[path] = evolve(record, copy=there.stamp)
            self.wrote = True

    def _unchanged(self, path: str, entry: Entry, old: Record, seen: int) -> bool:
        """Whether the source is as it was, with a look at its bytes when the stamp doesn't tell; notes that it is."""
        if old.kind is not entry.kind or old.source[4] != entry.stamp[4]:
            return False
        self.manifest.records[path] = old
        if old.vouches_for(entry):
            return True
        try:
            same = digest_of(f"{self.root}/{path}") == old.digest
        except OSError:
            same = False
        if same:
            self.manifest.seen_again(path, entry, seen)
            self.wrote = True
        else:
            del self.manifest.records[path]
        return same

    def _note(self, path: str, record: Record, old: Record | None) -> None:
        self.manifest.records[path] = record
        before = old and (old.kind, old.digest, old.source[4])
        if before != (record.kind, record.digest, record.source[4]):
            self.changed.add(path)
        self.wrote = self.wrote or record != old

    def _forget_bytecode(self, path: str) -> None:
        """Delete what was compiled from `path`: Python trusts whole seconds and the size, which may well be equal."""
        if path.endswith(".py"):
            directory, name = os.path.split(self._target(path))
            for compiled in iglob(f"{escape(directory)}/__pycache__/{escape(name[:-3])}.*.pyc"):
                os.unlink(compiled)

    def _target(self, path: str) -> str:
        return f"{os.fspath(self.shadow.path)}/{path}"


def _text_digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()

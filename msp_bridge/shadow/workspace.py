"""ShadowWorkspace: a private copy of the project that a tool may write to, brought up to date file by file."""

# ruff: noqa: PTH - plain strings: a refresh handles every path of the tree twice

from __future__ import annotations

import errno
import logging
import os
import stat
import time
from glob import escape, iglob
from hashlib import blake2b
from pathlib import Path
from typing import Self

from attrs import define, field

from msp_bridge.errors import ConfigurationError, ToolError
from msp_bridge.shadow.clone import clone, digest_of
from msp_bridge.shadow.manifest import Manifest, Record
from msp_bridge.shadow.slot import Slot, erase
from msp_bridge.shadow.tree import CopyTree, Entry, Kind, SourceTree, within

logger = logging.getLogger(__name__)

TICK = 0.02  # seconds: longer than a kernel's file clock stands still


@define(eq=False)
class ShadowWorkspace:
    """A copy at `path` of the project at `source`. Everything here blocks: call it in a thread, and one call at a time.

    What is copied: every file but version control, virtual environments, `node_modules`, caches and mutmut's
    `mutants`; `tree.SourceTree` says what becomes of links. Nothing in the copy leads back to the user's tree, so no
    environment is linked either: call its interpreter by its absolute path. Files get their times and permissions,
    and the right for us to write them. Files that can't be read are left out, with a warning in the log.

    What is overlaid: paths (relative, with `/`; a directory with a `/` at its end) that belong to whoever uses the
    copy. `refresh` still reports their changes in the source, but neither writes nor deletes them. Whatever else was
    written in the copy is put back or deleted by `refresh`, except in the places that are never copied.

    Errors: `ToolError` when there's no room for the copy, `ConfigurationError` when it would lie in the project.
    """

    source: Path
    path: Path  # the directory of the copy; its parent is ours too
    overlaid: set[str] = field(factory=set)
    _slot: Slot | None = None
    _manifest: Manifest | None = field(default=None, init=False)
    _complained: set[str] = field(factory=set, init=False)

    @classmethod
    def claim(
        cls, home: Path, source: Path, name: str = "copy", *, limit: int = 16, days: float = 14, size: int = 8 << 30
    ) -> Self:
        """The first copy below `home` that no other process uses: `home/<name>-<number>/<the source's name>`.

        Call `close` to give it back; the copy stays for the next one. Copies that nobody has claimed for `days` are
        deleted, and the oldest when all that nobody uses take more than `size` bytes. At most `limit` of one name.
        """
        slot = Slot.claim(home, name, limit)
        Slot.sweep(home, days=days, size=size)
        return cls(source, slot.directory / (source.name or "root"), slot=slot)

    def close(self) -> None:
        """Let other processes claim the copy; idempotent."""
        if self._slot is not None:
            self._slot.release()

    @property
    def digest(self) -> str:
        """A name for the source's content at the last `refresh`, the same on every machine."""
        return self._manifest.digest if self._manifest else ""

    def refresh(self) -> frozenset[str]:
        """Make the copy equal to the source again.

        Returns the files (relative, with `/`) that changed, appeared or vanished in the source since the copy was
        last refreshed, by whichever process; all of them the first time.
        """
        root = os.path.realpath(self.source)
        if within(os.path.realpath(self.path), root):
            raise ConfigurationError(
                f"the cache {self.path.parent} lies in the project, which is never written to: "
                "set MSP_BRIDGE_CACHE to a directory elsewhere"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        manifest = self._manifest or Manifest.load(self._manifest_file, root)
        refresh = _Refresh(self, root, manifest)
        try:
            refresh.run()
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise ToolError(f"no room for a private copy: free some space in {self.path.parent}") from error
            raise ToolError(f"the copy {self.path} can't be written: {error}; delete it and try again") from error
        self._manifest = refresh.manifest
        if refresh.wrote:
            self._manifest.save(self._manifest_file)
            time.sleep(TICK)  # whatever is written from now on has a later stamp than what we wrote
        if self._slot is not None:
            self._slot.note_size(self._manifest.size)
        return frozenset(refresh.changed)

    @property
    def _manifest_file(self) -> Path:
        return self.path.parent / "manifest.json"

    def is_overlaid(self, path: str) -> bool:
        """Whether `path`, or a directory that it is in, was declared in `overlaid`."""
        if not self.overlaid:
            return False
        cuts = (at for at, character in enumerate(path) if character == "/")
        return path in self.overlaid or any(path[: at + 1] in self.overlaid for at in cuts)

    def holds_overlaid(self, directory: str) -> bool:
        """Whether something in `directory`, or all of it, was declared in `overlaid`."""
        return any(path.startswith(f"{directory}/") for path in self.overlaid)

    def complain(self, path: str, reason: str) -> None:
        """Log, once, that `path` can't be copied."""
        if path not in self._complained:
            self._complained.add(path)
            logger.warning("%s is left out of the copy: %s", path, reason)


@define(eq=False)
class _Refresh:
    """One run of `refresh`: `old` is what the copy was made of, `manifest` what it is made of now."""

    shadow: ShadowWorkspace
    root: str
    old: Manifest
    manifest: Manifest = field(init=False)
    changed: set[str] = field(factory=set, init=False)
    wrote: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.manifest = Manifest(self.root, {})

    def run(self) -> None:
        source = SourceTree(self.root).entries()
        copy = CopyTree(str(self.shadow.path)).entries(source.keys())
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
        elif old and there and old.copy == there.stamp and self._unchanged(path, entry, old, seen):
            pass  # the usual case
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
        return f"{self.shadow.path}/{path}"


def _text_digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()

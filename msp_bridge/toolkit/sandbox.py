"""Sandbox: a private copy of the project that a tool may write to, brought up to date file by file."""

import errno
import logging
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from threading import Event, Lock
from typing import Self

from attrs import define, field

from msp_bridge.errors import ConfigurationError
from msp_bridge.toolkit.slot import Slot, erase, writes_in
from msp_bridge.toolkit.sync import Manifest, Record, Refresh, is_overlaid
from msp_bridge.toolkit.tree import Entry, Kind, digest_of, identity, within
from msp_bridge.toolkit.watch import TreeLooks

logger = logging.getLogger(__name__)

FATAL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES})  # a new copy would meet them, too


@define(eq=False)
class Sandbox:
    """A copy at `path` of the project at `source`. `claim`, `refresh` and `close` block: call them in a thread.

    A call waits for the one before it, also for one that nobody waits for any more because its task was cancelled.

    What is copied: every file but version control, virtual environments, `node_modules`, caches (as far as `included`
    doesn't name them), and at the root what `left_out` names; `tree.SourceTree` says what becomes of links. Nothing
    in the copy leads back to the user's tree, so no environment is linked either: call its interpreter by its
    absolute path. Files get their permissions, and the right for us to write them, and their times, unless `compiled`
    says how the names of sources end for a compiler that goes by times: then each has the time at which it was copied
    or put back, and all have a new one where more than the text of a source has changed. Files that can't be read are
    left out, with a warning in the log.

    What is overlaid: paths (relative, with `/`; a directory with a `/` at its end) that belong to the user of
    the copy. `refresh` still reports their changes in the source, but neither writes nor deletes them. Whatever else
    was written in the copy is put back or deleted by `refresh`, except in the places that are never copied.

    Errors: `ToolError` when there's no room for the copy, `ConfigurationError` when it would lie in the project.
    """

    source: Path
    path: Path  # the directory of the copy; its parent is ours too
    overlaid: set[str] = field(factory=set)
    # What the tool itself makes in the root of a project; it may in the copy, too:
    left_out: frozenset[str] = frozenset()
    included: frozenset[str] = frozenset()  # of what isn't copied otherwise, by the names of the directories
    compiled: str = ""
    _slot: Slot | None = None
    _manifest: Manifest | None = field(default=None, init=False)
    _seen: dict[str, Entry] = field(factory=dict, init=False)  # the source as it was looked at last
    _looks: TreeLooks | None = field(default=None, init=False)
    _warned: set[str] = field(factory=set, init=False)
    _turn: Lock = field(factory=Lock, init=False)

    @classmethod
    def claim(
        cls,
        home: Path,
        source: Path,
        name: str = "copy",
        *,
        left_out: frozenset[str] = frozenset(),
        included: frozenset[str] = frozenset(),
        compiled: str = "",
        limit: int = 16,
        days: float = 14,
        size: int = 8 << 30,
    ) -> Self:
        """The first copy below `home` that no other process uses: `home/<name>-<number>/<the source's name>`.

        Call `close` to give it back; the copy stays for the next one. Copies that nobody has claimed for `days` are
        deleted, and the oldest when all that nobody uses take more than `size` bytes. At most `limit` of one name.
        """
        slot = Slot.claim(home, name, limit)
        Slot.sweep(home, days=days, size=size)
        path = slot.directory / (source.name or "root")
        return cls(source, path, left_out=left_out, included=included, compiled=compiled, slot=slot)

    def close(self) -> None:
        """Let other processes claim the copy; idempotent."""
        with self._turn:
            if self._looks is not None:
                self._looks.close()
            if self._slot is not None:
                self._slot.release()

    @property
    def digest(self) -> str:
        """A name for the source's content at the last `refresh`, the same on every machine."""
        return self.digest_without(())

    def digest_without(self, paths: Collection[str]) -> str:
        """The same but for some of the files."""
        return self._manifest.digest(paths) if self._manifest else ""

    @property
    def records(self) -> Mapping[str, Record]:
        """Path (relative, with `/`) to what was copied at the last `refresh`, a directory before what is in it."""
        return self._manifest.records if self._manifest else {}

    @property
    def size(self) -> int:
        """The size of the source's content at the last `refresh`, in bytes."""
        return self._manifest.size if self._manifest else 0

    def note_size(self, size: int) -> None:
        """Count `size` bytes when room is made for copies, because there is more beside this one. Raises OSError."""
        if self._slot is not None:
            self._slot.note_size(size)

    @property
    def identity(self) -> tuple[int, int] | None:
        """Changes when the copy had to be made anew: a process stays in the directory that it was started in."""
        return identity(self.path)

    def refresh(self, stop: Event | None = None) -> frozenset[str]:
        """Make the copy equal to the source again.

        Returns the files (relative, with `/`) that changed, appeared or vanished in the source since the copy was
        last refreshed, by whichever process; all of them the first time. Raises `sync.Stopped` soon after `stop` is
        set.
        """
        with self._turn:
            return self._refresh(stop or Event())

    def is_current(self) -> bool:
        """Whether nothing in the source was touched since the last `refresh`: a look at each file, without reading any.

        Unlike `refresh` it writes nothing, so tests may be running in the copy.
        """
        return bool(self._seen) and self._look() == self._seen

    def is_touched(self, path: str) -> bool:
        """Whether this one file was written, replaced or removed since the last `refresh`. Cheap: one `stat`.

        False for what is no file, such as a link: see `changed`.
        """
        seen = self._seen.get(path)
        if seen is None or seen.kind is not Kind.FILE:
            return False
        try:
            return Entry.of(os.stat(self.source / path)) != seen
        except OSError:
            return True

    def changed(self, ignored: Collection[str] = ()) -> frozenset[str]:
        """The paths that are not as they were at the last `refresh`, as far as they are not `ignored`.

        Like `is_current` it writes nothing. It reads the files whose times alone have changed: their bytes decide.
        """
        with self._turn:
            now, then = self._look(), self._seen
            if now is then or now == then:  # the usual case
                return frozenset()
            touched = {path for path in {*now, *then}.difference(ignored) if now.get(path) != then.get(path)}
            differing = frozenset(path for path in touched if self._differs(path, now.get(path), then.get(path)))
            self._seen = then | {path: now[path] for path in touched - differing}  # their bytes needn't be read again
            return differing

    def _differs(self, path: str, now: Entry | None, then: Entry | None) -> bool:
        if now is None or then is None or now.kind is not then.kind or now.mode != then.mode:
            return True
        if now.kind is not Kind.FILE:
            return now.target != then.target
        record = self._manifest.records.get(path) if self._manifest else None
        try:
            return (
                record is None
                or record.source[2] != now.stamp[2]  # the size
                or record.digest != digest_of(os.path.join(self.source, path))
            )
        except OSError:
            return True

    def _look(self) -> dict[str, Entry]:
        root, looks = os.path.realpath(self.source), self._looks
        if looks is None or looks.root != root:
            if looks is not None:
                looks.close()
            self._looks = looks = TreeLooks(root, self.warn, self.left_out, self.included)
        return looks.entries()

    def _refresh(self, stop: Event) -> frozenset[str]:
        root = os.path.realpath(self.source)
        if within(os.path.realpath(self.path), root):
            raise ConfigurationError(
                f"the cache {self.path.parent} lies in the project, which is never written to",
                "set MSP_BRIDGE_CACHE to a directory elsewhere",
            )
        with writes_in(self.path.parent):
            if self._slot is not None:
                self._slot.hold()
            try:
                refresh = self._run(root, stop)
            except OSError as error:
                if error.errno in FATAL:
                    raise
                logger.warning("the copy %s is damaged and is made anew: %s", self.path, error)
                self._manifest = None
                erase(os.fspath(self.path.parent))
                refresh = self._run(root, stop)
        return frozenset(refresh.changed)

    def _run(self, root: str, stop: Event) -> Refresh:
        """Raises `OSError` and `Stopped`. Nothing is noted then, so that the next refresh looks at every file."""
        if self.path.is_symlink():  # what is written and deleted there would be somebody else's
            self.path.unlink()
        self.path.mkdir(parents=True, exist_ok=True)
        old = self._manifest or Manifest.load(self._manifest_file, root)
        self._manifest, self._seen = None, {}
        there, source = os.fspath(self.path), self._look()
        left_out, included = self.left_out, self.included
        refresh = Refresh(root, there, source, old, self.overlaid, left_out, included, self.warn, stop, self.compiled)
        refresh.run()
        if refresh.wrote:
            refresh.manifest.save(self._manifest_file)
        self.note_size(refresh.manifest.size)
        self._manifest, self._seen = refresh.manifest, refresh.source
        return refresh

    @property
    def _manifest_file(self) -> Path:
        return self.path.parent / "manifest.json"

    def is_overlaid(self, path: str) -> bool:
        """Whether `path`, or a directory that it is in, was declared in `overlaid`."""
        return is_overlaid(path, self.overlaid)

    def warn(self, path: str, reason: str) -> None:
        """Log, once, that `path` can't be copied."""
        if path not in self._warned:
            self._warned.add(path)
            logger.warning("%s is left out of the copy: %s", path, reason)

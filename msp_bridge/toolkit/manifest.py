"""Manifest: what a copy was made of, file by file, kept beside the copy and never in it."""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path

from attrs import define, evolve, frozen

from msp_bridge.toolkit.tree import Entry, Kind, Stamp

VERSION = 1
GRANULARITY = 2_000_000_000  # ns: the coarsest clock of a file system in use (FAT)


@frozen
class Record:
    """One path, as it was brought over."""

    kind: Kind
    source: Stamp
    digest: str  # of a file's bytes or a link's target
    seen: int  # when the source was read, ns since the epoch
    copy: Stamp | None  # None: the owner of the copy has overlaid it

    def vouches_for(self, entry: Entry) -> bool:
        """Whether the stamp alone shows that the source hasn't changed.

        A file that was written just before it was read may have been written again within one tick of the clock.
        """
        return self.source == entry.stamp and max(self.source[0], self.source[1]) + GRANULARITY < self.seen

    @property
    def is_young(self) -> bool:
        """Whether the copy may have been written since without a change of its stamp, for it has a time so recent.

        Once the source has been looked at again, which is when the copy is, too, it isn't young any more.
        """
        return self.copy is not None and self.copy[0] + GRANULARITY >= self.seen


@define
class Manifest:
    """Path (relative, with `/`) to record, for one source."""

    source: str
    records: dict[str, Record]

    @classmethod
    def load(cls, file: Path, source: str) -> Manifest:
        """What was saved; empty when there is nothing, or nothing that can be used for `source`."""
        try:
            saved = json.loads(file.read_bytes())
            if saved["version"] == VERSION and saved["source"] == source:
                return cls(source, {path: _record(*row) for path, row in saved["records"].items()})
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass  # made anew: every file is then copied again
        return cls(source, {})

    def save(self, file: Path) -> None:
        """Write it, whole or not at all."""
        rows = {path: (r.kind.value, r.source, r.digest, r.seen, r.copy) for path, r in self.records.items()}
        fresh = file.with_suffix(".new")
        fresh.write_text(json.dumps({"version": VERSION, "source": self.source, "records": rows}), encoding="ascii")
        fresh.replace(file)

    @property
    def digest(self) -> str:
        """A name for the content: equal for equal files, links and rights to execute, wherever they lie."""
        total = blake2b(digest_size=16)
        for path, record in sorted(self.records.items()):
            line = f"{path}\0{record.kind.value}\0{record.source[4] & 0o111:o}\0{record.digest}\n"
            total.update(line.encode("utf-8", "surrogatepass"))
        return total.hexdigest()

    @property
    def size(self) -> int:
        """Bytes in all files."""
        return sum(record.source[2] for record in self.records.values() if record.kind is Kind.FILE)

    def seen_again(self, path: str, entry: Entry, seen: int) -> None:
        """Note that the content of `path` was read and found unchanged."""
        self.records[path] = evolve(self.records[path], source=entry.stamp, seen=seen)


def _record(kind: str, source: list[int], digest: str, seen: int, copy: list[int] | None) -> Record:
    return Record(Kind(kind), _stamp(source), digest, seen, None if copy is None else _stamp(copy))


def _stamp(numbers: list[int]) -> Stamp:
    modified, changed, size, inode, mode = numbers
    return modified, changed, size, inode, mode

"""State: everything that a verdict could depend on, as it is at one moment. Files count by content, never by time."""

import json
import os
import platform
import sys
import time
from collections.abc import Collection, Mapping
from hashlib import blake2b
from pathlib import Path

from attrs import define, field, frozen

import msp_bridge
from msp_bridge.errors import BridgeError
from msp_bridge.toolkit.sync import GRANULARITY_NS
from msp_bridge.toolkit.tree import Entry, Kind, SourceTree, Stamp, digest_of, within

MAX_FILES = 100_000  # in all trees: a home directory that modules are imported from is not read


class TooLarge(BridgeError):
    """There are more files than can be looked at for each run."""


@frozen
class State:
    """Everything that verdicts depend on. Two states are equal only if nothing was touched between them."""

    digest: bytes  # names the content: equal for equal content, on every machine
    files: Mapping[str, str] = field(eq=False)  # digests, by path in the workspace's root, with `/`
    surroundings: bytes = field(eq=False)  # names all that is no file of the project
    stamps: Mapping[str, object] = field(repr=False)  # by path in any tree

    def is_directory(self, path: str) -> bool:
        """Whether one of `files` is a directory."""
        return self.files[path].startswith(Kind.DIRECTORY.value)


@define(eq=False)
class Look:
    """Looks at trees again and again; a file that was not touched since is not read again (see `sync`)."""

    _known: dict[str, tuple[Stamp, int, str]] = field(factory=dict)  # path to stamp, when it was read, and the digest

    def state(self, root: Path, trees: Collection[Path], surroundings: Mapping[str, object]) -> State:
        """The state of the project at `root`, other `trees` and what surrounds them. Blocks. Raises TooLarge."""
        stamps: dict[str, object] = {}
        files, known = self._files(root, stamps), dict[str, tuple[Stamp, int, str]]()
        outside = [tree for tree in sorted(trees) if not within(os.path.realpath(tree), os.path.realpath(root))]
        others = {os.path.relpath(tree, root): self._files(tree, stamps) for tree in outside}
        around = _digest({"surroundings": surroundings, "trees": others})
        for path in stamps:
            if path in self._known:
                known[path] = self._known[path]
        self._known = known
        return State(_digest({"files": files, "around": around.hex()}), files, around, stamps)

    def _files(self, root: Path, stamps: dict[str, object]) -> dict[str, str]:
        """Path to what names its content, of all that a private copy would have."""
        real = os.path.realpath(root)
        entries = SourceTree(real, lambda *_: None).entries()
        if len(entries) + len(stamps) > MAX_FILES:
            raise TooLarge(f"{root} has more than {MAX_FILES:,} files", "use it without `incremental`")
        found = {}
        for path, entry in entries.items():
            full = f"{real}/{path}"
            # The times of a directory change with caches in it, which belong to no tree.
            stamps[full] = entry.stamp[4] if entry.kind is Kind.DIRECTORY else (entry.stamp, entry.target)
            found[path] = f"{entry.kind.value}{entry.mode & 0o111:o} {self._content(full, entry)}"
        return found

    def _content(self, full: str, entry: Entry) -> str:
        if entry.kind is not Kind.FILE:
            return entry.target
        known, seen = self._known.get(full), time.time_ns()
        if known is not None and known[0] == entry.stamp and max(entry.stamp[:2]) + GRANULARITY_NS < known[1]:
            return known[2]
        try:
            digest = digest_of(full)
        except OSError:  # it can't be copied either
            return ""
        self._known[full] = (entry.stamp, seen, digest)
        return digest


def machine() -> dict[str, str]:
    """Facts of the bridge and of the machine that count."""
    return {"bridge": msp_bridge.__version__, "platform": sys.platform, "machine": platform.machine()}


def _digest(value: object) -> bytes:
    text = json.dumps(value, sort_keys=True, default=str)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()

"""FileVersions: what of a project has changed since a verdict was found, for every client that keeps verdicts.

A verdict is about all files of the project: the mutated one, the tests, and whatever they import or read. As soon as
the content of one of them is another, the verdict is doubtful, whichever file it was (`incremental/rule.py` says why).
Files are the files that a private copy of the project would have, compared by content. What test runs and editors leave
in a tree (`MADE_BY_RUNS`) does not count: else the run that shows that a new test passes would outdate every verdict.

Each look gives the files' present version a number. A client takes the number before it tests, and asks afterwards what
was `touched` since: what it has found meanwhile is about no version in particular. Later it asks what has `changed`
since: a file that is as it was again does not count. Only changes take memory.
"""

import asyncio
import bisect
import os
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

from attrs import define, field

from msp_bridge import reading
from msp_bridge.concurrency import in_thread
from msp_bridge.incremental.state import Look, TooLarge

MADE_BY_RUNS = (".coverage", ".coverage.*", "coverage.xml", "*.log", "*~", "*.swp", ".#*", "#*#")
Entry = tuple[str, object]  # what names the content, and what changes whenever the file is written
GONE: Entry = ("", None)


@define(eq=False)
class FileVersions:
    """Versions of the files below `root`. Looks wait for each other, and each blocks in a thread only.

    In a tree that has too many files to look at (`too_large`), only those count that were named in `look`.
    """

    root: Path
    too_large: bool = field(default=False, init=False)
    _look: Look = field(factory=Look, init=False)
    _turn: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _version: int = field(default=0, init=False)  # of the last look
    _now: Mapping[str, Entry] = field(factory=dict, init=False)
    _named: set[str] = field(factory=set, init=False)
    _changed: dict[int, list[str]] = field(factory=dict, init=False)  # what `changed` has found since the last change
    _history: dict[str, list[tuple[int, str]]] = field(
        factory=dict, init=False
    )  # versions, and the content from then on

    async def look(self, paths: Iterable[str] = ()) -> int:
        """The version that is on the disk now: the last one again, if no file was touched since.

        `paths` are files whose mutants the client knows, relative to the root.
        """
        self._named.update(paths)
        async with self._turn:
            before, self._now = self._now, await in_thread(self._files)
            touched = [p for p in self._now.keys() | before.keys() if self._now.get(p, GONE) != before.get(p, GONE)]
            if touched:
                self._version += 1
                self._changed = {}
            for path in touched:
                self._history.setdefault(path, []).append((self._version, self._now.get(path, GONE)[0]))
            return self._version

    def has(self, path: str) -> bool:
        """Whether the file was there at the last look."""
        return path in self._now

    def touched(self, since: int) -> list[str]:
        """The files that were written, made or deleted after the version `since`, sorted, as of the last look."""
        return sorted(path for path, entries in list(self._history.items()) if entries[-1][0] > since)

    def changed(self, since: int) -> Sequence[str]:
        """The files that have another content than in the version `since`."""
        known, now = self._changed, self._now  # in a thread, a look may replace both meanwhile
        if since not in known:
            known[since] = [p for p in self.touched(since) if self._at(p, since) != now.get(p, GONE)[0]]
        return known[since]

    def _at(self, path: str, version: int) -> str:
        entries = self._history[path]
        index = bisect.bisect_right(entries, version, key=lambda entry: entry[0])
        return entries[index - 1][1] if index else GONE[0]

    def _files(self) -> dict[str, Entry]:
        self.too_large = False
        try:
            state = self._look.state(self.root, (), {})
        except TooLarge:
            self.too_large = True
            return {path: (reading.digest(self.root / path) or "", None) for path in self._named}
        except OSError:  # the project is gone
            return {}
        real = os.path.realpath(self.root)
        files = {}
        for path, content in state.files.items():
            name = path.rpartition("/")[2]
            if not (state.is_directory(path) or any(fnmatch(name, pattern) for pattern in MADE_BY_RUNS)):
                files[path] = content, state.stamps.get(f"{real}/{path}")
        return files

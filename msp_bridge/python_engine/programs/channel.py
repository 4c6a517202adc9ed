"""Messages that the bridge and the processes of this folder say to each other: JSON lines over pairs of descriptors.

`Channel` carries the lines, `TargetPlan` is the first of them to a host. How far a run without a mutant has come is
said more cheaply: by a number and a name in shared memory (`TestCount`).

Tests replace functions of `json`, `os` and `time`, and a mutant can keep them from putting these back. So what
sends a job's report uses the functions as they were when it was imported.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from json import dumps, loads
from os import write
from typing import Any, NamedTuple

CHUNK = 1 << 16
PROGRESS_S = 0.5  # between two reports of how far a run of all tests has come
MARK = b"msp-bridge: json lines"  # comes before the first message: whatever was printed until then is no message

READY = {"id": 0}  # the first answer, to no question: everything has been imported
FORMAT = struct.Struct("q256p")
LONG_S = 30.0  # a test that has been running for so long is named


class Channel:
    """Messages in, messages out. Not for several threads."""

    def __init__(self, reader: int, writer: int) -> None:
        self.reader, self.writer = reader, writer
        self._rest = b""

    @classmethod
    def to_bridge(cls) -> Channel:
        """The bridge's end. After this, the process and its children read nothing and print to stderr."""
        channel = cls(os.dup(0), os.dup(1))
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        channel._write(b"\n" + MARK + b"\n")
        return channel

    def send(self, message: Mapping[str, object]) -> None:
        """Raises OSError when nobody reads any more."""
        self._write(dumps(message).encode() + b"\n")

    def receive(self) -> list[Any] | None:
        """The messages that have arrived, waiting for some bytes; None at the end."""
        data = os.read(self.reader, CHUNK)
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [loads(line) for line in lines]

    def messages(self) -> Iterator[Any]:
        """One after the other, until the end."""
        while (arrived := self.receive()) is not None:
            yield from arrived

    def close(self, *, reader: bool = True) -> None:
        """Let go of what is open: of the one to write to, and of the one to read from. Then it is -1."""
        for descriptor in {self.writer, self.reader if reader else -1} - {-1}:
            os.close(descriptor)
        self.reader, self.writer = -1 if reader else self.reader, -1

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[write(self.writer, rest) :]


@dataclass(frozen=True)
class TargetPlan:
    """For one version of the project. `sources` are the files that may be mutated, relative to the root, with `/`."""

    place: str  # the directory in which the tests run
    arguments: tuple[str, ...]  # of pytest
    sources: tuple[str, ...]
    limit: tuple[float, float]  # s, factor: a run of tests that take t seconds may take (t + s) * factor
    content: str  # names the content of the project, but for `files`
    environment: str  # names all else that a measurement depends on
    always_fresh: bool = False
    debug: bool = False
    exit_kills: bool = False  # a mutant that ends the process of the tests, but not with 0, is Killed
    dependencies: bool = False  # reports of mutants say what they depend on
    baseline_timeout_s: float = 3600.0  # that all tests may take without a mutant
    cpu_limited: bool = False  # an endless loop is ended by the CPU time that it takes: see `time_limits`
    exact: bool = False  # the whole suite is run with each survivor
    files: Mapping[str, str] = field(default_factory=dict)  # Python files and documents, with their digests

    @classmethod
    def of(cls, message: Mapping[str, Any], place: str) -> TargetPlan:
        """From the bridge's message."""
        values = {each.name: message[each.name] for each in fields(cls) if each.name != "place"}
        lists = {name: tuple(message[name]) for name in ("arguments", "sources", "limit")}
        return cls(place=place, **{**values, **lists})

    @property
    def filenames(self) -> list[str]:
        """The sources as their modules have them in `__file__`."""
        return [os.path.join(self.place, path) for path in self.sources]


class RunProgress(NamedTuple):
    """How far a run of tests has come."""

    done: int
    long: str | None = None  # the test that runs, if it has been running for `LONG_S`


class TestCount:
    """How many tests a run has come to, and which one runs, in memory that the host shares with what it forks."""

    __test__ = False  # pytest would take it for a test

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, FORMAT.size)
        self.reset()

    def reset(self) -> None:
        """A run begins."""
        self._write(0)
        self._said: RunProgress | None = None
        self._seen = (-1, "")

    def begin(self, test: str) -> None:
        """A test is about to run."""
        self._write(self.now, test)

    def note(self) -> None:
        """One more test has been run."""
        self._write(self.now + 1)

    @property
    def news(self) -> RunProgress | None:
        """How far it has come since `reset`; None if it was asked for since it changed."""
        seen, now = (self.now, self.running), time.monotonic()
        if seen != self._seen:
            self._seen, self._since = seen, now
        progress = RunProgress(seen[0], seen[1] or None if now - self._since >= LONG_S else None)
        news, self._said = None if progress == self._said else progress, progress
        return news

    @property
    def now(self) -> int:
        """The number of tests since `reset`."""
        count: int = FORMAT.unpack_from(self._shared, 0)[0]
        return count

    @property
    def running(self) -> str:
        """The test that runs, or the beginning of a long name; empty between two tests."""
        name: bytes = FORMAT.unpack_from(self._shared, 0)[1]
        return name.decode(errors="ignore")

    def _write(self, count: int, test: str = "") -> None:
        FORMAT.pack_into(self._shared, 0, count, test.encode(errors="backslashreplace"))


MEASURED, IN_SUITE = "measured", "in suite"  # by a measurement; by a run of all tests with a mutant
COUNTS = {MEASURED: TestCount(), IN_SUITE: TestCount()}  # made when the host imports this, before it forks

"""Mutants, their results, and scopes, in words that belong to no tool and to no protocol.

Adapters yield these; dialects and reports translate them. Nothing here depends on where they come from.
"""

from __future__ import annotations

import enum
from functools import cached_property
from hashlib import blake2b
from typing import Any

from attrs import field, frozen

ID_BITS = 53  # some clients do `Number(id)`: above 2^53 JavaScript would merge neighbouring ids


class Status(enum.Enum):
    """The status of a mutant (mutation-testing-report-schema, `MutantStatus`)."""

    KILLED = "Killed"
    SURVIVED = "Survived"
    NO_COVERAGE = "NoCoverage"
    TIMEOUT = "Timeout"
    COMPILE_ERROR = "CompileError"
    RUNTIME_ERROR = "RuntimeError"
    IGNORED = "Ignored"
    PENDING = "Pending"

    @property
    def detected(self) -> bool:
        """Whether the tests detected the mutant: it counts for the mutation score."""
        return self in (Status.KILLED, Status.TIMEOUT)

    @property
    def undetected(self) -> bool:
        """Whether the tests missed the mutant: it counts against the mutation score."""
        return self in (Status.SURVIVED, Status.NO_COVERAGE)


@frozen(order=True)
class Position:
    """A place between two characters: `line` and `column` are 1-based, columns count UTF-16 code units."""

    line: int
    column: int

    def __str__(self) -> str:
        """`LINE:COLUMN`."""
        return f"{self.line}:{self.column}"


@frozen
class Location:
    """A stretch of text: `start` is inclusive, `end` exclusive."""

    start: Position
    end: Position

    def contains(self, other: Location) -> bool:
        """Whether `other` lies wholly within this location."""
        return self.start <= other.start and other.end <= self.end

    def touches(self, other: Location) -> bool:
        """Whether some of this location lies in `other`; one without text does where it begins."""
        return self.start < other.end and (other.start < self.end or other.start == self.start)


@frozen(cache_hash=True)  # each is looked up in several tables on its way
class Mutant:
    """One change to one file. Two mutants that are equal change the same text in the same way.

    `replacement` is the exact text that takes the place of the characters in `location`: applying it to the
    file gives the mutated file. `handle` is what the adapter needs to test the mutant (see `Adapter`); it is no part
    of the identity, and nobody but the adapter reads it.
    """

    path: str  # relative to the project's root, with `/`
    mutator: str
    location: Location
    replacement: str
    description: str | None = field(default=None, eq=False)
    handle: Any = field(default=None, eq=False, repr=False)

    @cached_property
    def id(self) -> str:
        """Decimal digits below 2^53, the same in every request and after every restart."""
        location = self.location
        identity = f"{self.path}\0{self.mutator}\0{location.start}-{location.end}\0{self.replacement}"
        digest = blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return str(int.from_bytes(digest) >> (64 - ID_BITS))


@frozen(cache_hash=True)
class Ran:
    """Code of the project that some process has run and read. Paths are those of mutants."""

    functions: frozenset[tuple[str, str]] = frozenset()  # path and qualified name, without what is nested in them
    texts: frozenset[str] = frozenset()  # files whose source was read as text


@frozen
class Dependencies:
    """Code in functions that a verdict depends on. Every verdict depends on all else of the project."""

    ran: tuple[Ran, ...]  # in the processes that it rests on
    tests: frozenset[str] | None  # it holds while no others could kill the mutant; None: whatever others could


@frozen
class Result:
    """A tool's result for one mutant. `None` means that the tool does not report it."""

    mutant: Mutant
    status: Status
    duration: float | None = None  # milliseconds, of the tests alone
    covered_by: tuple[str, ...] | None = None  # names of the tests that reach the mutant
    killed_by: tuple[str, ...] | None = None  # names of the tests that failed, or were over a time limit
    static: bool | None = None  # the mutated code runs at import, once
    status_reason: str | None = None  # the failing test's message, or why there is no verdict
    tests_completed: int | None = None
    reusable: bool = True  # False: another run of the same project could say something else, or should say more
    dependencies: Dependencies | None = field(default=None, eq=False, repr=False)  # None: on everything
    untested: bool = False  # no tool has tested it, and the reason says why: it is `IGNORED` for clients that wait
    reused: bool = False  # it is the result of an earlier run, and nothing that it depends on has changed


@frozen
class Scope:
    """Files and directories (which end in `/`) relative to the project's root, or everything.

    Ranges within a file are the front end's business: an adapter discovers whole files.
    """

    paths: frozenset[str] | None = None  # None: the whole project

    @property
    def everything(self) -> bool:
        """Whether the scope is the whole project."""
        return self.paths is None

    def covers(self, path: str) -> bool:
        """Whether the file `path` (relative to the root, with `/`) is in scope."""
        if self.paths is None or path in self.paths:
            return True
        at = path.rfind("/")
        while at >= 0:
            if path[: at + 1] in self.paths:
                return True
            at = path.rfind("/", 0, at)
        return "/" in self.paths

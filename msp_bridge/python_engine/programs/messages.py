"""The messages of the engine's processes, as JSON has them: bridge and host, host and fork server, fork server and job.

A test is named by its index in the order of collection, but for fresh processes, whose collection may differ: these are
told pytest's node ids. JSON makes strings of the keys of a dictionary. Sets of tests are masks, a bit for each, in hex.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

Index = Any  # of a test, as a key: an int, which arrives as a str
Row = Sequence[Any]  # the fields of a `NamedTuple` or a frozen dataclass, in their order
Failure = Sequence[str]  # the test or the module, and its message
Functions = dict[str, list[str]]  # path to the names of its functions


class Ran(TypedDict):
    """Code of the project that processes have run, and files that they have read."""

    functions: Functions
    texts: list[str]  # paths


class Trace(Ran):
    """The same, as one process has noted it."""

    hidden: bool  # something ran that is not seen


class Facts(TypedDict, total=False):
    """A file's code before the fork: see `baseline.FileFacts`. After a reload, the functions that are there alone."""

    live: Sequence[Row]
    suspended: Sequence[Row]
    called: Sequence[Row]
    read: bool


class Collected(TypedDict, total=False):
    """Facts that collecting the tests has shown; those of a fresh process are without threads and files."""

    tests: Sequence[str]  # pytest's node ids
    seconds: float
    megabytes: float  # the size of the process that is forked
    elsewhere: Sequence[str] | None  # of a module: see `imports.loaded_elsewhere`
    outside: Mapping[str, list[int]]  # see `loaded_modules.outside_files`
    native_threads: int
    made: Sequence[str]  # paths in the tree, by importing the project
    why_fresh: str | None  # why forks of this process can't be trusted
    ran: Trace | None
    imported: Mapping[str, Sequence[str]]  # see `import_effects`
    files: Mapping[str, Facts]  # by path
    calling: str | None  # the test file that `imports.CallingFile` has found


class Report(TypedDict, total=False):
    """A job's own words about its end: each kind of job has some of these fields."""

    tests: int  # that were run, until one failed
    seconds: float  # that these took; of an isolated run, its process
    cpu: float  # seconds of CPU time, also that of processes that have ended
    failure: Failure | None
    skipped: Sequence[str]  # tests that have skipped themselves; of a measurement, too
    ran: Trace

    not_live: str  # why the mutant can't be put into the live functions

    exit: int  # of pytest, which has run no test
    broken: Sequence[Failure]

    durations: Mapping[Index, float]  # of a measurement: seconds
    waited: float  # the part of these in which its process waited for a CPU
    lines: Mapping[str, Mapping[Any, str]]  # path to line to mask
    failing: Mapping[Index, str]
    late: Sequence[str]  # paths
    unseen: Mapping[str, Sequence[Row]]
    collected: Collected  # in a fresh process

    fault: str  # what has failed in our own code
    begun: bool  # whether tests may have run before


class Ended(TypedDict):
    """The fork server's answer about a job."""

    id: int
    exit: int
    kill_reason: str
    report: Report | None  # None: the process didn't get so far
    tests: int  # of a mutant, that have ended
    seconds: float  # by the clock, with the fork of its process


class JobMessage(TypedDict, total=False):
    """A job for a fork server."""

    id: int
    do: Literal["run"]
    work: Literal["mutant", "measure"]
    parts: list[str]  # of the world, that it has for itself
    guarded: bool  # see `world`
    limit: float  # seconds by the clock, for all tests
    cpu_limits: Sequence[float]  # seconds of CPU time for each test of a mutant; the last one holds for all that follow
    test_limits: Sequence[float]  # seconds by the clock, likewise; where they lack, there are none
    tests: Sequence[Any] | None  # indexes, in a fresh process names; None: all
    counts: str | None  # of `channel.COUNTS`, the one that notes how many tests were run
    edit: Row  # `FileEdit`
    segment: Row  # `Segment`, where the mutant goes into live functions
    only: Sequence[str] | None  # in a fresh process: the tests to run; None: all
    left_out: Sequence[str]
    files: Sequence[str] | None  # likewise: the test files to collect; None: all
    stuck: int  # seconds that one test of a measurement may take; 0: any
    at_most: float  # seconds for all tests of a measurement
    pieces: bool  # it tells from time to time what it has measured


class Stop(TypedDict):
    """End jobs, or requests."""

    do: Literal["stop"]
    ids: Sequence[int]


class Renew(TypedDict, total=False):
    """Files have changed."""

    do: Literal["renew"]
    made: Sequence[str]  # what the live server has made in the tree


class Reload(TypedDict):
    """The live functions are to get the code of an edited file."""

    do: Literal["reload"]
    segment: Row


class Reloaded(TypedDict, total=False):
    """The live server's answer to that."""

    do: Literal["reloaded"]
    facts: Facts  # of a source
    tests: str  # the edited tests of a test file, a mask


class Started(Collected, total=False):
    """The first message of a fork server."""

    do: Literal["ready", "failed", "bare", "plain"]  # the last two: pytest has imported the project, see `servers`
    live: int | None  # the process of the live server, where the fresh one has forked it
    pid: int  # of the live server; another one than that where it has left its process to the session server
    exit: int  # of pytest, where it failed
    broken: Sequence[Failure]
    before: Sequence[str]  # of a server that holds the collection: the test files that it has collected


class Verdict(TypedDict, total=False):
    """A mutant's verdict, and what its last job has shown."""

    status: str  # of the protocol, or "stopped" or "stale"
    reason: str
    killed_by: str | None
    tests: int
    seconds: float


class MutantAnswer(Verdict, total=False):
    """The host's answer about a mutant."""

    id: int
    covered: Sequence[int] | None  # None: not all tests are measured
    static: bool | None
    unsteady: Sequence[str]
    ran: Ran | None
    tried: Sequence[int] | None


class Summary(TypedDict):
    """Facts of the tests for the bridge."""

    tests: list[str]
    measuring: bool  # more will follow
    failing: dict[str, str]
    always_fresh: str | None  # why
    unsteady: Sequence[str]
    fork_unsafe: Sequence[str]
    starting: Mapping[str, float]  # tests that start Python processes, and the seconds that they take
    isolation: Sequence[str]
    imported: Ran | None
    outside: Mapping[str, list[int]]  # see `Collected`
    how: str
    seconds: float


class Request(TypedDict, total=False):
    """A request of the bridge to a host."""

    id: int
    do: Literal["prepare", "test", "reach", "stop", "settle", "check"]
    changed: Sequence[str]  # prepare: paths
    plan: Mapping[str, Any]  # `TargetPlan`, but for the place
    edit: Row  # test
    batch: int  # test: the user's request that it is of; the newest has the highest number
    mutants: Sequence[Row]  # reach: path, digest, start, end
    alone: bool
    functions: Sequence[Row]
    ran_alone: Mapping[str, Sequence[int]]
    ids: Sequence[int]  # stop


class Options(TypedDict):
    """The options of a host."""

    root: str  # the user's tree
    home: str  # a private directory
    jobs: int
    isolation: Sequence[str] | None  # parts of the world to try; None: all


class Told(TypedDict):
    """For a Python process that a test starts; of types that `marshal` knows."""

    file: str  # in which it writes what it has run
    pythonpath: str | None  # the variable, without us
    python: str  # the real name of the interpreter
    roots: tuple[str, ...]  # real names of the project, which end with `/`
    tool: int  # of sys.monitoring
    counter: tuple[int, int, int] | None  # of runs, in a code object: offset, size, and value before any
    code: set[str]  # audit events, the last argument of which may be code
    lists: set[str]  # that list a directory
    hiding: set[str]  # after which something may run unseen
    modules: tuple[str, ...]  # likewise: stands in the names of modules that are imported

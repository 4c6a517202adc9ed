"""The public plugin API: what a mutation testing tool must offer to be driven by the bridge.

`docs/how-to/writing-an-adapter.md` is the guide, `msp_bridge.testing` the conformance suite. The entry-point
group `msp_bridge.adapters` lists the adapters. The built-in ones use nothing but this module, `concurrency`, `errors`,
`jsonrpc`, `model`, `notices`, `phases`, `processes`, `python_adapter`, `python_engine`, `reading`, `rows`, `source`,
`text`, `toolkit` and `writing`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

from attrs import field, frozen

from msp_bridge.errors import (
    BaselineError,
    BridgeError,
    ConfigurationError,
    MachineCommand,
    ShellCommand,
    ToolError,
    suggestion,
)
from msp_bridge.model import Location, Mutant, Position, Ran, Result, Scope, Status
from msp_bridge.notices import FailingTest, Notice, Remark, UnusableFile
from msp_bridge.source import Edit

__all__ = [
    "Adapter",
    "AskRanAlone",
    "BaselineError",
    "BridgeError",
    "ChecksTests",
    "ConfigurationError",
    "Edit",
    "FailingTest",
    "Finding",
    "HasFreshResults",
    "HasTestCommand",
    "HasThreshold",
    "IgnoresMutants",
    "KnowsReach",
    "Location",
    "MachineCommand",
    "Mutant",
    "Notice",
    "Position",
    "Project",
    "Ran",
    "RanAlone",
    "Reach",
    "Remark",
    "ReportsSurroundings",
    "Result",
    "Scope",
    "SetsUp",
    "Setup",
    "ShellCommand",
    "Status",
    "Surroundings",
    "ToolError",
    "UnusableFile",
]


def _absolute(path: Path) -> Path:
    return path.absolute()  # a tool is run elsewhere


@frozen
class Project:
    """A project as an adapter gets it.

    A workspace with several tools has several projects, each at a root of its own: paths are relative to that.
    """

    root: Path = field(converter=_absolute)  # never written to
    cache: Path = field(converter=_absolute)  # private to this project and adapter; made on first use, may vanish
    config_file: Path | None = None  # the tool's own configuration, when the user named it
    settings: Mapping[str, Any] = field(factory=dict)  # the adapter's own table in the bridge's configuration
    python: Path | None = None  # the project's interpreter, when the user named it or one was found
    _jobs: int | Callable[[], int] = 1
    nested: bool = False  # below the directory that the user opened, and not chosen for this folder by name
    incremental: bool = False  # results are kept for later runs: they may say what they depend on
    environment: tuple[str, ...] = ()  # names of variables that the tests read, as far as the user has named them
    opened: Path | None = None  # that directory, where there is one: what lies around it is never read

    @property
    def jobs(self) -> int:
        """How many mutants to test at once. Read it when you start some: projects that run side by side share it."""
        return self._jobs if isinstance(self._jobs, int) else self._jobs()

    def check_settings(self, table: str, known: Collection[str], place: str = "") -> None:
        """Raises ConfigurationError for a key of `settings`, the adapter's `table`, that is none of `known`.

        An adapter without any setting names the `place` where its tool is configured instead.
        """
        for key in self.settings:
            if key not in known:
                remedy = suggestion(key, known) if known else f"write it in {place}, or remove it"
                raise ConfigurationError(f"the table {table!r} has no setting {key!r}", remedy)


@frozen
class Finding:
    """One line of `msp-bridge doctor`."""

    good: bool
    subject: str  # "mutmut", "interpreter", "tests" …
    text: str  # what was found, or what is wrong
    remedy: str | None = None  # the command (`ShellCommand`) or setting that fixes it

    @classmethod
    def of_error(cls, subject: str, error: BridgeError) -> Self:
        """Make a bad finding of `error`, with its remedy."""
        return cls(False, subject, error.problem, error.remedy)


@frozen
class Setup:
    """The needs of a tool in one project (`SetsUp`). What is there already is left out."""

    install: ShellCommand | None = None  # installs the tool, typed in the project's root
    files: Mapping[str, str] = field(factory=dict)  # its configuration: names of files in the root, and their texts
    settings: Mapping[str, str] = field(factory=dict)  # for the adapter's own table in the bridge's configuration
    toolchain: str = "python"  # what a job of CI needs besides Python: "node", "dotnet", "rust", "go", "java"
    checkout: tuple[ShellCommand, ...] = ()  # commands by which a job of CI installs the tool and what the tests need


@frozen
class Surroundings:
    """Everything that verdicts depend on besides the files of the project and the bridge (`ReportsSurroundings`).

    Both are compared with those of earlier runs, perhaps on another machine: no absolute paths in `values`.
    """

    values: Mapping[str, Any] = field(factory=dict)  # JSON: versions of the tool, the interpreter, installed packages …
    trees: tuple[Path, ...] = ()  # absolute; directories outside of the project whose content counts, too


@frozen
class Reach:
    """The tests of one mutant in the project as it is now, without having tested it."""

    covered_by: tuple[str, ...]  # tests that run it
    tests: frozenset[str]  # tests that could kill it, tests that start processes included


@frozen
class RanAlone:
    """The code that tests run when they run alone, as an earlier run has shown, and as they would again."""

    functions: tuple[tuple[str, str], ...] = ()  # path and qualified name of what is told apart
    tests: Mapping[str, frozenset[int]] = field(factory=dict)  # by the adapter's own names; indexes of `functions`


AskRanAlone = Callable[[], Awaitable[RanAlone]]


class Adapter(Protocol):
    """One tool on one project.

    Snapshots: a request discovers once. `test` gets mutants that `discover` of this adapter yielded, with the `handle`
    that the adapter gave them: whatever testing needs, such as the tool's own id, offsets, and a digest of the file's
    content. `test` neither lists nor discovers again. A verdict holds for the file as it was discovered: a mutant whose
    file has other content by now gets no result, even when the same mutant still exists in it. The front end then
    discovers these files again and passes what still exists to `test`, a bounded number of times: this is the only
    place that deals with files that change.

    Cancelling: the front end closes the async generator (`aclose`); when that returns, every process that the
    generator started for its own sake has ended. Warm processes that serve later calls may stay until the adapter's own
    `aclose`.

    Back-pressure: the next mutant is started only while somebody awaits the next result (those already started may
    finish). That is how the front end lets a newer request go first: it doesn't ask for the older one's next result.

    Concurrency: any number of `discover` and `test` generators may be alive at once.

    Errors: `ToolError` or `ConfigurationError`, with a problem and the remedy for it. `BaselineError` when
    the tests fail without any mutant.

    Notices: what a user must know and what ends nothing is yielded among mutants and results, in each call that it is
    about: a `FailingTest` by an adapter that goes on with the tests that pass, an `UnusableFile` for each file in scope
    that can't be read, parsed or instrumented, a `Remark` where mutants are left out or tested in another way.
    """

    name: ClassVar[str]
    markers: ClassVar[tuple[str, ...]]
    """Names of files, or patterns of them, in whose directory a project of this tool may have its root. The directory
    that the user opened is always looked at, those below it (`project.nested`) when they have such a file."""

    sources: ClassVar[tuple[str, ...]]
    """Patterns of the names of files that it could mutate; () when those are no particular ones. Where no tool is set
    up, `msp-bridge doctor` lists those first that fit the files there. Of two tools for the same files, one that is
    merely installed gives way to one that is configured: one that `detect` finds in a nested project without an
    interpreter."""

    @classmethod
    def detect(cls, project: Project) -> Self | None:
        """The adapter, if its tool is set up in this project. Cheap: reads files, starts no process. Runs in a thread.

        In a nested project only what is set up there counts: what is installed around it is shared. None too when
        `project.config_file` is not one that the tool could be configured with: then it is called again without it.
        """

    @classmethod
    def absent(cls, project: Project) -> Finding:
        """Say what is missing and how to set it up, for `msp-bridge doctor` where `detect` found nothing. Cheap."""

    def claims(self, path: str) -> bool:
        """Whether the tool could mutate the file `path` (relative to the root, with `/`). Cheap."""

    def discover(self, scope: Scope) -> AsyncGenerator[Mutant | Notice, None]:
        """Every mutant of the files in scope, file by file, without running a test.

        `Mutant.handle` identifies the content that the mutant was found in: `test` may be called much later, after
        other calls of `discover`, and from several requests at once.
        """

    def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        """Exactly one result for each of `mutants`, which `discover` yielded, each as soon as it is known.

        A mutant whose file no longer has the content that it was discovered in gets no result. That is no error.
        """

    def diagnose(self) -> AsyncGenerator[Finding, None]:
        """Yield the lines of `msp-bridge doctor` about this tool here: what is there, what is wrong, how to fix it."""

    async def aclose(self) -> None:
        """End every process. The adapter isn't used afterwards."""


@runtime_checkable
class ChecksTests(Protocol):
    """Optional for an adapter: a check whether the tests are reliable."""

    def check_tests(self) -> AsyncGenerator[Finding, None]:
        """Yield the lines of `msp-bridge doctor --run`: the tests are run again, without a mutant, and under load.

        It is called after mutants were tested.
        """


@runtime_checkable
class HasFreshResults(Protocol):
    """Optional for an adapter whose mutants are no text in a file: what the tool itself says, for `run --verify`."""

    async def fresh_results(self, results: Sequence[Result]) -> Sequence[Result]:
        """The results of the tool itself for the mutants of `results`, which are those of `test`.

        It tests in a fresh copy of the project, with a fresh process for each mutant. Where the two differ by what the
        tool does wrong, another way may decide. Mutants that the tool does not list get none. Raises BridgeError.
        """


@runtime_checkable
class HasTestCommand(Protocol):
    """Optional for an adapter: the command that runs the project's own tests, for `run --verify`."""

    async def test_command(self) -> tuple[str, ...] | None:
        """Program and arguments that run the tests in the project's root, and end with 0 when they pass.

        They are the tests that the tool runs: what its configuration selects, but for tests that are left out, as they
        fail without any mutant. None where there is no such command. Where the directory of a mutant's file decides
        which these are, a word has `{directory}` for it, as in `go test ./{directory}`; without a mutant that is
        `...`. Called after `discover`. Raises BridgeError.
        """


@runtime_checkable
class HasThreshold(Protocol):
    """Optional for an adapter: the threshold that its tool's configuration sets."""

    def threshold(self) -> float | None:
        """The mutation score in percent below which the tool fails, if its configuration says one. Cheap.

        Called after `discover`, by which an adapter may learn it.
        `msp-bridge run` fails below it where neither its option nor the bridge's configuration says another, and where
        it tests with this tool alone.
        """


@runtime_checkable
class IgnoresMutants(Protocol):
    """Optional for an adapter: how its tool leaves out a mutant by a comment in the source."""

    async def ignore(self, mutant: Mutant, reason: str) -> Edit:
        """The edit after which the tool no longer lists `mutant`, or gives it the status Ignored. Writes nothing.

        `mutant` was just yielded by `discover`. `reason` may be empty, and stands in the comment. `Edit.effect` says
        what else the tool leaves out then. Raises ToolError where no comment can do it.
        """


@runtime_checkable
class SetsUp(Protocol):
    """Optional for an adapter's class: what its tool needs in a project, for `msp-bridge init`."""

    @classmethod
    def setup(cls, project: Project) -> Setup | None:
        """Say what to install and to write before the first run; None if this is no project for the tool.

        Called whether or not `detect` found it. Cheap: reads files, starts no process.
        """


@runtime_checkable
class ReportsSurroundings(Protocol):
    """Optional for an adapter: without it every mutant is tested in each run (`docs/explanation/incremental.md`)."""

    async def surroundings(self) -> Surroundings | None:
        """Everything that its verdicts depend on besides the files of the project, now; None if it can't be known.

        Called before and after mutants are tested. Raises BridgeError.
        """


@runtime_checkable
class KnowsReach(Protocol):
    """Optional for an adapter whose results say what they depend on (`Result.dependencies`)."""

    async def reach(self, mutants: Sequence[Mutant], known: AskRanAlone, *, alone: bool) -> Mapping[Mutant, Reach]:
        """Find out which tests could kill each of `mutants` now, after a run without any mutant.

        `alone`: also when each test runs alone, but those of which `known` says that they would run what they have run.
        It is awaited when the adapter has seen the files as they are. A mutant is left out whose file has another
        content than it was discovered in; all are where some test fails without a mutant, or does not pass alone: then
        verdicts say nothing about the next run. Raises BridgeError.
        """

    def ran_alone(self) -> Mapping[str, tuple[Ran, ...]]:
        """Code that tests have run alone, in all their processes, since `reach` or `test` has last seen the project."""


OPTIONAL = (
    ChecksTests,
    HasFreshResults,
    HasTestCommand,
    HasThreshold,
    IgnoresMutants,
    KnowsReach,
    ReportsSurroundings,
)

"""Notices: what a request tells its client beside mutants and results.

They are items of the request's stream, so each client is told what its own request is about, each time, and nothing of
another's. The log may record a notice too; nobody reads it there. Adapters yield FailingTest, UnusableFile and Remark;
a PhaseReport comes from wherever the work is done (`phases`), a ProjectFailure from the workspace.
"""

from collections.abc import Callable
from typing import TypeVar

from attrs import define, field, frozen

from msp_bridge.errors import BridgeError, SeveralErrors, ToolError

MAX_NAMED = 5  # files in one error


@frozen
class Notice:
    """One thing to tell; `str()` says it in one line. Equal notices are told once in a request."""


@frozen
class FailingTest(Notice):
    """A test that fails without any mutant and is left out, while the other tests still give verdicts."""

    test: str  # its name
    output: str = ""  # what it prints, several lines

    def __str__(self) -> str:
        """The test, and the first line of what it prints."""
        line = self.output.strip().partition("\n")[0]
        return f"{self.test} fails without any mutant, and is left out" + (f": {line}" if line else "")


@frozen
class UnusableFile(Notice):
    """A file in scope that can't be read, parsed or instrumented: whether it has mutants is not known."""

    path: str  # as `Mutant.path`
    problem: str  # its first line is one clause
    remedy: str = "correct the file, or exclude it in the tool's configuration"

    @property
    def error(self) -> BridgeError:
        """The error for a protocol, or a command, that has no other word for it."""
        line = self.problem.strip().partition("\n")[0].rstrip(".")
        return ToolError(f"{self.path} has no mutants: {line}", self.remedy)

    def __str__(self) -> str:
        """The file, what is wrong with it, and what to do."""
        return str(self.error)


@frozen
class Remark(Notice):
    """A fact that explains an answer and is no error: why a file has no mutants, what was left out."""

    text: str  # about `path`, a clause without a subject
    path: str = ""  # as `Mutant.path`; empty where it is about the whole request

    def __str__(self) -> str:
        """The file, and what there is to know of it."""
        return f"{self.path} {self.text}".lstrip()


@frozen
class ProjectFailure(Notice):
    """The error of one project of the tree, while the others did their part."""

    error: BridgeError = field(eq=str)

    def __str__(self) -> str:
        """The error in one line."""
        return str(self.error)


@frozen
class PhaseReport(Notice):
    """How far a phase has come: `done` of `total` steps; None where there are no steps, or nobody knows how many.

    `test`: one that has been running for so long that it may hang.
    """

    name: str
    done: int | None = None
    total: int | None = None
    test: str | None = None

    def __str__(self) -> str:
        """The phase, how far it has come, and the test that keeps it."""
        steps = "" if self.done is None or self.total is None else f": {self.done} of {self.total}"
        return f"{self.name}{steps}" + (f"; {self.test} takes long" if self.test else "")


N = TypeVar("N", bound=Notice)


@define
class Told:
    """The notices of one request, but for its phases, which `show_phase` gets."""

    show_phase: Callable[[PhaseReport], object] = lambda _: None
    notices: dict[Notice, None] = field(factory=dict)

    async def tell(self, notice: Notice) -> None:
        """Note or show it."""
        if isinstance(notice, PhaseReport):
            self.show_phase(notice)
        else:
            self.notices[notice] = None

    def of(self, kind: type[N]) -> list[N]:
        """The notices of this kind, each once, in the order in which they came."""
        return [notice for notice in self.notices if isinstance(notice, kind)]

    @property
    def remarks(self) -> list[str]:
        """The first remarks, and how many more there are."""
        found = [str(remark) for remark in self.of(Remark)]
        more = [f"{len(found) - MAX_NAMED} more remarks like these"] if len(found) > MAX_NAMED else []
        return found[:MAX_NAMED] + more

    @property
    def failures(self) -> list[BridgeError]:
        """Why projects did not do their part."""
        return [notice.error for notice in self.of(ProjectFailure)]

    def check_files(self) -> None:
        """Raise BridgeError if a file in scope could not be used: its first ones are named."""
        files = self.of(UnusableFile)
        if len(files) == 1:
            raise files[0].error
        if files:
            errors = [file.error for file in files[:MAX_NAMED]]
            more = len(files) - len(errors)
            raise SeveralErrors([*errors, ToolError(f"{more} more files can't be used")] if more else errors)

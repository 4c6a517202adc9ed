"""The tree of nodes that a client of the JSON-RPC test runner RFC has been sent, and what became of each mutant."""

import enum
from collections.abc import Sequence

from attrs import define, evolve, field

from msp_bridge.jsonrpc.messages import ErrorCode, RpcError
from msp_bridge.model import Mutant, Result
from msp_bridge.model import Status as Outcome

SOLUTION = "solution"


class TestStatus(enum.Enum):
    """The consolidated list of section 3.2: the lower-case words of the examples are not sent."""

    IDLE = "Idle"
    QUEUED = "Queued"
    DISCOVERING = "Discovering"
    RUNNING = "Running"
    CANCELLING = "Cancelling"
    CANCELLED = "Cancelled"
    PASSED = "Passed"
    FAILED = "Failed"
    SKIPPED = "Skipped"


STATUSES = {  # of a mutant: the tests should have failed
    Outcome.KILLED: TestStatus.PASSED,
    Outcome.TIMEOUT: TestStatus.PASSED,
    Outcome.SURVIVED: TestStatus.FAILED,
    Outcome.NO_COVERAGE: TestStatus.FAILED,
    Outcome.COMPILE_ERROR: TestStatus.FAILED,
    Outcome.RUNTIME_ERROR: TestStatus.FAILED,
    Outcome.IGNORED: TestStatus.SKIPPED,
    Outcome.PENDING: TestStatus.SKIPPED,
}


@define
class File:
    """A file's node: its mutants by id, and the last result of each that has one."""

    path: str
    project: str  # the id of its node
    mutants: dict[str, Mutant] = field(factory=dict)
    results: dict[str, Result] = field(factory=dict)

    @property
    def id(self) -> str:
        """The id of its node."""
        return f"file:{self.path}"


class ClientTree:
    """The tree that the client has been sent."""

    def __init__(self) -> None:
        self.files: dict[str, File] = {}  # by the ids of their nodes
        self.projects: set[str] = set()  # the ids of theirs
        self._of_mutant: dict[str, File] = {}

    def add(self, file: File, mutant: Mutant) -> None:
        """A mutant of a file."""
        file = self.files.setdefault(file.id, file)  # another operation may have found it meanwhile
        self.projects.add(file.project)
        file.mutants[mutant.id] = evolve(mutant, handle=None)  # the adapter's, who gives a new one at each discovery
        self._of_mutant[mutant.id] = file

    def remove(self, mutant: str) -> None:
        """Forget a mutant that no longer exists, as another operation may have found before.

        A file goes with its last mutant, and a project with its last file.
        """
        file = self._of_mutant.pop(mutant, None)
        if file is None:
            return
        del file.mutants[mutant]
        file.results.pop(mutant, None)
        if not file.mutants:
            del self.files[file.id]
            if all(other.project != file.project for other in self.files.values()):
                self.projects.discard(file.project)

    def has(self, node: str) -> bool:
        """Whether the node is still there."""
        return node == SOLUTION or node in self.files or node in self.projects or node in self._of_mutant

    def file_of(self, mutant: str) -> File | None:
        """The file of a mutant that is there."""
        return self._of_mutant.get(mutant)

    def below(self, id: str) -> Sequence[File]:
        """The files at and below a node; of a mutant, its own. Raises RpcError -32602 when there is no such node."""
        if id == SOLUTION:
            return list(self.files.values())
        if (file := self.files.get(id) or self._of_mutant.get(id)) is not None:
            return [file]
        if id not in self.projects:
            text = f"params.id: there is no node {id[:100]!r}: send testrunner/start, or invalidate what is above it"
            raise RpcError(ErrorCode.INVALID_PARAMS, text)
        return [file for file in self.files.values() if file.project == id]

    def mutants(self, id: str) -> Sequence[str]:
        """The mutants at and below a node."""
        return [id] if id in self._of_mutant else [mutant for file in self.below(id) for mutant in file.mutants]

    def parents(self, id: str) -> Sequence[str]:
        """The nodes with children that lie on a way from the solution through `id` to a mutant, lowest first."""
        files = self.below(id)
        return [*(file.id for file in files), *{file.project: None for file in files}, SOLUTION]

    def parents_below(self, id: str) -> Sequence[str]:
        """The nodes of `parents` that lie at and below `id`."""
        parents = self.parents(id)
        return parents[: parents.index(id) + 1] if id in parents else []

    def known(self, id: str) -> TestStatus | None:
        """The status of all mutants below a node with children; None if none is known."""
        results = (result for file in self.below(id) for result in file.results.values())
        found = {STATUSES[result.status] for result in results}
        return next(
            (status for status in (TestStatus.FAILED, TestStatus.PASSED, TestStatus.SKIPPED) if status in found), None
        )

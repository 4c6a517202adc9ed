"""Messages between client and workers: plain data, and the check that both sides would give the same verdicts.

Both sides run the same version of the bridge (`Greeting`), so there is one form of it all. A mutant is sent without its
handle, which means something only where it was discovered: the worker discovers the file in its copy of the snapshot,
and finds the mutant by its identity.

A worker may be broken, or run another program. So each value of an answer is checked, as those of a client's message
are: its type, the range of a number, the size of all texts. Every function raises ValueError, or another of `FAULTS`,
for what no worker by the rules says; `checked` then refuses the worker.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Any, TypeVar

from attrs import astuple, define, field, frozen

from msp_bridge.errors import BaselineError, BridgeError, ConfigurationError, ToolError
from msp_bridge.model import Mutant, Result
from msp_bridge.notices import FailingTest, Notice, PhaseReport, Remark, UnusableFile
from msp_bridge.rows import names_of, result_fields
from msp_bridge.text import one_line

ERRORS: Mapping[str, Callable[[str, str | None], BridgeError]] = {
    "baseline": BaselineError,
    "configuration": ConfigurationError,
    "tool": ToolError,
}
IDLE_S = 600.0  # for which a worker keeps an adapter open that nobody uses
LEASE_S = 60.0  # for which a chunk goes on when nobody asks for its results

Row = list[Any]  # `rows.mutant_row`; of a result, the number of its mutant in the chunk and `rows.result_row`
T = TypeVar("T")

FAULTS = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)
MOST_TEXT = 64 << 20  # characters and values in one answer: as much as a client's message may have


@frozen
class Greeting:
    """A worker's description of itself."""

    version: str  # of the bridge
    name: str
    threads: int
    python: str  # the version of the interpreter that runs the bridge


@frozen
class SnapshotEntry:
    """One path of a snapshot. `content` is the digest of a file's bytes, where a link points, or "" for a directory."""

    kind: str  # `toolkit.tree.Kind`
    content: str
    mode: int  # the permission bits


@frozen
class Order:
    """Everything that a worker has to set up before it can test: a snapshot, and one adapter on a directory in it."""

    client: str  # identifies the wrapper that ordered: what it has set up is kept for its next request
    snapshot: str  # identifies the content of the tree
    tree: str  # the name of the tree's directory
    folder: str  # the project's root, relative to the tree; "." where it is the tree itself
    adapter: str  # the name of the entry point
    settings: Mapping[str, Any]
    config_file: str | None  # relative to the tree
    nested: bool
    surroundings: Mapping[str, Any] | None  # those of the client; None: nobody can know them
    environment: tuple[str, ...] = ()  # `Project.environment`

    @property
    def id(self) -> str:
        """The id by which chunks name it."""
        return blake2b(f"{self.snapshot}{self.place}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    @property
    def place(self) -> tuple[str, str, str]:
        """The name of a directory on a worker that may serve one snapshot after another."""
        values = [self.folder, self.settings, self.config_file, self.nested, self.environment]
        project = json.dumps(values, sort_keys=True, default=str)
        return self.client, self.adapter, project


@frozen
class Chunk:
    """Some mutants for one worker. `mutants` are rows; a result names its mutant by the place in this list."""

    id: str
    order: str  # its id
    mutants: Sequence[Row]
    lease: float = LEASE_S


@frozen
class WireError:
    """A BridgeError, as data."""

    kind: str
    problem: str
    remedy: str | None = None
    failing: tuple[str, ...] = ()
    first_failure: str = ""

    @classmethod
    def of(cls, error: BridgeError) -> WireError:
        """Make the row of a worker's error."""
        if isinstance(error, BaselineError):
            return cls("baseline", error.problem, error.remedy, error.failing, error.first_failure)
        kind = "configuration" if isinstance(error, ConfigurationError) else "tool"
        return cls(kind, error.problem, error.remedy)

    def error(self, worker: str) -> BridgeError:
        """The error to raise at the client."""
        problem = f"{self.problem} (on the worker {worker})"
        if self.kind == "baseline":
            return BaselineError(problem, self.remedy, self.failing, self.first_failure)
        return ERRORS[self.kind](problem, self.remedy)


@frozen
class ChunkProgress:
    """The answer to a client that asks for the results of a chunk, from some number on."""

    rows: Sequence[Row]
    begun: bool = True
    ended: bool = False
    expired: bool = False  # it was ended because nobody had asked for its results
    unmatched: Sequence[int] = ()  # mutants that the worker's tool does not list; complete when the chunk has begun
    failure: WireError | None = None  # why no more results will come
    notices: Sequence[Notice] = ()  # all so far, but for phases
    phase: PhaseReport | None = None  # the last one


def is_within_tree(path: str) -> bool:
    """Whether `path` of a snapshot lies in the tree that it is written to."""
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts and "\0" not in path


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Differences of the worker's surroundings (`theirs`) from the client's, in words; empty if there are none.

    The project itself, installed editable at the client, is in the snapshot; so its entries count on neither side.
    """
    return list(_differences("", _comparable(ours), _comparable(theirs)))


def _comparable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Lists of packages by name; without what is installed editable, and what an installer leaves for that."""
    found = json.loads(json.dumps(dict(values)))
    if isinstance(packages := found.get("packages"), list):
        found["packages"] = {row[0]: row[1:] for row in packages if "editable" not in row}
    if isinstance(files := found.get("files"), dict):
        found["files"] = {
            name: digest
            for name, digest in files.items()
            if not name.startswith("__editable__") and not name.endswith((".pth", ".egg-link"))
        }
    return dict(found)


def _differences(name: str, ours: Any, theirs: Any) -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            yield from _differences(str(key), ours.get(key), theirs.get(key))
    elif ours != theirs:
        yield f"{name} is {_shown(theirs)} there, and {_shown(ours)} here"


def _shown(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, list) and value and isinstance(value[0], str):
        return value[0]
    return one_line(str(value))[:60]


class Refused(BridgeError):
    """This worker is not used; `reason` says why."""

    def __init__(self, reason: BridgeError) -> None:
        super().__init__(reason.problem, reason.remedy)
        self.reason = reason


def checked(read: Callable[[Any], T], answer: Any) -> T:
    """Check a worker's answer with `read`, one of the functions below. Raises Refused."""
    try:
        return read(answer)
    except FAULTS as error:
        raise breaks_the_rules(str(error)) from error


def breaks_the_rules(fault: str) -> Refused:
    """Refuse a worker that does what none by the rules does: `fault`."""
    return Refused(ToolError(f"the worker breaks the rules: {fault}", "end it, and see its log"))


def greeting_of(answer: Any) -> Greeting:
    """Check a worker's description of itself."""
    found = _of(Greeting, answer)
    texts = (found.version, found.name, found.python)
    _require(all(map(_is_text, texts)) and _size(texts) < 1000, "a worker's greeting")
    _require(type(found.threads) is int and 0 < found.threads < 1_000_000, "a number of threads")
    return found


def lacking_of(answer: Any) -> Collection[str] | None:
    """The digests of the files that it lacks; None where it needs the entries of the snapshot first."""
    return None if answer is None else names_of(answer)


def failure_of(answer: Any) -> WireError | None:
    """Why it can't be used, if so."""
    if answer is None:
        return None
    found = _of(WireError, answer)
    texts = [found.problem, found.first_failure, *names_of(found.failing), *filter(None, [found.remedy])]
    _require(found.kind in ERRORS and all(map(_is_text, texts)) and _size(texts) <= MOST_TEXT, "the form of a failure")
    return found


@define
class ChunkAnswers:
    """The answers about one chunk, one after another. No mutant has two results, or one and none."""

    mutants: Sequence[Mutant]
    _left: set[int] = field(init=False)  # numbers of mutants without a result

    def __attrs_post_init__(self) -> None:
        self._left = set(range(len(self.mutants)))

    def read(self, answer: Any) -> tuple[ChunkProgress, list[Result]]:
        """The answer, and the results that are new in it."""
        found = _of(ChunkProgress, answer)
        flags = (found.begun, found.ended, found.expired)
        _require(all(type(flag) is bool for flag in flags), "the state of a chunk")
        notices = [_texts_of(notice) for notice in found.notices]
        _require(_size([list(found.rows), notices]) <= MOST_TEXT, "an answer of this size")
        _require(found.phase is None or _is_phase(found.phase), "a phase")
        failure_of(found.failure)
        results = [self._result(row) for row in found.rows]
        unmatched = list(found.unmatched)
        _require(all(type(number) is int for number in unmatched), "the number of a mutant")
        _require(len(unmatched) == len(set(unmatched)) and self._left.issuperset(unmatched), "a mutant that is not due")
        return found, results

    def _result(self, row: Any) -> Result:
        number, *fields = row
        _require(type(number) is int and number in self._left, "a result of a mutant that is due")
        self._left.remove(number)
        return Result(self.mutants[number], **result_fields(fields))


def _of(kind: Callable[..., T], answer: Any) -> T:
    _require(type(answer) is kind, f"a {getattr(kind, '__name__', kind)}")
    found: T = answer
    return found


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"this is not {what}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _texts_of(notice: Any) -> list[str]:
    """Check the texts of an adapter's notice."""
    _require(type(notice) in (FailingTest, Remark, UnusableFile), "a notice")
    texts = astuple(notice)
    _require(all(map(_is_text, texts)), "a notice's text")
    return list(texts)


def _is_phase(value: Any) -> bool:
    if type(value) is not PhaseReport:
        return False
    numbers = [number for number in (value.done, value.total) if number is not None]
    texts = [value.name] if value.test is None else [value.name, value.test]
    return all(map(_is_text, texts)) and all(type(number) is int for number in numbers)


def _size(value: Any) -> int:
    """How many characters and values there are in it."""
    if isinstance(value, str):
        return 1 + len(value)
    if isinstance(value, dict):
        return 1 + sum(_size(one) for pair in value.items() for one in pair)
    return 1 + sum(map(_size, value)) if isinstance(value, list | tuple) else 1

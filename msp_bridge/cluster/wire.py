"""Messages between client and workers: plain data, and the check that both sides would give the same verdicts.

Both sides run the same version of the bridge (`Greeting`), so there is one form of it all. A mutant is sent without its
handle, which means something only where it was discovered: the worker discovers the file in its copy of the snapshot,
and finds the mutant by its identity.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Any

from attrs import frozen

from msp_bridge.errors import BaselineError, BridgeError, ConfigurationError, ToolError
from msp_bridge.notices import Notice, PhaseReport
from msp_bridge.text import one_line

ERRORS: Mapping[str, Callable[[str, str | None], BridgeError]] = {
    "baseline": BaselineError,
    "configuration": ConfigurationError,
    "tool": ToolError,
}
IDLE_S = 600.0  # for which a worker keeps an adapter open that nobody uses
LEASE_S = 60.0  # for which a chunk goes on when nobody asks for its results

Row = list[Any]  # `rows.mutant_row`; of a result, the number of its mutant in the chunk and `rows.result_row`


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

"""The dialect of Microsoft.Testing.Platform's server mode: mutants in test explorers (docs/reference/mtp.md).

[https://github.com/microsoft/testfx/blob/main/docs/mstest-runner-protocol/001-protocol-intro.md]
Where the text and the servers of the platform differ, this does what their clients read.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, ClassVar

from attrs import define, field, frozen

from msp_bridge.dialects.converter import reads
from msp_bridge.dialects.dialect import Dialect, Handshake
from msp_bridge.errors import BridgeError
from msp_bridge.jsonrpc.connection import Connection, Method, Service
from msp_bridge.jsonrpc.messages import ErrorCode, RpcError
from msp_bridge.model import Mutant, Result, Status
from msp_bridge.notices import FailingTest, Notice, PhaseReport, Told, UnusableFile
from msp_bridge.reports.results import Diff
from msp_bridge.session import Session
from msp_bridge.source import SourceText
from msp_bridge.text import one_line, visible
from msp_bridge.workspace.selection import KnownMutant, Selection, Target

VERSION = "1.0.0"  # of the protocol
SERVER_NOT_INITIALIZED = -32002
GROUP = "file:"  # the uid of a file's node begins with it; those of mutants are numbers

STATES = {  # the tests should have failed
    Status.KILLED: "passed",
    Status.TIMEOUT: "passed",
    Status.SURVIVED: "failed",
    Status.NO_COVERAGE: "failed",
    Status.COMPILE_ERROR: "error",
    Status.RUNTIME_ERROR: "error",
    Status.IGNORED: "skipped",
    Status.PENDING: "skipped",
}
MESSAGES = {
    Status.SURVIVED: "survived: no test fails with this change",
    Status.NO_COVERAGE: "no test runs this code",
}

Node = dict[str, Any]


@frozen
class ClientInfo:
    """The client, and a version: the protocol's by the text, its own by what clients send."""

    name: str
    version: str


@frozen
class InitializeParams:
    """`initialize`. `process_id` is the client's own."""

    client_info: ClientInfo
    process_id: int | None = None


@frozen
class RunParams:
    """The params of both requests. `tests` is what the platform's servers read, `test_cases` what the text has.

    `filter` is an expression over the names of tests, which the platform's servers read. Mutants have no such names.
    """

    run_id: str
    tests: list[dict[str, Any]] | None = None
    test_cases: list[dict[str, Any]] | None = None
    filter: Any = None


@define
class Request:
    """One that is being answered: what it is about, and what the client has been sent for it."""

    run_id: str
    selection: Selection
    missing: dict[str, Node]  # the nodes that the client sent, by uid, without nodes that it has been sent
    everything: bool  # nothing but what this request finds is there
    told: Told
    files: set[str] = field(factory=set)  # whose nodes it has been sent
    found: dict[str, KnownMutant] = field(factory=dict)  # by uid


class Mtp(Dialect):
    """Serves one client. Each run's updates end with one of `changes: null`, before the answer."""

    title: ClassVar[str] = "the protocol of Microsoft.Testing.Platform"

    def __init__(self, session: Session, client: Connection) -> None:
        super().__init__(session, client)
        self._handshake = Handshake(SERVER_NOT_INITIALIZED)
        self._known: dict[str, KnownMutant] = {}  # what the client has been sent, by uid, and exists as far as we know
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def service(self) -> Service:
        """The methods of the protocol. Some clients send `exit` as a request."""
        leave = Method(self._exit)
        methods: dict[str, Method[Any]] = {
            "initialize": Method(self._initialize, reads(InitializeParams), sequential=True),
            "testing/discoverTests": Method(self._discover, reads(RunParams), large=True),
            "testing/runTests": Method(self._run, reads(RunParams), large=True),
            "exit": leave,
        }
        return Service(methods, {"exit": leave}, admit=self._handshake.admit)

    async def _initialize(self, params: InitializeParams) -> Any:
        self._end_with_parent(params.process_id)
        self._handshake.done = True
        testing = {
            "supportsDiscovery": True,
            "experimental_multiRequestSupport": True,
            "vstestProvider": False,
            "attachmentsSupport": False,
            "attachmentsProvider": False,
            "multipleConnectionProvider": False,
        }
        return {
            "processId": os.getpid(),
            "serverInfo": {"name": "msp-bridge", "version": VERSION},
            "capabilities": {"testing": testing},
        }

    async def _discover(self, params: RunParams) -> Any:
        async with self._answering(params) as request:
            async with self._session.discover(request.selection, partial(self._tell, request)) as batches:
                async for files in batches:
                    for path, mutants in files.items():
                        request.found |= {mutant.id: KnownMutant.of(mutant) for mutant in mutants}
                        await self._update(request, path, [self._node(mutant, "discovered") for mutant in mutants])
        return {}

    async def _run(self, params: RunParams) -> Any:
        async with self._answering(params) as request:
            async with self._session.test(request.selection, partial(self._tell, request)) as batches:
                async for results in batches:
                    by_path: dict[str, list[Result]] = {}
                    for result in results:
                        request.found[result.mutant.id] = KnownMutant.of(result.mutant)
                        by_path.setdefault(result.mutant.path, []).append(result)
                    for path, found in by_path.items():
                        await self._update(request, path, await self._nodes_of(path, found))
        return {"attachments": []}

    async def _exit(self, _: Any) -> Any:
        """The requests that run are completed before."""
        await self._idle.wait()
        self._client.end()
        return {}

    @contextlib.asynccontextmanager
    async def _answering(self, params: RunParams) -> AsyncIterator[Request]:
        """Afterwards the client has been sent every node that it named, and the end."""
        self._running += 1
        self._idle.clear()
        try:
            if params.filter is not None:
                text = "params.filter: mutants can't be filtered by an expression: send their nodes as `tests`"
                raise RpcError(ErrorCode.INVALID_PARAMS, text)
            nodes = params.test_cases if params.tests is None else params.tests
            told = Told()
            selection = Selection() if nodes is None else await self._selection(nodes, told)
            missing = {node["uid"]: node for node in nodes or ()}
            request = Request(params.run_id, selection, missing, nodes is None, told)
            yield request
            known = {} if request.everything else self._known  # what the request has looked at is replaced
            self._known = {uid: one for uid, one in known.items() if uid not in request.missing} | request.found
            for file in told.of(UnusableFile):
                request.missing.pop(f"{GROUP}{file.path}", None)
            await self._notify(request, [{"parent": None, "node": _gone(node)} for node in request.missing.values()])
            for file in told.of(UnusableFile):
                node = {**self._group(file.path), "execution-state": "error", "error.message": str(file)}
                await self._notify(request, [{"parent": None, "node": node}])
            await self._notify(request, None)
            for remark in told.remarks:
                await self._client.notify("client/log", {"level": "Information", "message": one_line(remark)})
            told.check_files()
        except BridgeError as error:
            await self._client.notify("client/log", {"level": "Error", "message": one_line(str(error))})
            raise
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()

    async def _tell(self, request: Request, notice: Notice) -> None:
        """Keep a notice for the end; phases and failing tests are for the client's log."""
        await request.told.tell(notice)
        if isinstance(notice, PhaseReport | FailingTest):
            level = "Information" if isinstance(notice, PhaseReport) else "Warning"
            await self._client.notify("client/log", {"level": level, "message": one_line(str(notice))})

    async def _selection(self, nodes: Sequence[Node], told: Told) -> Selection:
        """The mutants of `nodes`. Nodes that this connection does not know are looked for in their files."""
        for at, node in enumerate(nodes):
            if not isinstance(node.get("uid"), str):
                raise RpcError(ErrorCode.INVALID_PARAMS, f"params: test node {at} has no uid, which must be a string")
        uids = {node["uid"] for node in nodes}
        found = {uid: self._known[uid] for uid in uids if uid in self._known}
        unknown = [node for node in nodes if node["uid"] not in found]
        if unknown:
            async with self._session.discover(_places(unknown), told.tell) as batches:
                async for files in batches:
                    for path, mutants in files.items():
                        whole = f"{GROUP}{path}" in uids
                        found |= {one.id: KnownMutant.of(one) for one in mutants if whole or one.id in uids}
        return Selection(mutants=tuple(found.values()))

    async def _update(self, request: Request, path: str, nodes: Sequence[Node]) -> None:
        """Send mutants of the file `path`, after the node of the file, their parent."""
        if not nodes:
            return
        changes: list[Any] = []
        if path not in request.files:
            request.files.add(path)
            group = self._group(path)
            request.missing.pop(group["uid"], None)
            changes.append({"parent": None, "node": group})
        for node in nodes:
            request.missing.pop(node["uid"], None)
            changes.append({"parent": f"{GROUP}{path}", "node": node})
        await self._notify(request, changes)

    async def _notify(self, request: Request, changes: Sequence[Any] | None) -> None:
        if changes is None or changes:
            params = {"runId": request.run_id, "changes": changes}
            await self._client.notify("testing/testUpdates/tests", params)

    async def _nodes_of(self, path: str, results: Sequence[Result]) -> Sequence[Node]:
        """Each result as two states: the platform's servers send both, and so late."""
        missed = any(result.status.undetected for result in results)
        source = await self._session.source(path) if missed else None
        nodes: list[Node] = []
        for result in results:
            nodes += (self._node(result.mutant, "in-progress"), self._tested(result, source))
        return nodes

    def _group(self, path: str) -> Node:
        return {
            "uid": f"{GROUP}{path}",
            "display-name": one_line(path),
            "node-type": "group",
            "location.file": str(self._session.root / path),
            "execution-state": "discovered",
            "traits": [],
        }

    def _node(self, mutant: Mutant, state: str) -> Node:
        start, end = mutant.location.start, mutant.location.end
        return {
            "uid": mutant.id,
            "display-name": f"{one_line(mutant.mutator)} ({start})",
            "node-type": "action",
            "location.file": str(self._session.root / mutant.path),
            "location.line-start": start.line,
            "location.line-end": end.line,
            "execution-state": state,
            "traits": [{"mutator": mutant.mutator}],
        }

    def _tested(self, result: Result, source: SourceText | None) -> Node:
        """Explorers show `assert.expected` and `assert.actual` as a diff: the code, and the undetected mutant."""
        status = result.status
        node = self._node(result.mutant, STATES[status])
        node["outcome-kind"] = status.value
        node["traits"].append({"status": status.value})
        if result.duration is not None:
            node["time.duration-ms"] = result.duration
        if status.undetected and source is not None:
            with contextlib.suppress(ValueError):  # the file has changed since
                diff = Diff.of(source, result.mutant)
                node["assert.expected"], node["assert.actual"] = "\n".join(diff.before), "\n".join(diff.after)
        message = MESSAGES.get(status) or (None if status.detected else result.status_reason)
        if message is not None:
            node["error.message"] = visible(message)
        return node


def _gone(node: Node) -> Node:
    """The final state of a node of the client whose mutant, or file with mutants, does not exist."""
    name, is_group = node.get("display-name"), node["uid"].startswith(GROUP)
    reason = "this file has no mutants" if is_group else "this mutant no longer exists, as its file has changed"
    return {
        "uid": node["uid"],
        "display-name": name if isinstance(name, str) else node["uid"],
        "node-type": "group" if is_group else "action",
        "execution-state": "skipped",
        "error.message": f"{reason}: discover again",
        "traits": [],
    }


def _places(nodes: Sequence[Node]) -> Selection:
    """Select the files of `nodes`, or the whole project when one of them names none."""
    files = {node.get("location.file") for node in nodes}
    if not all(isinstance(file, str) for file in files):
        return Selection()
    return Selection(targets=tuple(Target(str(file)) for file in files))

"""The dialect of the JSON-RPC test runner RFC: mutants as tests in test windows (docs/reference/test-runner.md).

Theory of operation
===================
A mutant is a test, which passes when the project's tests kill it. The client has a tree of nodes: the solution, which
is the workspace; a project for each tool; a namespace for each file; and a test for each mutant. It gets the nodes one
by one, parents first, and then their statuses.

An *operation* (start, run, invalidate) is on one node, and touches those below it and above it. Operations on
different nodes may overlap, while a node has one status. So:

- A node that an operation touches becomes `null`, `Queued`, `Running`, unless another operation has it `Running`
  already: then it stays so.
- A mutant gets its final status with its result. A node with children gets it when the last operation that touches it
  ends, because an earlier one would say that it is done while the others still test what is below it. Only the
  operation's own node always gets it, as the RFC wants one before the answer.
- The final status of a node with children says what is known of all mutants below it, of earlier operations too.

What this client has been sent lies in `ClientTree`: which nodes there are, and what became of each mutant. It is no
cache of a tool's state. It is needed since the client sends ids back, and nothing else.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from attrs import define, evolve, field, frozen

from msp_bridge.concurrency import shielded
from msp_bridge.dialects.converter import reads
from msp_bridge.dialects.dialect import Dialect
from msp_bridge.dialects.msp import wire_result
from msp_bridge.dialects.test_runner_tree import SOLUTION, STATUSES, ClientTree, File, TestStatus
from msp_bridge.jsonrpc.connection import Connection, Method, Service
from msp_bridge.jsonrpc.messages import ErrorCode, RpcError
from msp_bridge.model import Mutant, Result
from msp_bridge.notices import Told
from msp_bridge.rows import mutant_fields
from msp_bridge.session import Session
from msp_bridge.source import mutant_diff
from msp_bridge.text import one_line
from msp_bridge.workspace.selection import KnownMutant, Selection, Target

OPERATION_IN_PROGRESS = -32001  # section 8.2


@frozen
class StartParams:
    """`testrunner/start`."""


@frozen
class NodeParams:
    """`testrunner/run` and the others: the node that it is about."""

    id: str


@define(eq=False)
class Operation:
    """The effect of a request on the statuses of nodes."""

    id: str  # the node that it is on
    parents: Sequence[str]  # the nodes with children that get a final status when it ends, lowest first
    due: dict[str, None] = field(factory=dict)  # the mutants that have yet to get theirs
    touched: set[str] = field(factory=set)  # see `JsonRpcTestRunner._touched`


class JsonRpcTestRunner(Dialect):
    """Serves one client. A run tests the mutants below its node, and is answered when each has its status."""

    title: ClassVar[str] = "the JSON-RPC test runner protocol"

    def __init__(self, session: Session, client: Connection) -> None:
        super().__init__(session, client)
        self._tree = ClientTree()
        self._operations: set[str] = set()  # the nodes that they are on
        self._touched = Counter[str]()  # of how many operations a node has the status

    @property
    def service(self) -> Service:
        """The methods of the protocol."""
        node = reads(NodeParams)
        return Service(
            {
                "testrunner/start": Method(self._start, reads(StartParams)),
                "testrunner/run": Method(self._run, node),
                "testrunner/invalidate": Method(self._invalidate, node),
                "testrunner/debug": Method(self._debug),
                "testrunner/details": Method(self._details, node),
            }
        )

    async def _start(self, _: StartParams) -> Any:
        operation = Operation(SOLUTION, self._tree.parents(SOLUTION))
        return await self._perform(operation, self._discovered(operation, Selection(), TestStatus.IDLE))

    async def _invalidate(self, params: NodeParams) -> Any:
        id = params.id
        files = self._tree.below(id)
        is_mutant = self._tree.file_of(id) is not None
        operation = Operation(id, self._tree.parents_below(id), {id: None} if is_mutant else {})
        in_one_file = is_mutant or id in self._tree.files
        selection = _whole(files) if in_one_file else Selection()  # what is new in a project may be anywhere
        return await self._perform(operation, self._discovered(operation, selection, TestStatus.PASSED))

    async def _run(self, params: NodeParams) -> Any:
        id = params.id
        operation = Operation(id, self._tree.parents(id), dict.fromkeys(self._tree.mutants(id)))
        return await self._perform(operation, self._tested(operation))

    async def _debug(self, _: Any) -> Any:
        text = "a mutant can't be debugged: debug the tests that testrunner/details names, with its diff applied"
        raise RpcError(ErrorCode.METHOD_NOT_FOUND, text)

    async def _details(self, params: NodeParams) -> Any:
        id = params.id
        file = self._tree.file_of(id)
        if file is None:
            raise RpcError(ErrorCode.INVALID_PARAMS, f"params.id: there is no mutant {id[:100]!r}")
        mutant, result = file.mutants[id], file.results.get(id)
        sent = mutant_fields(mutant) if result is None else wire_result(result)
        return {**sent, "diff": mutant_diff(await self._session.source(mutant.path), mutant) or None}

    async def _perform(self, operation: Operation, work: Coroutine[Any, Any, None]) -> Any:
        """Do the work of an operation. Afterwards every node that it touches has its status.

        The work is a task of its own: a cancel is answered at once, and not when the tools have ended.
        """
        if operation.id in self._operations:
            work.close()
            raise RpcError(OPERATION_IN_PROGRESS, "Operation already in progress for this node")
        self._operations.add(operation.id)
        task = asyncio.create_task(work, name=f"operation on {operation.id}")
        sending: list[asyncio.Task[None]] = []

        def cancel() -> None:
            sending.append(asyncio.create_task(self._send_status(operation.id, TestStatus.CANCELLING)))
            task.cancel()

        try:
            await shielded(task, cancel)
        except asyncio.CancelledError:
            with contextlib.suppress(ConnectionError):  # it is closing
                await asyncio.gather(*sending)
                await self._ended(operation, TestStatus.CANCELLED)
            raise
        except Exception:
            await self._ended(operation, TestStatus.FAILED)
            raise
        finally:
            self._operations.discard(operation.id)
        return {"success": True}

    async def _tested(self, operation: Operation) -> None:
        """A run."""
        nodes = [*operation.parents, *operation.due]
        await self._touch(operation, nodes, TestStatus.QUEUED, TestStatus.RUNNING)
        told = Told()
        async with self._session.test(self._selection(operation.id), told.tell) as batches:
            async for results in batches:
                for result in results:
                    await self._finished(operation, result)
        told.check_files()
        await self._ended(operation)

    def _selection(self, id: str) -> Selection:
        if id == SOLUTION:
            return Selection()
        files = self._tree.below(id)
        mutant = files[0].mutants.get(id)
        return _whole(files) if mutant is None else Selection(mutants=(KnownMutant.of(mutant),))

    async def _finished(self, operation: Operation, result: Result) -> None:
        id = result.mutant.id
        file = self._tree.file_of(id)
        if file is None:  # its file has changed since it was discovered
            file = await self._registered(result.mutant.path, [result.mutant])
        file.results[id] = evolve(result, mutant=file.mutants[id])
        operation.due.pop(id, None)
        self._let_go(operation, id)
        await self._send_status(id, STATUSES[result.status])

    async def _discovered(self, operation: Operation, selection: Selection, status: TestStatus) -> None:
        """A start or an invalidation; `status` is the node's in the end, but Skipped that of a mutant that is gone."""
        if operation.id == SOLUTION:
            await self._register(SOLUTION, None, "solution", self._session.root.name, self._session.root)
        await self._touch(operation, [*operation.parents, *operation.due], TestStatus.DISCOVERING)
        before: dict[str, None] = {}
        for file in self._tree.below(operation.id):
            for mutant in [mutant for mutant in file.results if not self._touched[mutant]]:
                await self._send_status(mutant, None)
            file.results.clear()
            before |= dict.fromkeys(file.mutants)
        told, empty = Told(), True
        async with self._session.discover(selection, told.tell) as batches:
            async for files in batches:
                for path, mutants in files.items():
                    empty = empty and not mutants
                    await self._registered(path, mutants)
                    for found in mutants:
                        before.pop(found.id, None)
        if empty:
            told.check_files()
        for gone in before:
            operation.due.pop(gone, None)
            self._let_go(operation, gone)
            await self._send_status(gone, TestStatus.SKIPPED)
            self._tree.remove(gone)
        await self._ended(operation, status)

    async def _registered(self, path: str, mutants: Sequence[Mutant]) -> File:
        """The file's node, when the client knows it, the project's, and these mutants'."""
        file = self._tree.files.get(f"file:{path}")
        if file is None:
            tool = (await self._session.tools([path])).get(path, "")
            file = File(path, f"project:{tool}")
            if file.project not in self._tree.projects:
                await self._register(file.project, SOLUTION, "project", tool, None)
        if mutants:
            await self._register(file.id, file.project, "namespace", path, self._session.root / path)
        for mutant in mutants:
            self._tree.add(file, mutant)
            start = mutant.location.start
            name = f"{mutant.mutator} ({start})"
            await self._register(mutant.id, file.id, "test", name, self._session.root / path, start.line)
        return self._tree.files.get(file.id, file)

    async def _register(
        self, id: str, parent: str | None, kind: str, name: str, path: Path | None, line: int | None = None
    ) -> None:
        node = {
            "id": id,
            "displayName": one_line(name),
            "parentId": parent,
            "filePath": None if path is None else str(path),
            "lineNumber": line,
            "type": kind,
        }
        await self._client.notify("registerTest", {"test": node})

    async def _touch(self, operation: Operation, nodes: Iterable[str], *statuses: TestStatus) -> None:
        """The operation has the status of `nodes` from here on: `null`, and then `statuses`."""
        wanted = dict.fromkeys(nodes)
        fresh = [node for node in wanted if node == operation.id or not self._touched[node]]
        self._touched.update(wanted.keys())
        operation.touched |= wanted.keys()
        for status in (None, *statuses):
            for node in fresh:
                await self._send_status(node, status)

    def _let_go(self, operation: Operation, node: str) -> bool:
        """Whether the node's status is the operation's to say: another one may touch it still."""
        if node in operation.touched:
            operation.touched.discard(node)
            self._touched[node] -= 1
        return node == operation.id or not self._touched[node]

    async def _ended(self, operation: Operation, status: TestStatus | None = None) -> None:
        """Final statuses. `status` is the node's own; without one it is what is known of the mutants below it."""
        for mutant in list(operation.due):
            if self._let_go(operation, mutant):
                await self._send_status(mutant, status or TestStatus.SKIPPED)
            if status is None:  # it has got no result: it no longer exists
                self._tree.remove(mutant)
            del operation.due[mutant]
        others = status if status in (TestStatus.CANCELLED, TestStatus.FAILED) else TestStatus.IDLE
        for node in operation.parents:
            if not self._let_go(operation, node):
                continue
            if not self._tree.has(node):  # all below it is gone
                await self._send_status(node, TestStatus.SKIPPED)
            elif node == operation.id:
                await self._send_status(node, status or self._tree.known(node) or TestStatus.SKIPPED)
            else:
                await self._send_status(node, self._tree.known(node) or others)

    async def _send_status(self, node: str, status: TestStatus | None) -> None:
        await self._client.notify("updateStatus", {"id": node, "status": status and status.value})


def _whole(files: Iterable[File]) -> Selection:
    return Selection(targets=tuple(Target(file.path) for file in files))

"""Place: where a worker tests the mutants of one snapshot with one adapter; RunningChunk: the mutants that it tests.

`worker` has the theory of operation: who may use a place, and when it is closed.
"""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from attrs import define, field

from msp_bridge.adapter import Adapter, Mutant, Project, ReportsSurroundings, Scope
from msp_bridge.cluster.snapshot import ContentStore, SnapshotTree
from msp_bridge.cluster.wire import LEASE_S, Chunk, ChunkProgress, Order, Row, SnapshotEntry, WireError, differences
from msp_bridge.concurrency import at_most, in_thread
from msp_bridge.environment.distributions import installed, load
from msp_bridge.environment.interpreter import find_interpreter
from msp_bridge.errors import BridgeError, ToolError
from msp_bridge.notices import Notice, PhaseReport
from msp_bridge.phases import heard_by
from msp_bridge.rows import mutant_of, result_row
from msp_bridge.text import enumerated
from msp_bridge.toolkit.slot import Slot, size_of

LINKED_VARIABLE = "MSP_BRIDGE_CLUSTER_LINKED"  # a directory whose entries, such as node_modules, are linked into trees
SHOWN = 3  # differences in one sentence
log = logging.getLogger(__name__)

AHEAD = 4  # results that are not asked for yet, beyond which no mutant is begun


@define(eq=False)
class WorkerPlace:
    """A slot of the cache with a snapshot, and the adapter that is open on it."""

    slot: Slot
    key: tuple[str, str, str]
    client: str
    wanted: str  # the snapshot that it is for
    adapter: Adapter | None = None
    snapshot: str = ""  # that is in its tree
    users: int = 0  # chunks, and preparations
    used: float = field(factory=time.monotonic)
    _known: dict[str, dict[Mutant, Mutant]] = field(factory=dict)  # by file: the mutants with the handles of here
    _turn: asyncio.Lock = field(factory=asyncio.Lock)

    async def set_up(
        self, order: Order, entries: Mapping[str, SnapshotEntry], store: ContentStore, threads: int
    ) -> None:
        """The snapshot in its tree, and the adapter on it. Raises BridgeError."""
        async with self._turn:
            if self.snapshot == order.snapshot and self.adapter is not None:
                return
            self._known.clear()
            self.snapshot = ""
            linked = os.environ.get(LINKED_VARIABLE)
            tree = SnapshotTree(self.slot.directory / "tree" / order.tree, store, Path(linked) if linked else None)
            await in_thread(tree.materialise, entries)
            await in_thread(self._measure)
            if self.adapter is None:
                self.adapter = await in_thread(_opened, order.adapter, self._project(order, threads))
            self.snapshot = order.snapshot

    async def check(self, order: Order) -> None:
        """Raises ToolError unless verdicts depend on the same things here as at the client."""
        if order.surroundings is None or not isinstance(self.adapter, ReportsSurroundings):
            return
        here = await self.adapter.surroundings()
        if here is None:
            return
        found = differences(order.surroundings, here.values)
        if found:
            telling = (f"{order.adapter} ", "python ")  # of which one explains many others
            found.sort(key=lambda difference: not difference.startswith(telling))
            raise ToolError(
                enumerated(found, SHOWN, between="; "),
                "give workers and client the same interpreter, tool and packages",
            )

    async def matched(self, mutants: Sequence[Mutant]) -> tuple[dict[Mutant, int], list[int]]:
        """The mutants as discovered here, each with its place in `mutants`; and the places of those not found."""
        async with self._turn:
            new = frozenset(mutant.path for mutant in mutants) - self._known.keys()
            if new:
                assert self.adapter is not None
                found: dict[str, dict[Mutant, Mutant]] = {path: {} for path in new}
                async with contextlib.aclosing(self.adapter.discover(Scope(new))) as discovered:
                    async for mutant in discovered:
                        if isinstance(mutant, Notice):  # the client has listed the file, and was told
                            continue
                        found.setdefault(mutant.path, {})[mutant] = mutant
                self._known.update(found)
        matched, unmatched = {}, []
        for number, mutant in enumerate(mutants):
            known = self._known[mutant.path].get(mutant)
            if known is None:
                unmatched.append(number)
            else:
                matched[known] = number
        return matched, unmatched

    async def close(self) -> None:
        """End its processes, and let others have the slot."""
        async with self._turn:
            try:
                if self.adapter is not None:
                    await self.adapter.aclose()
            finally:
                await in_thread(self._measure)
                self.slot.release()

    def _measure(self) -> None:
        """Measure the slot, so that it counts when room is made, also when this worker is killed."""
        with contextlib.suppress(OSError):
            self.slot.note_size(size_of(self.slot.directory))

    def _project(self, order: Order, threads: int) -> Project:
        tree = self.slot.directory / "tree" / order.tree
        root = tree / order.folder
        return Project(
            root=root,
            cache=self.slot.directory / "cache" / order.adapter,
            config_file=None if order.config_file is None else tree / order.config_file,
            settings=order.settings,
            python=find_interpreter(root, opened=tree),
            jobs=threads,
            nested=order.nested,
            opened=tree,
            environment=order.environment,
        )


def _opened(name: str, project: Project) -> Adapter:
    """Raises BridgeError."""
    entry = installed().get(name)
    if entry is None:
        raise ToolError(f"there is no adapter {name}", "install the same there as here")
    adapter_class = load(entry)
    found = adapter_class.detect(project)
    if found is None:
        absent = adapter_class.absent(project)
        raise ToolError(f"{name} is not set up: {absent.text}", absent.remedy)
    return found


@define(eq=False)
class RunningChunk:
    """A chunk from the first question for its results on, or from its start, until it is ended."""

    place_of: Callable[[str], AbstractAsyncContextManager[WorkerPlace]]  # by the id of the order; raises BridgeError
    rows: list[Row] = field(factory=list)
    asked: float = field(factory=time.monotonic)
    lease: float = LEASE_S
    begun: bool = False
    ended: bool = False
    _expired: bool = False
    _after: int = 0  # results that the client has
    _unmatched: Sequence[int] = ()
    _failure: WireError | None = None
    _notices: dict[Notice, None] = field(factory=dict)
    _phase: PhaseReport | None = None
    _changed: asyncio.Event = field(factory=asyncio.Event)
    _taken: asyncio.Event = field(factory=asyncio.Event)
    _testing: asyncio.Task[None] | None = None

    async def run(self, chunk: Chunk) -> None:
        """Test it; what goes wrong is part of the progress."""
        if self.ended or self._testing is not None:  # the client has given it up meanwhile
            return
        self.begun, self.lease = True, chunk.lease
        self._testing = asyncio.create_task(self._test(chunk), name=f"chunk {chunk.id}")
        try:
            await asyncio.wait([self._testing])
        finally:
            await self.end()

    async def progress(self, after: int, wait: float) -> ChunkProgress:
        """Serve `worker.progress`."""
        self.asked, self._after = time.monotonic(), max(after, self._after)
        self._taken.set()
        deadline = self.asked + wait
        while len(self.rows) <= after and not self.ended and (left := deadline - time.monotonic()) > 0:
            self._changed.clear()
            async with at_most(left):
                await self._changed.wait()
        rows = self.rows[after:]
        return ChunkProgress(
            rows, self.begun, self.ended, self._expired, self._unmatched, self._failure, [*self._notices], self._phase
        )

    async def expire(self) -> bool:
        """End it, as its lease has run out. Returns whether there was anything left to test."""
        self._expired = not self.ended
        await self.end()
        return self._expired

    async def end(self) -> None:
        """End its tests, if they run. Returns when they have ended."""
        testing = self._testing
        if testing is not None:
            testing.cancel()
            await asyncio.wait([testing])
        self.ended = True
        self._changed.set()

    async def _test(self, chunk: Chunk) -> None:
        with heard_by(self._hear):
            self._failure = await failure_of(self._tested(chunk))

    def _hear(self, phase: PhaseReport) -> None:
        self._phase = phase

    async def _tested(self, chunk: Chunk) -> None:
        async with self.place_of(chunk.order) as place:
            matched, self._unmatched = await place.matched([mutant_of(row) for row in chunk.mutants])
            if not matched:
                return
            assert place.adapter is not None
            async with contextlib.aclosing(place.adapter.test(list(matched))) as results:
                async for result in results:
                    if isinstance(result, Notice):
                        self._notices[result] = None
                        continue
                    number = matched.pop(result.mutant, None)  # one result, whatever the adapter does
                    if number is not None:
                        self.rows.append([number, *result_row(result)])
                        self._changed.set()
                    while len(self.rows) - self._after >= AHEAD:
                        self._taken.clear()
                        await self._taken.wait()


async def failure_of(work: Awaitable[None]) -> WireError | None:
    """The error as the client gets it; None when the work was done."""
    try:
        await work
    except BridgeError as error:
        return WireError.of(error)
    except Exception as error:  # a fault of an adapter, which is no reason for the client to lose its other workers
        log.exception("a fault on a worker")
        return WireError("tool", f"{error!r}, a fault of the adapter", "please report it, with the worker's log")
    return None

"""The side of a worker: a place for each snapshot and adapter, and the chunks that are tested there.

Theory of operation
-------------------
The client calls the functions below through the scheduler: `greet`, `lacking` and `keep` bring the files, `prepare`
opens the adapter and says whether it would give the client's verdicts, `run_chunk` is the Dask task that tests, and
`progress` is asked for its results again and again. All of it runs in the worker's own event loop; what blocks, in
threads.

A `WorkerPlace` is a slot of the cache: the tree of a snapshot, the adapter that is open on it, and the adapter's own
cache. It stays warm from chunk to chunk and from request to request. While chunks run in it, its tree does not change:
a request with another snapshot has another place.

Each question renews a *lease*. A chunk that nobody asked for as long as its lease is cancelled, and its place closed:
so tests end when the client was killed, or the network is gone. A place that is not used for `IDLE_S` is closed as
well.

Back-pressure: the adapter's next result is awaited only while fewer than `AHEAD` results wait for the client.
"""

import asyncio
import contextlib
import logging
import platform
import time
from collections.abc import AsyncIterator, Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from msp_bridge import __version__
from msp_bridge.cluster.place import RunningChunk, WorkerPlace, failure_of
from msp_bridge.cluster.snapshot import DAYS, TREES_SIZE, ContentStore
from msp_bridge.cluster.wire import (
    IDLE_S,
    Chunk,
    ChunkProgress,
    Greeting,
    Order,
    SnapshotEntry,
    WireError,
)
from msp_bridge.concurrency import in_thread, shielded
from msp_bridge.environment.cache import cache_home, make_private
from msp_bridge.errors import ToolError
from msp_bridge.toolkit.slot import Slot

log = logging.getLogger(__name__)

LOOK_S = 1.0  # between two looks for what nobody wants any more
SLOTS = 256  # of one project, by all workers that share a cache
REMEMBERED = 32  # snapshots and orders
T = TypeVar("T")


async def greet(dask_worker: Any) -> Greeting:
    """Who this worker is; its form never changes, because the versions may differ."""
    return Greeting(__version__, str(dask_worker.name), int(dask_worker.state.nthreads), platform.python_version())


async def lacking(snapshot: str, entries: Mapping[str, SnapshotEntry] | None, dask_worker: Any) -> list[str] | None:
    """The digests of the files that the worker lacks of a snapshot.

    None when `entries` are needed for that: a snapshot that the worker has seen is named by its id alone.
    """
    state = _state(dask_worker)
    if entries is not None:
        _remember(state.snapshots, snapshot, entries)
    known = state.snapshots.get(snapshot)
    return None if known is None else await in_thread(state.store.lacking, known.values())


async def keep(files: Mapping[str, bytes], dask_worker: Any) -> WireError | None:
    """Write files into the store."""
    return await failure_of(_state(dask_worker).keep(files))


async def prepare(order: Order, dask_worker: Any) -> WireError | None:
    """Have everything ready for chunks of this order; the failure says why this worker can't be used."""
    return await failure_of(_state(dask_worker).prepare(order))


async def run_chunk(chunk: Chunk) -> int:
    """The Dask task: test the chunk. Returns how many results there were; `progress` gives them."""
    from distributed import get_worker

    running = _state(get_worker()).running(chunk.id)
    await running.run(chunk)
    return len(running.rows)


async def progress(chunk: str, after: int, wait: float, dask_worker: Any) -> ChunkProgress:
    """The results of a chunk from number `after` on, as soon as there are any, or after `wait` s; renews its lease."""
    return await _state(dask_worker).running(chunk).progress(after, wait)


async def renew(chunk: str, dask_worker: Any) -> None:
    """The client still wants the results of a chunk, though it asks for none now."""
    _state(dask_worker).running(chunk).asked = time.monotonic()


async def end_chunk(chunk: str, dask_worker: Any) -> None:
    """End a chunk that nobody wants more of. Returns when its tests have ended."""
    running = _state(dask_worker).running(chunk)  # perhaps before its start
    await running.end()
    running.asked = time.monotonic()  # forgotten when its lease has run out


async def release(client: str, dask_worker: Any) -> None:
    """Close all that was set up for this client. Returns when it is."""
    await _state(dask_worker).close(lambda place: place.client == client)


class WorkerState:
    """All that this bridge has on one worker."""

    def __init__(self, worker: Any) -> None:
        self._worker = worker
        self._home = cache_home() / "cluster"
        make_private(self._home, Path.home())
        self.store = ContentStore(self._home / "files")
        self._kept = False  # whether files came since the store was swept
        self.snapshots: dict[str, Mapping[str, SnapshotEntry]] = {}
        self._orders: dict[str, Order] = {}
        self._places: list[WorkerPlace] = []
        self._chunks: dict[str, RunningChunk] = {}
        self._preparing = asyncio.Lock()
        self._watching = asyncio.create_task(self._watch(), name="leases of chunks")

    async def prepare(self, order: Order) -> None:
        """Set up the order. Raises BridgeError."""
        _remember(self._orders, order.id, order)
        async with self.place(order) as place:
            await place.check(order)
        if self._kept:
            self._kept = False
            with contextlib.suppress(OSError):
                await in_thread(self.store.sweep)

    async def keep(self, files: Mapping[str, bytes]) -> None:
        """Write files into the store. Raises ToolError."""
        self._kept = True
        await in_thread(self.store.keep, files)

    def order(self, name: str) -> Order:
        """One that was prepared. Raises ToolError."""
        if name not in self._orders:
            raise ToolError("the worker does not know the order any more", "run it again")
        return self._orders[name]

    @contextlib.asynccontextmanager
    async def place(self, order: Order) -> AsyncIterator[WorkerPlace]:
        """The place of the order, with its snapshot set up. Raises BridgeError."""
        async with self._preparing:
            place = await self._chosen(order)
            place.users += 1
        try:
            entries = self.snapshots.get(order.snapshot)
            if entries is None and place.snapshot != order.snapshot:
                raise ToolError("the worker does not know the snapshot any more", "run it again")
            threads = int(self._worker.state.nthreads)
            await place.set_up(order, entries or {}, self.store, threads)
            yield place
        finally:
            place.users -= 1
            place.used = time.monotonic()

    async def _chosen(self, order: Order) -> WorkerPlace:
        """One with this snapshot; else an idle one of the same project, whose tree is brought up to date; else new."""
        own = [place for place in self._places if place.key == order.place]
        for place in sorted(own, key=lambda one: one.wanted != order.snapshot):
            if place.wanted == order.snapshot or not place.users:
                place.wanted = order.snapshot
                return place
        name = blake2b(repr(order.place[1:]).encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
        slot = await in_thread(lambda: Slot.claim(self._home, f"{order.tree}-{name}", SLOTS))
        await in_thread(lambda: Slot.sweep(self._home, days=DAYS, size=TREES_SIZE))
        place = WorkerPlace(slot, order.place, order.client, order.snapshot)
        self._places.append(place)
        return place

    def running(self, chunk: str) -> RunningChunk:
        """The chunk of this id; made at the first mention, which may be the question for its results."""
        if chunk not in self._chunks:
            self._chunks[chunk] = RunningChunk(lambda order: self.place(self.order(order)))
        return self._chunks[chunk]

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self._end_unwanted()
            except Exception:
                log.exception("a fault on a worker")

    async def _end_unwanted(self) -> None:
        now = time.monotonic()
        for name, chunk in [*self._chunks.items()]:
            if now - chunk.asked > chunk.lease:
                unwanted = await chunk.expire()
                del self._chunks[name]
                if unwanted:
                    log.warning("nobody has asked for the results of a chunk for %.0f s: it is ended", chunk.lease)
                    await self._close_unused(0)
        await self._close_unused(IDLE_S)

    async def _close_unused(self, idle: float) -> None:
        now = time.monotonic()
        await self.close(lambda place: not place.users and now - place.used > idle)

    async def close(self, is_over: Callable[[WorkerPlace], bool]) -> None:
        """Close the places that `is_over` is true of. Returns when they are."""
        closing = [place for place in self._places if is_over(place)]
        self._places = [place for place in self._places if place not in closing]
        for place in closing:
            await shielded(place.close())


_states: WeakKeyDictionary[Any, WorkerState] = WeakKeyDictionary()


def _state(worker: Any) -> WorkerState:
    if worker not in _states:
        _states[worker] = WorkerState(worker)
    return _states[worker]


def _remember(known: dict[str, T], name: str, value: T) -> None:
    known.pop(name, None)
    while len(known) >= REMEMBERED:
        del known[next(iter(known))]
    known[name] = value

"""One request on a cluster: chunks of mutants to the workers, each result once.

Theory of operation
-------------------
The problem. Workers come and go, hang, lack a tool, or have another one than the client. Whatever happens, each mutant
gets one result, it is the one that this machine would give, and nothing runs on when nobody wants it.

The parts. For each worker of the scheduler there is one task here, its *feeder*. It prepares the worker: sends what the
worker lacks of the snapshot, and has it open the adapter and compare what verdicts depend on. Then it keeps `AT_ONCE`
chunks at the worker, so that the worker has the next one when it ends one. A chunk is a Dask task for this worker
alone: it is in the scheduler's books, on its dashboard, and waits its turn among the tasks of other clients. The
results are asked for while it runs (`worker.progress`), because a task's value comes at its end. The scheduler is asked
every few seconds which workers there are: one that joins is fed, one that has left is lost.

The invariants.

- `_due` holds the mutants without a result. A result is given on only when it takes its mutant from there. So a chunk
  that was tested twice is reported once, by the first.
- A mutant is in `_due`, and then at exactly one of: `Chunks` (nobody has it), the chunks of a feeder, or `unmatched`
  (the caller tests it here). A feeder that ends, however it ends, puts back what it had.
- A worker is never fed again in this request once it was lost or refused. A worker that refuses, because its tool is
  missing or another one, or its tests fail without a mutant, is no reason to stop as long as another one tests.
- What was at a worker when that was lost is tested again one at a time, with nothing else at its worker, begun or not:
  nobody can know what the worker did last. So a mutant that ends workers is found, and no other is blamed. One that
  waits for its turn at a worker that is lost meanwhile was not there.
- A worker that has joined, or an answer, or a result is waited for no longer than `Bounds` say. The clock for a result
  runs only while its chunk does: it may wait behind chunks of others, but not for ever (`Bounds.begin`).
- What a worker says is checked (`answers`). One that breaks the rules is refused, and what it had is given out again;
  so is one that ends `EXPIRED` chunks in a row without a result, or answers at once without one.
- A chunk that its worker has ended because this process was suspended, and asked for nothing, is given out again.
- Results go through a queue of one. While nobody takes from it, no more results are asked for, and the worker starts no
  more mutants; but the chunk's lease is renewed, so that it does not run out.

Failures. When no worker is left, the request fails with the reason of the first that was refused, or says that there is
none. When the scheduler is gone, all feeders fail, and the first failure is raised. What was given on stays.
"""

import asyncio
import contextlib
import logging
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from typing import Any

from attrs import define, field

from msp_bridge.cluster import worker as remote
from msp_bridge.cluster.chunks import Chunks
from msp_bridge.cluster.connection import Bounds, LeaseExpired, SchedulerConnection, WorkerLost
from msp_bridge.cluster.preparing import Preparing
from msp_bridge.cluster.snapshot import Snapshot
from msp_bridge.cluster.wire import Chunk, ChunkAnswers, ChunkProgress, Order, Refused, breaks_the_rules, checked
from msp_bridge.concurrency import SharedLock, at_most, cancel_all, meanwhile
from msp_bridge.errors import BridgeError, ToolError
from msp_bridge.model import Mutant, Result, Status
from msp_bridge.notices import Notice, PhaseReport
from msp_bridge.phases import report_phase
from msp_bridge.rows import mutant_row

log = logging.getLogger(__name__)

AT_ONCE = 2  # chunks at a worker: one that it tests, and the next
LOOK_S = 2.0  # between two looks at which workers there are
EXPIRED = 10  # chunks that a worker may end, one after another, because nobody asked for their results


@define(eq=False)
class Dispatch:
    """One request. `say` reports to the user, once, why a worker is not used."""

    connection: SchedulerConnection
    order: Order
    snapshot: Snapshot
    mutants: Sequence[Mutant]
    say: Callable[[str], None]
    used: set[str] = field(factory=set)  # workers that have something of this client, added to
    bounds: Bounds = field(factory=Bounds)
    unmatched: list[Mutant] = field(factory=list, init=False)  # which no worker lists; due still
    preparing: Preparing = field(init=False)
    _due: dict[Mutant, None] = field(init=False)
    _chunks: Chunks = field(init=False)
    _results: asyncio.Queue[Result | Notice] = field(factory=lambda: asyncio.Queue(1), init=False)
    _feeders: dict[str, asyncio.Task[None]] = field(factory=dict, init=False)
    _ready: set[str] = field(factory=set, init=False)  # workers that are fed
    _lost: set[str] = field(factory=set, init=False)  # these and the refused ones are not fed again
    _refused: set[str] = field(factory=set, init=False)
    _given_up: list[Mutant] = field(factory=list, init=False)  # with which workers were lost again and again
    _refusals: list[BridgeError] = field(factory=list, init=False)
    _wake: asyncio.Event = field(factory=asyncio.Event, init=False)
    _told: set[Notice] = field(factory=set, init=False)  # several workers leave out the same test
    _phase: PhaseReport | None = field(default=None, init=False)
    _taken: dict[str, float] = field(factory=dict, init=False)  # by worker: when its last result was taken
    _expired: Counter[str] = field(factory=Counter, init=False)  # by worker: chunks that it ended since its last result

    def __attrs_post_init__(self) -> None:
        self._due = dict.fromkeys(self.mutants)
        self._chunks = Chunks.of(self._due)
        self.preparing = Preparing(self.connection, self.order, self.snapshot, self.used, self.bounds)

    async def results(self) -> AsyncGenerator[Result | Notice, None]:
        """Each as soon as it is known; none for mutants that are `unmatched` then. Raises BridgeError.

        Closing it ends the tests on all workers.
        """
        async with meanwhile(self._feed(), "feeding the cluster") as feeding:
            while self._waiting:
                taking = asyncio.ensure_future(self._results.get())
                await asyncio.wait([taking, feeding], return_when=asyncio.FIRST_COMPLETED)
                if not taking.done():
                    taking.cancel()
                    feeding.result()  # raises what ended it
                    break
                result = taking.result()
                if isinstance(result, Notice):
                    yield result
                elif result.mutant in self._due:
                    del self._due[result.mutant]
                    yield result
            for mutant in self._given_up:
                yield Result(mutant, Status.IGNORED, status_reason=GIVEN_UP, reusable=False)

    @property
    def _waiting(self) -> bool:
        return len(self._due) > len(self.unmatched) + len(self._given_up)

    async def _feed(self) -> None:
        """Has a feeder for each worker until no result is waited for; raises what ends the request."""
        loop = asyncio.get_running_loop()
        alone_since = loop.time()
        try:
            while self._waiting:
                await self._look(await self.connection.workers())
                if self._feeders:
                    alone_since = loop.time()
                else:
                    in_vain = self._refusals and not self._lost
                    if in_vain or loop.time() - alone_since > self.bounds.join:
                        raise self._nobody()
                self._wake.clear()
                async with at_most(LOOK_S):
                    await self._wake.wait()
        finally:
            await cancel_all([*self._feeders.values()])

    async def _look(self, workers: Collection[str]) -> None:
        """A feeder for each new worker, none for one that has left. Raises what a feeder has raised."""
        self._forget_ended()
        for address in self._feeders.keys() - workers:
            self._lose(address, "it has left the cluster")
            await cancel_all([self._feeders[address]])
        self._forget_ended()
        for address in workers - self._feeders.keys() - self._lost - self._refused:
            self._feeders[address] = asyncio.create_task(self._feeder(address), name=f"feeding {address}")

    def _forget_ended(self) -> None:
        for address, feeder in [*self._feeders.items()]:
            if feeder.done():
                del self._feeders[address]
                if not feeder.cancelled():
                    feeder.result()

    def _nobody(self) -> BridgeError:
        if self._refusals:
            return self._refusals[0]
        return ToolError(
            f"the cluster {self.connection.address} has no worker that can test",
            "start one with `dask worker`; `msp-bridge doctor --cluster` shows what each lacks",
        )

    def _lose(self, address: str, reason: object) -> None:
        known = address in self._lost
        self._lost.add(address)
        if self._waiting and not known:
            self.say(f"the worker {address} was lost: {reason}; what it was testing is tested elsewhere")

    async def _feeder(self, address: str) -> None:
        """Feed a worker until nothing is left, or it can't be used. Raises ToolError when the scheduler is gone."""
        try:
            await self.preparing.prepare(address)
            self._ready.add(address)
            await self._feed_one(address)
        except WorkerLost as error:
            self._lose(address, error)
        except Refused as error:
            self._refused.add(address)
            self._refusals.append(error.reason)
            self.say(f"the worker {address} is not used: {error.reason}")
        finally:
            self._ready.discard(address)
            self._chunks.leave(address)
            self._wake.set()

    async def _feed_one(self, address: str) -> None:
        lock = SharedLock()
        try:
            async with asyncio.TaskGroup() as lines:
                for _ in range(AT_ONCE):
                    lines.create_task(self._line(address, lock))
        except BaseExceptionGroup as group:
            raise _first(group) from None

    async def _line(self, address: str, lock: SharedLock) -> None:
        """One chunk after another, while something is left that this worker could get."""
        while self._waiting:
            mutants = self._chunks.take(address, len(self._ready))
            if mutants:
                await self._chunk(address, mutants, lock)
                self._wake.set()
            else:  # another worker may be lost yet
                await asyncio.sleep(LOOK_S)

    async def _chunk(self, address: str, mutants: Sequence[Mutant], lock: SharedLock) -> None:
        left = dict.fromkeys(mutants)  # which this feeder answers for
        given = False
        try:
            async with lock.alone() if self._chunks.were_lost(mutants) else lock.shared():
                if address in self._lost:  # while this waited for the other line, whose task has not ended yet
                    raise WorkerLost("it was lost before")
                given = True
                await self._tested(address, mutants, left)
        except LeaseExpired:
            self._expired[address] += 1
            if self._expired[address] >= EXPIRED:
                raise breaks_the_rules(f"it ended {EXPIRED} chunks without a result") from None
            log.info("the worker %s has ended a chunk that nobody asked for: it is given out again", address)
        except BaseException as error:
            if isinstance(error, WorkerLost):
                self._lose(address, error)  # at once: the other line is cancelled now, and may have had the culprit
            if given and address in self._lost:
                self._given_up += self._chunks.lost([*left])
                left.clear()
            raise
        finally:
            self._chunks.put_back(left)

    async def _tested(self, address: str, mutants: Sequence[Mutant], left: dict[Mutant, None]) -> None:
        """Gives the results on, and takes from `left` what was answered for.

        Raises LeaseExpired, WorkerLost, Refused, ToolError.
        """
        chunk = Chunk(uuid.uuid4().hex, self.order.id, [mutant_row(mutant) for mutant in mutants], self.bounds.lease)
        future = self.connection.submit(address, remote.run_chunk, chunk, chunk.id)
        ended = False
        try:
            async with contextlib.aclosing(self._progress(address, chunk.id, mutants, future)) as answers:
                async for progress, results in answers:
                    ended = progress.ended
                    self._show(progress.phase)
                    for notice in progress.notices:
                        if notice not in self._told:
                            self._told.add(notice)
                            await self._give_on(address, chunk.id, notice)
                    for result in results:
                        await self._give_on(address, chunk.id, result)
                        left.pop(result.mutant, None)
            if progress.failure is not None:
                raise Refused(progress.failure.error(address))
            self._without_result(left, [mutants[number] for number in progress.unmatched])
        finally:
            if not ended:  # one that does not answer ends when its lease runs out
                await self.connection.take_leave(address, remote.end_chunk, chunk.id, within=self.bounds.end)
            future.release()

    def _show(self, phase: PhaseReport | None) -> None:
        """Report what a worker is busy with; of several workers the last one that has come further."""
        if phase is not None and phase != self._phase:
            begins = self._phase is None or phase.name != self._phase.name
            self._phase = phase
            report_phase(phase.name, phase.done, phase.total, phase.test, begins=begins)

    def _without_result(self, left: dict[Mutant, None], unmatched: Sequence[Mutant]) -> None:
        """Mutants that an ended chunk gave no result for: the caller deals with them."""
        for mutant in unmatched:
            self.unmatched.append(mutant)
            left.pop(mutant, None)
        for mutant in left:
            self._due.pop(mutant, None)
        left.clear()

    async def _give_on(self, address: str, chunk: str, result: Result | Notice) -> None:
        """Give a result to the caller; as long as nobody waits for one, renew the lease."""
        putting = asyncio.ensure_future(self._results.put(result))
        try:
            while not (await asyncio.wait([putting], timeout=self.bounds.ask))[0]:
                self._taken[address] = asyncio.get_running_loop().time()
                await self.connection.call(address, remote.renew, chunk, within=self.bounds.answer)
        finally:
            putting.cancel()
            self._taken[address] = asyncio.get_running_loop().time()

    async def _progress(
        self, address: str, chunk: str, mutants: Sequence[Mutant], future: Any
    ) -> AsyncGenerator[tuple[ChunkProgress, list[Result]], None]:
        """The worker's answers, each with its results, until the chunk has ended there.

        Raises LeaseExpired, WorkerLost, Refused, ToolError for the scheduler.
        """
        loop = asyncio.get_running_loop()
        after, start, begun, said = 0, loop.time(), False, ChunkAnswers(mutants)
        ask, within = self.bounds.ask, self.bounds.ask + self.bounds.answer
        while True:
            asked = loop.time()
            answer = await self.connection.call(address, remote.progress, chunk, after, ask, within=within)
            progress, results = checked(said.read, answer)
            if not (results or progress.ended) and loop.time() - asked < ask / 2:
                raise breaks_the_rules("it answers without a result, and does not wait for one")
            if progress.begun and not begun:
                start, begun = loop.time(), True
            limit = self.bounds.result if begun else self.bounds.begin
            if results:
                self._expired.pop(address, None)
            elif loop.time() - max(start, self._taken.get(address, start)) > limit:
                raise WorkerLost(f"there was no result for {limit:g} s")
            if not progress.begun and future.status in ("error", "cancelled", "lost"):
                raise WorkerLost(f"its task could not run: {future.status}")
            after += len(results)
            yield progress, results
            if progress.expired or (not progress.begun and future.status == "finished"):
                raise LeaseExpired
            if progress.ended:
                return


GIVEN_UP = "not tested: workers of the cluster were lost while they tested it"


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first

"""Choice: whether a request is tested here or by the workers; Chunks: which mutants a worker gets next.

Here and cluster are each measured whenever they test: the time to the first result, and the time for each result after
that, with the jobs or the workers that they have. Time in which nobody takes a result doesn't count. By its last
measure a side would need `Pace.seconds` for a request; the faster one gets it.

A measure holds as long as workers keep an adapter open (`IDLE_S`), and until a request fails. A side's first request is
no measure: it opens the adapter and runs the tests without mutants. While a side has none, the number of mutants
decides: up to `LOCAL_MUTANTS` for each job are tested here.

A chunk follows the files: a worker goes on with the file that it is at, then takes the file with the most mutants that
no other worker is at. So a file is discovered, and its mutated code prepared, on few workers. Chunks shrink: each is a
part of what is left for all (guided self-scheduling), down to one mutant, so that all workers end at about one time.
What was lost with a worker is given out again, one mutant at a time, because one of them may be what ends workers.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

from attrs import define, field, frozen

from msp_bridge.cluster.wire import IDLE_S
from msp_bridge.errors import BridgeError
from msp_bridge.model import Mutant, Result
from msp_bridge.notices import Notice

LOCAL_MUTANTS = 8  # for each job: so many are tested here before a worker has opened the adapter
LARGEST = 32  # mutants: a chunk that is lost is tested again, and a cancel waits for few
SHARE = 3  # chunks that each worker gets of what is left, if all go on as now
LOSSES = 3  # chunks of this mutant that workers were lost with; then it isn't given out again


@frozen
class Pace:
    """How fast one side was in one request, in seconds."""

    first: float  # to the first result
    each: float  # for each further one

    def seconds(self, mutants: int) -> float:
        """For a request of so many mutants."""
        return self.first + (mutants - 1) * self.each


@define(eq=False)
class Side:
    """One of the two places to test at, and its last pace."""

    clock: Callable[[], float] = time.monotonic
    _pace: Pace | None = None
    _used: float | None = None  # when its last request ended

    @property
    def pace(self) -> Pace | None:
        """The pace of its last request, unless that was long ago or opened the adapter."""
        return self._pace if self._is_warm else None

    @property
    def _is_warm(self) -> bool:
        return self._used is not None and self.clock() - self._used < IDLE_S

    async def timed(self, results: AsyncGenerator[Result | Notice, None]) -> AsyncGenerator[Result | Notice, None]:
        """The same results of one request; the side learns its pace. Closing this leaves `results` open."""
        warm, waited, came = self._is_warm, 0.0, list[float]()
        try:
            while True:
                began = self.clock()
                result = await anext(results, None)
                waited += self.clock() - began
                if result is None:
                    return
                if isinstance(result, Result):
                    came.append(waited)
                yield result
        except BridgeError:
            came.clear()
            self._pace = self._used = None
            raise
        finally:
            if came:
                self._note(came, warm)

    def _note(self, came: list[float], warm: bool) -> None:
        """`came` has the seconds of waiting after which each result came."""
        if not warm:
            self._pace = None
        elif len(came) > 1:
            self._pace = Pace(came[0], (came[-1] - came[0]) / (len(came) - 1))
        else:
            self._pace = Pace(came[0], came[0] if self._pace is None else self._pace.each)
        self._used = self.clock()


@define(eq=False)
class PlaceChoice:
    """For one adapter, request by request."""

    local_mutants: int  # in all, while a side has no pace; 0: all go to the cluster, always
    here: Side = field(factory=Side)
    cluster: Side = field(factory=Side)

    def is_local(self, mutants: int) -> bool:
        """Whether a request of so many mutants is to be tested here."""
        here, there = self.here.pace, self.cluster.pace
        if not self.local_mutants or here is None or there is None:
            return mutants <= self.local_mutants
        return here.seconds(mutants) <= there.seconds(mutants)


@define(eq=False)
class Chunks:
    """The mutants of one request that no worker has, by file; in the order in which they came."""

    _pending: dict[str, dict[Mutant, None]] = field(factory=dict)
    _at: dict[str, str] = field(factory=dict)  # worker to file
    _losses: Counter[Mutant] = field(factory=Counter)

    @classmethod
    def of(cls, mutants: Iterable[Mutant]) -> Chunks:
        """Make the chunks of all mutants of a request."""
        chunks = cls()
        for mutant in mutants:
            chunks._add(mutant)
        return chunks

    @property
    def left(self) -> int:
        """Mutants that no worker has."""
        return sum(map(len, self._pending.values()))

    def take(self, worker: str, workers: int) -> list[Mutant]:
        """The next chunk for `worker`, one of `workers`; empty when nothing is left."""
        size = max(1, min(LARGEST, self.left // (SHARE * max(workers, 1))))
        chunk: list[Mutant] = []
        while len(chunk) < size and self._pending:
            path = self._next_file(worker)
            self._at[worker] = path
            file = self._pending[path]
            lost_before = [mutant for mutant in file if self._losses[mutant]]
            if lost_before and chunk:
                break
            found = lost_before[:1] or [*file][: size - len(chunk)]
            for mutant in found:
                del file[mutant]
            if not file:
                del self._pending[path]
            chunk += found
            if lost_before:
                break
        return chunk

    def were_lost(self, mutants: Iterable[Mutant]) -> bool:
        """Whether a worker was lost with one of them."""
        return any(self._losses[mutant] for mutant in mutants)

    def put_back(self, mutants: Iterable[Mutant]) -> None:
        """Take back the mutants that a worker did not begin."""
        for mutant in mutants:
            self._add(mutant)

    def lost(self, mutants: Sequence[Mutant]) -> list[Mutant]:
        """Take back the mutants of a lost worker. Returns the ones that are not given out again."""
        given_up = []
        for mutant in mutants:
            self._losses[mutant] += 1
            if self._losses[mutant] >= LOSSES:
                given_up.append(mutant)
            else:
                self._add(mutant)
        return given_up

    def leave(self, worker: str) -> None:
        """The worker gets no more."""
        self._at.pop(worker, None)

    def _add(self, mutant: Mutant) -> None:
        self._pending.setdefault(mutant.path, {})[mutant] = None

    def _next_file(self, worker: str) -> str:
        current = self._at.get(worker)
        if current in self._pending:
            return current
        elsewhere = {path for other, path in self._at.items() if other != worker}
        return max(self._pending, key=lambda path: (path not in elsewhere, len(self._pending[path])))

"""Choice: whether a request is tested here or by the workers, by which of the two would have the results first.

Here and cluster are each measured whenever they test: the time to the first result, and the time for each result after
that, with the jobs or the workers that they have. Time in which nobody takes a result doesn't count. By its last
measure a side would need `Pace.seconds` for a request; the faster one gets it.

A measure holds as long as workers keep an adapter open (`IDLE_S`), and until a request fails. A side's first request is
no measure: it opens the adapter and runs the tests without mutants. While a side has none, the number of mutants
decides: up to `LOCAL_MUTANTS` for each job are tested here.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable

from attrs import define, field, frozen

from msp_bridge.cluster.wire import IDLE_S
from msp_bridge.errors import BridgeError
from msp_bridge.model import Result
from msp_bridge.notices import Notice

LOCAL_MUTANTS = 8  # for each job: so many are tested here before a worker has opened the adapter


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

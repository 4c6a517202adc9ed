"""The queue of jobs that the scheduler sends: which goes next, which have a guard, and which run while no other does.

Theory of operation
-------------------
Where each job has a world of its own, all run side by side. Elsewhere (`Sharing.GUARD`) a job first runs with a guard
(`isolation.guard`). If that ends it, nothing has happened, and the job runs again *exclusively*: it begins when no
other job runs, and none begins until it is gone. Another one could read what it writes. The test in which a guard has
ended a job is remembered: later jobs with it are exclusive at once. So are fresh jobs after `COLLECTIONS` in a row that
a guard has ended before their first test. Where there is no guard, every job is exclusive.

With `Sharing.GUARD` the measurement of all tests is a job, too. It has no guard, and goes before all exclusive jobs: it
must not find what these leave behind. Jobs with a guard go before it, so a kill does not wait for the whole suite:
until none has run for `QUIET_S`, and no longer than it yields to them.

No more jobs run at once than the bridge asks for, but for one of each request that has none running. Those of the
newest request go first, then those of the mutant that came first, whose verdict is nearest; runs for no mutant alone
(their ids are negative) go last, or kills would wait for all of them. What runs is not ended for them: they wait for
its end, or its time limit.
"""

from __future__ import annotations

import contextlib
import enum
import os
import signal
import time
from bisect import insort
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from ...isolation import descendants, guard
from .messages import Ended

WAIT_S = 1.0
ALONE_S = 5.0
COLLECTIONS = 3
QUIET_S = 0.5
PER_CPU = 2  # busy processes; a test then gets a third of a CPU


class Sharing(enum.Enum):
    """How jobs are kept from disturbing each other."""

    APART = "each has a world of its own"
    GUARD = "each has a guard, or is exclusive"
    NONE = "each is exclusive"


class Kind(enum.Enum):
    """The work of a job beside running tests."""

    LIVE = "nothing"
    FRESH = "it collects the tests"
    WRITES = "it prints to the log"
    MEASURES = "it notes what each test runs"


@dataclass(frozen=True)
class Queued:
    """A job that waits or runs. `start` sends it to its server: whether it has a guard."""

    id: int
    start: Callable[[bool], None]
    kind: Kind = Kind.LIVE
    batch: int = 0  # the user's request; the newest has the highest number
    tests: Sequence[int] = ()  # that it runs; none where that is not known
    alone: bool = False
    loaded: bool = False
    sharing: Sharing = Sharing.APART  # as the queue decides
    unwanted: bool = False  # nobody waits for it
    once: bool = False  # it does not run again when a guard has ended it


class JobQueue:
    """At most `jobs` run at once, the newest request's first, and none beside one that is to be alone.

    A job that runs `alone` has no other beside it; `loaded`: busy processes instead, for which it is alone as well.
    Neither lasts for ever: the job of an older request may be an endless loop: it waits for others for `WAIT_S`,
    and keeps others waiting for `ALONE_S`, whatever they do. An exclusive job waits, and keeps waiting, without end.
    """

    def __init__(self, sharing: Sharing, jobs: int) -> None:
        self._sharing, self.jobs = sharing, jobs
        self._running: dict[int, Queued] = {}
        self._waiting: list[Queued] = []
        self._lasting: set[int] = set()  # tests in which a guard has ended a job
        self._collections = 0  # in which a guard has ended one, in a row
        self._alone: int | None = None  # the id of the job that runs so, until `_deadline`
        self._deadline = 0.0  # time.monotonic(); of a job that waits to be alone, too; 0: there is none
        self._measurement: Queued | None = None  # while it waits
        self._yields_until = self._quiet_at = 0.0  # time.monotonic()
        self._load = Load()

    @property
    def idle(self) -> bool:
        """Whether no job runs or waits."""
        return not self._running and not self._waiting and self._measurement is None

    @property
    def guards(self) -> bool:
        """Whether jobs have a guard, where they are not exclusive."""
        return self._sharing is Sharing.GUARD

    @property
    def measures(self) -> bool:
        """Whether other jobs wait for a measurement."""
        return self._is_due or any(job.kind is Kind.MEASURES for job in self._running.values())

    def submit_measurement(self, id: int, start: Callable[[], None], yields_s: float) -> None:
        """Start it now or later; it runs until `release`. For `yields_s` jobs with a guard may go before it."""
        self._measurement = Queued(id, lambda _: start(), Kind.MEASURES, sharing=Sharing.NONE)
        self._quiet_at = time.monotonic() + QUIET_S
        self._yields_until = time.monotonic() + yields_s
        self._waiting.sort(key=self._turn)
        self._advance()

    def submit(self, job: Queued) -> None:
        """Start it now or later."""
        self._quiet_at = time.monotonic() + QUIET_S
        exclusive = self._sharing is Sharing.GUARD and self._would_end(job)
        self._wait(replace(job, sharing=Sharing.NONE if exclusive else self._sharing, alone=job.alone or job.loaded))
        self._advance()

    def _would_end(self, job: Queued) -> bool:
        """Whether a guard would end the job, as far as is known."""
        collects = job.kind is Kind.FRESH and self._collections >= COLLECTIONS
        return job.kind is Kind.WRITES or collects or not self._lasting.isdisjoint(job.tests)

    def without_effects(self, tests: Sequence[int]) -> list[int]:
        """The tests of `tests` that a job with a guard may pass."""
        return [test for test in tests if test not in self._lasting]

    def ended(self, answer: Ended) -> bool:
        """The job is gone; False: it was ended by its guard, and runs again."""
        job = self._running.pop(answer["id"], None)
        self._quiet_at = time.monotonic() + QUIET_S
        if answer["id"] == self._alone:
            self._share()
        again = False
        if job is not None and job.sharing is Sharing.GUARD and not job.unwanted:
            ended = is_ended_by_guard(answer)
            self._learn(job, answer, ended=ended)
            if again := ended and not job.once:
                self._wait(replace(job, sharing=Sharing.NONE))
        self._advance()
        return not again

    def release(self, id: int) -> None:
        """End what is no job of a server, if it runs."""
        if id in self._running:
            self.ended(Ended(id=id, exit=0, kill_reason="", report=None, tests=0, seconds=0.0))

    def _learn(self, job: Queued, answer: Ended, *, ended: bool) -> None:
        """Note what its guard has `ended` it at, if it did."""
        if job.kind is Kind.FRESH and not (ended and answer["tests"]):
            self._collections = self._collections + 1 if ended else 0
        elif ended:
            self._lasting.update(job.tests[answer["tests"] :][:1])

    def withdraw(self, ids: Collection[int]) -> list[Ended]:
        """Forget those of the jobs that have not started: how they have ended. No other of them runs again."""
        found = [job.id for job in self._waiting if job.id in ids]
        self._waiting = [job for job in self._waiting if job.id not in ids]
        if self._measurement is not None and self._measurement.id in ids:
            self._measurement = None
        for id in self._running.keys() & set(ids):
            self._running[id] = replace(self._running[id], unwanted=True)
        self._advance()
        return [Ended(id=id, exit=0, kill_reason="stopped", report=None, tests=0, seconds=0.0) for id in found]

    def clear(self) -> None:
        """No job runs or waits any more."""
        self._running.clear()
        self._waiting.clear()
        self._measurement = None
        self._share()

    @property
    def wait_s(self) -> float | None:
        """When `look` is to be called; None: there is no need to."""
        moments = [self._deadline] if self._deadline else []
        if self._measurement is not None and not self._running:
            moments.append(min(self._quiet_at, self._yields_until))
        return max(0.0, min(moments) - time.monotonic()) if moments else None

    def look(self) -> None:
        """Perhaps somebody has waited for long enough."""
        if self._deadline and time.monotonic() >= self._deadline:
            if self._alone is not None:
                self._share()
                self._advance()
            else:
                self._deadline = 0.0  # where the job is held up by something else, it waits once more
                self._advance(impatient=True)
        elif self._is_due:
            self._advance()

    @property
    def _is_due(self) -> bool:
        """Whether the measurement waits for nothing but jobs that run."""
        if self._measurement is None:
            return False
        return time.monotonic() >= (self._yields_until if self._running else min(self._quiet_at, self._yields_until))

    def _wait(self, job: Queued) -> None:
        insort(self._waiting, job, key=self._turn)

    def _turn(self, job: Queued) -> tuple[bool, int, bool, int]:
        is_late = self._measurement is not None and job.sharing is Sharing.NONE
        return is_late, -job.batch, job.id < 0, job.id

    def _share(self) -> None:
        """Others may run now."""
        self._alone, self._deadline = None, 0.0
        self._load.end()

    def _advance(self, *, impatient: bool = False) -> None:
        while self._waiting and self._alone is None and not self._is_held_up():
            if self._waiting[0].alone and self._running and not impatient:
                self._deadline = self._deadline or time.monotonic() + WAIT_S
                return
            self._start(self._waiting.pop(0))
            impatient = False
        if self._measurement is not None and self._is_due and not self._running:
            measurement, self._measurement = self._measurement, None
            self._waiting.sort(key=self._turn)
            self._start(measurement)
        if not self._waiting and self._alone is None:
            self._deadline = 0.0

    def _is_held_up(self) -> bool:
        """Whether as many run as may, or the next one is exclusive and others run, or one that runs is."""
        running, next_one = self._running.values(), self._waiting[0]
        if self._measurement is not None and (self._is_due or next_one.sharing is Sharing.NONE):
            return True
        if len(running) >= self.jobs and any(job.batch == next_one.batch for job in running):
            return True
        return bool(running) and any(job.sharing is Sharing.NONE for job in (*running, next_one))

    def _start(self, job: Queued) -> None:
        self._running[job.id] = job
        self._deadline = 0.0
        if job.alone:
            self._alone, self._deadline = job.id, time.monotonic() + ALONE_S
        if job.loaded:
            self._load.start()
        job.start(job.sharing is Sharing.GUARD)


def is_ended_by_guard(answer: Ended) -> bool:
    """Whether a guard has ended the job, and no limit, nor a stop."""
    return answer["exit"] == guard.ENDED and not answer["kill_reason"] and answer["report"] is None


class Load:
    """Between `start` and `end` all CPUs are busy. For a process with a single thread, the host."""

    def __init__(self) -> None:
        self._processes: list[int] = []

    def start(self) -> None:
        """Idempotent. As many processes as the machine gives us."""
        with contextlib.suppress(OSError):
            while len(self._processes) < PER_CPU * (os.cpu_count() or 1):
                pid = os.fork()
                if pid == 0:
                    _be_busy()
                self._processes.append(pid)

    def end(self) -> None:
        """Idempotent."""
        for pid in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        descendants.reap(self._processes)
        self._processes.clear()


def _be_busy() -> NoReturn:
    descendants.die_with_parent()
    os.closerange(0, 4096)  # the ends of the host's channels must close with the host
    parent = os.getppid()
    while os.getppid() == parent:
        pass
    os._exit(0)

"""The queue of jobs that the scheduler sends: some run while no other does, and some beside busy processes."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NoReturn

from ...isolation import descendants

WAIT_S = 1.0
ALONE_S = 5.0
PER_CPU = 2  # busy processes; a test then gets a third of a CPU


@dataclass(frozen=True)
class Queued:
    """A job that waits. `start` sends it to its server."""

    id: int
    start: Callable[[], None]
    alone: bool
    loaded: bool


class JobQueue:
    """Jobs start in the order of their submission, at once, unless one of them has to be alone.

    A job that runs `alone` has no other beside it; `loaded`: busy processes instead, for which it is alone as well.
    Neither lasts for ever: the job of an older request may be an endless loop: it waits for others for `WAIT_S`,
    and keeps others waiting for `ALONE_S`, whatever they do.
    """

    def __init__(self) -> None:
        self._running: set[int] = set()
        self._waiting: deque[Queued] = deque()
        self._alone = False  # the job that runs, until `_deadline`
        self._alone_id = 0
        self._deadline = 0.0  # time.monotonic(); of a job that waits to be alone, too; 0: there is none
        self._load = Load()

    @property
    def idle(self) -> bool:
        """Whether no job runs or waits."""
        return not self._running and not self._waiting

    def submit(self, id: int, start: Callable[[], None], *, alone: bool = False, loaded: bool = False) -> None:
        """Start it now or later."""
        self._waiting.append(Queued(id, start, alone or loaded, loaded))
        self._advance()

    def ended(self, id: int) -> None:
        """The job is gone."""
        self._running.discard(id)
        if self._alone and id == self._alone_id:
            self._share()
        self._advance()

    def withdraw(self, ids: Collection[int]) -> list[int]:
        """Forget those of the jobs that have not started, and say which."""
        found = [job.id for job in self._waiting if job.id in ids]
        self._waiting = deque(job for job in self._waiting if job.id not in ids)
        self._advance()
        return found

    def clear(self) -> None:
        """No job runs or waits any more."""
        self._running.clear()
        self._waiting.clear()
        self._share()

    @property
    def wait_s(self) -> float | None:
        """When `look` is to be called; None: there is no need to."""
        return max(0.0, self._deadline - time.monotonic()) if self._deadline else None

    def look(self) -> None:
        """Perhaps somebody has waited for long enough."""
        if self._deadline and time.monotonic() >= self._deadline:
            if self._alone:
                self._share()
                self._advance()
            else:
                self._advance(impatient=True)

    def _share(self) -> None:
        """Others may run now."""
        self._alone, self._deadline = False, 0.0
        self._load.end()

    def _advance(self, *, impatient: bool = False) -> None:
        while self._waiting and not self._alone:
            if self._waiting[0].alone and self._running and not impatient:
                self._deadline = self._deadline or time.monotonic() + WAIT_S
                return
            job, impatient = self._waiting.popleft(), False
            self._running.add(job.id)
            self._deadline = 0.0
            if job.alone:
                self._alone, self._alone_id, self._deadline = True, job.id, time.monotonic() + ALONE_S
            if job.loaded:
                self._load.start()
            job.start()
        if not self._waiting and not self._alone:
            self._deadline = 0.0


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

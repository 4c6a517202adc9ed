"""The queue of the jobs that the scheduler sends: some have to run while no other does."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass

from .load import Load


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
    """

    def __init__(self) -> None:
        self._running: set[int] = set()
        self._waiting: deque[Queued] = deque()
        self._alone = False  # the job that runs
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
        if self._alone:
            self._alone = False
            self._load.end()
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
        self._alone = False
        self._load.end()

    def _advance(self) -> None:
        while self._waiting and not self._alone and not (self._waiting[0].alone and self._running):
            job = self._waiting.popleft()
            self._running.add(job.id)
            self._alone = job.alone
            if job.loaded:
                self._load.start()
            job.start()

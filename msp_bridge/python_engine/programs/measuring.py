"""How a measurement runs: as a series of jobs, each of which a fork server answers.

A measurement is a generator of `Run`s. It gets the answer to each, and returns the baseline; None: the servers have to
be started anew. `drive` waits for it. After `start` it runs beside mutants, or in turns with them: then the host reads
the answers, and hands over those with the id `MEASUREMENT`. The jobs tell from time to time what they have measured, so
little is lost when one is ended: by a cancel, or by an edit.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from .baseline import Baseline
from .channel import COUNTS, MEASURED, PROGRESS_S, RunProgress
from .endings import reject_fault
from .messages import Ended, JobMessage, Report
from .server_process import ServerProcess

MEASUREMENT = 0  # the id of its jobs
NO_LIMIT_S = 1e6

T = TypeVar("T")


@dataclass(frozen=True)
class Run:
    """One job of a measurement. `total`: its number of tests, where its progress is said."""

    server: ServerProcess
    job: JobMessage
    parts: Collection[str]
    total: int | None = None
    limit: float = NO_LIMIT_S


Answer = tuple[Report | None, Any]  # the report, and the exit code
Steps = Generator[Run, Answer, Baseline | None]


def at_once(begin: Callable[[], None]) -> None:
    """Begin."""
    begin()


class Measuring:
    """At most one measurement at a time."""

    def __init__(self, say: Callable[[RunProgress, int | None], None]) -> None:
        """`say` is told how far it has come, and of how many tests, where that is known."""
        self._say = say
        self._steps: Generator[Run, Answer, Any] | None = None
        self._run: Run | None = None
        self._stopped = False

    @property
    def runs(self) -> bool:
        """Whether one has been started, and has not ended; it may wait for its turn."""
        return self._steps is not None

    @property
    def stops(self) -> bool:
        """Whether it was stopped, and its job has not ended yet."""
        return self.runs and self._stopped

    def start(
        self, steps: Generator[Run, Answer, object], when: Callable[[Callable[[], None]], None] = at_once
    ) -> None:
        """Have `when` begin it. A measurement takes at least one job."""
        self._steps, self._stopped = steps, False
        when(lambda: self._send(next(steps)))

    def drive(self, steps: Generator[Run, Answer, T]) -> T:
        """Run a measurement to its end, and wait for that. Raises what it raises."""
        self.start(steps)
        while self._run is not None:
            while not select.select([self._run.server.channel.reader], [], [], PROGRESS_S)[0]:
                self.look()
            arrived = self._arrived(self._run)
            for message in [None] if arrived is None else arrived:
                if message is None or "piece" not in message:
                    ended, found = self.receive(message)
                    if ended:
                        result: T = found
                        return result
        raise AssertionError("a measurement has ended without a word")

    def look(self) -> None:
        """Say how far it has come."""
        if self._run is not None and (progress := COUNTS[MEASURED].news) is not None:
            self._say(progress, self._run.total)

    def stop(self) -> None:
        """End it; if it has begun, it has ended when the answer of its job has come."""
        if self._run is None:
            self.abandon()
        elif not self._stopped:
            self._stopped = True
            self._run.server.channel.send({"do": "stop", "ids": [MEASUREMENT]})

    def end(self) -> list[Report]:
        """End it, and wait until it has ended: what its job has told until then."""
        self.stop()
        pieces: list[Report] = []
        while self._run is not None:
            arrived = self._arrived(self._run)
            pieces += [answer["piece"] for answer in arrived or () if "piece" in answer]
            if arrived is None or any("piece" not in answer for answer in arrived):
                self.abandon()
        return pieces

    def abandon(self) -> None:
        """Forget it: the server that runs its job is ended."""
        self._steps = self._run = None

    def receive(self, message: Ended | None) -> tuple[bool, Any]:
        """Take the answer of a job, None where its server has ended.

        Returns whether the measurement has come to its end, and what it has found. Raises what the measurement raises.
        """
        assert self._steps is not None
        if self._stopped:
            self.abandon()
            return False, None
        try:
            if message is None:
                answer: Answer = None, "?"
            else:
                reject_fault(message)
                answer = message["report"], message["kill_reason"] or message["exit"]
            self._send(self._steps.send(answer))
        except BaseException as end:
            self.abandon()
            if isinstance(end, StopIteration):
                return True, end.value
            raise
        return False, None

    def _arrived(self, run: Run) -> list[Any] | None:
        """The messages about its job; others were stopped."""
        answers = run.server.channel.receive()
        return None if answers is None else [answer for answer in answers if answer["id"] == MEASUREMENT]

    def _send(self, run: Run) -> None:
        self._run = run
        COUNTS[MEASURED].reset()
        message: JobMessage = {"id": MEASUREMENT, "do": "run", "limit": run.limit, "parts": sorted(run.parts)}
        run.server.channel.send({**message, **run.job, "pieces": True})

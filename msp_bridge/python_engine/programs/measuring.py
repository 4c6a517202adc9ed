"""How a measurement runs: as a series of jobs, each of which a fork server answers.

A measurement is a generator of `Run`s. It gets the answer to each, and returns the baseline; None: the servers have to
be started anew. `drive` waits for it. `Background` runs it while mutants are tested: then the host reads the answers,
and gives it those with the id `MEASUREMENT`. The jobs of these tell from time to time what they have measured, so
little is lost when one is ended: by a cancel, or by an edit.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass
from typing import Any

from .baseline import Baseline
from .channel import COUNTS, MEASURED, PROGRESS_S, RunProgress
from .endings import reject_fault
from .fork_servers import ServerProcess
from .messages import Ended, JobMessage, Report

MEASUREMENT = 0  # the id of its jobs
NO_LIMIT_S = 1e6

Say = Callable[[RunProgress, int | None], None]  # of how many tests, where that is known


@dataclass(frozen=True)
class Run:
    """One job of a measurement. `total`: its number of tests, where its progress is said."""

    server: ServerProcess
    job: JobMessage
    parts: Collection[str]
    total: int | None = None
    limit: float = NO_LIMIT_S

    @property
    def message(self) -> JobMessage:
        """The message for the server."""
        return {"id": MEASUREMENT, "do": "run", "limit": self.limit, "parts": sorted(self.parts), **self.job}


Answer = tuple[Report | None, Any]  # the report, and the exit code
Steps = Generator[Run, Answer, Baseline | None]


def answer_to(run: Run, say: Say = lambda _progress, _total: None) -> Answer:
    """Run it, and wait until it has ended."""
    COUNTS[MEASURED].reset()
    run.server.channel.send(run.message)
    while True:
        while not select.select([run.server.channel.reader], [], [], PROGRESS_S)[0]:
            _say_news(run, say)
        answers = run.server.channel.receive()
        found = [answer for answer in answers or () if answer["id"] == MEASUREMENT]  # others were stopped
        if answers is None or found:
            return _answer(found[0] if found else None)


def drive(steps: Steps, say: Say) -> Baseline | None:
    """Run a measurement to its end. Raises what it raises."""
    try:
        run = next(steps)
        while True:
            run = steps.send(answer_to(run, say))
    except StopIteration as end:
        found: Baseline | None = end.value
        return found


class Background:
    """At most one measurement at a time."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._steps: Steps | None = None
        self._run: Run | None = None
        self._stopped = False

    @property
    def runs(self) -> bool:
        """Whether one has been started, and has not ended."""
        return self._steps is not None

    @property
    def stops(self) -> bool:
        """Whether it was stopped, and its job has not ended yet."""
        return self.runs and self._stopped

    def start(self, steps: Steps) -> None:
        """Begin. A measurement takes at least one job."""
        self._steps, self._stopped = steps, False
        self._send(next(steps))

    def look(self) -> None:
        """Say how far it has come."""
        if self._run is not None:
            _say_news(self._run, self._say)

    def stop(self) -> None:
        """End it; it has ended when the answer of its job has come."""
        if self._run is not None and not self._stopped:
            self._stopped = True
            self._run.server.channel.send({"do": "stop", "ids": [MEASUREMENT]})

    def end(self) -> list[Report]:
        """End it, and wait until it has ended: what its job has told until then."""
        self.stop()
        pieces: list[Report] = []
        while self._run is not None:
            answers = self._run.server.channel.receive()
            found = [answer for answer in answers or () if answer["id"] == MEASUREMENT]  # others were stopped
            pieces += [answer["piece"] for answer in found if "piece" in answer]
            if answers is None or any("piece" not in answer for answer in found):
                self.abandon()
        return pieces

    def abandon(self) -> None:
        """Forget it: the server that runs its job is ended."""
        self._steps = self._run = None

    def receive(self, message: Ended) -> tuple[bool, Baseline | None]:
        """Take the answer of a job: whether the measurement has come to its end, and what it has found.

        Raises what the measurement raises.
        """
        assert self._steps is not None
        if self._stopped:
            self.abandon()
            return False, None
        try:
            self._send(self._steps.send(_answer(message)))
        except StopIteration as end:
            self.abandon()
            return True, end.value
        except BaseException:
            self.abandon()
            raise
        return False, None

    def _send(self, run: Run) -> None:
        self._run = run
        COUNTS[MEASURED].reset()
        run.server.channel.send(run.message | {"pieces": True})


def _say_news(run: Run, say: Say) -> None:
    if (progress := COUNTS[MEASURED].news) is not None:
        say(progress, run.total)


def _answer(message: Ended | None) -> Answer:
    if message is None:
        return None, "?"
    reject_fault(message)
    return message["report"], message["kill_reason"] or message["exit"]

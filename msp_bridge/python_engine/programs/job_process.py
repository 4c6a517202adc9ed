"""The process of a job, as the fork server sees it and as it sees itself. `fork_server` has the theory of operation."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import _exit, getpid  # not `os._exit`, which a test may have replaced: see channel.py
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from ...isolation import descendants
from ...isolation.process_namespace import ProcessNamespace
from .channel import Channel, TestCount
from .messages import JobMessage, Report
from .own_clock import Clock

WAITING_S = 60.0  # a process that was forked ahead is used within: others write into /tmp and the home directory
LOOKS = 8  # at its CPU time, before a test in an endless loop is over its limit
OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


class CurrentTest(NamedTuple):
    """The test that runs, when it was first looked at."""

    number: int  # of the tests that had ended
    cpu_s: float  # that the job had taken
    since: float  # Clock.monotonic()


@dataclass
class JobProcess:
    """A forked process: it waits for its job, or runs it."""

    pid: int
    parts: list[str]  # of its world
    namespace: ProcessNamespace | None
    scratch: Path
    channel: Channel  # of two pipes: one on which it gets its job, one of its report
    ended: TestCount  # the tests of a mutant that have ended
    fork_s: float  # what it took to fork it
    begun: float = 0.0  # Clock.monotonic()
    forked: float = field(default_factory=Clock.monotonic)
    report: Report | None = None  # None: not all of it came
    id: int = 0
    guarded: bool = False
    deadline: float = 0.0  # Clock.monotonic()
    cpu_limits: Sequence[float] = ()  # seconds, for each test; the last one holds for all that follow
    test_limits: Sequence[float] = ()  # seconds by the clock, likewise
    look_s: float = math.inf  # between two looks at the test that runs
    looks: float = math.inf  # when the test that runs is looked at (Clock.monotonic())
    current: CurrentTest = field(default_factory=lambda: CurrentTest(0, 0.0, 0.0))
    kill_reason: str = ""  # "timeout" or "stopped" when we killed it
    answered: bool = False

    @property
    def expires(self) -> float:
        """When it can have a job no more (Clock.monotonic())."""
        return self.forked + WAITING_S

    def begins(self, message: JobMessage) -> None:
        """It gets this job now."""
        now = Clock.monotonic()
        self.begun, self.deadline, self.current = now, now + message["limit"], CurrentTest(0, 0.0, now)
        self.guarded = message.get("guarded", False)
        self.cpu_limits, self.test_limits = message.get("cpu_limits", ()), message.get("test_limits", ())
        self.look_s = min([*self.cpu_limits, *self.test_limits], default=math.inf) / LOOKS
        self.looks = now + self.look_s

    @property
    def next_look(self) -> float:
        """When it may have reached one of its limits (Clock.monotonic())."""
        return min(self.deadline, self.looks)

    def is_over(self, strays: Callable[[], Collection[int]]) -> bool:
        """Whether it has reached its own limit, or the test that runs has reached one of its two.

        `strays` are the processes that it has left to the server.
        """
        now = Clock.monotonic()
        if now < self.looks:
            return now >= self.deadline
        self.looks = now + self.look_s
        orphans = strays() if self.namespace is None else descendants.children(self.namespace.init)
        seconds, ended = descendants.cpu_seconds([self.pid, *orphans]), self.ended.now
        if ended != self.current.number:
            self.current = CurrentTest(ended, seconds, now)
        spent = (seconds - self.current.cpu_s, self.cpu_limits), (now - self.current.since, self.test_limits)
        return now >= self.deadline or any(taken_s >= _limit(limits, ended) for taken_s, limits in spent)

    @property
    def may_have_written(self) -> bool:
        """Whether it may have changed what it shares with others: it has had a job, and no guard."""
        return self.begun > 0 and not self.guarded

    @property
    def may_leave_strays(self) -> bool:
        """Whether what it starts may have become a child of the server."""
        return self.may_have_written and self.namespace is None

    @property
    def is_apart(self) -> bool:
        """Whether it can leave nothing to others, nor be disturbed by them."""
        return self.guarded or (self.namespace is not None and "overlay" in self.parts)

    def serves(self, parts: Collection[str]) -> bool:
        """Whether it can have a job with these parts, as one that is forked now could."""
        return self.parts == parts and Clock.monotonic() < self.expires

    def give(self, message: JobMessage) -> bool:
        """Send it its job; False when it is dead."""
        try:
            self.channel.send(message)
        except BrokenPipeError:
            return False
        finally:
            self.channel.close(reader=False)
        return True

    def read(self) -> Iterator[Report]:
        """Take what it has told, waiting for some bytes, and return the parts that come before its report."""
        try:
            told = self.channel.receive()
        except ValueError:  # something else has written into the pipe
            return
        if told is None:
            self.channel.close()
        for message in told or ():
            if "piece" in message:
                yield message["piece"]
            else:
                self.report = message

    def erase(self) -> None:
        """Delete its directory, also what tests have closed to us; the rest goes with the host's.

        There is none where it has made that in a layer of its own.
        """
        if not os.path.lexists(self.scratch):
            return

        def allow(function: Callable[..., Any], path: str, _error: object) -> None:
            with contextlib.suppress(OSError):
                os.chmod(os.path.dirname(path), 0o700)
                os.chmod(path, 0o700)
                function(path)

        shutil.rmtree(self.scratch, onerror=allow)


def _limit(limits: Sequence[float], test: int) -> float:
    return limits[min(test, len(limits) - 1)] if limits else math.inf


@dataclass(frozen=True)
class Job:
    """A job as a forked process finds it: its message, a private directory, the pipe for its report, a count."""

    message: JobMessage
    scratch: Path
    writer: int
    ended: TestCount  # of a mutant
    pid: int = field(default_factory=getpid)

    def tell(self, piece: Report) -> None:
        """Send a part of what the report will say. Where that can't be done, nor can the report."""
        with contextlib.suppress(OSError):
            self._send({"piece": piece})

    def end(self, report: Report) -> NoReturn:
        """Send the report, and end the process."""
        try:
            self._send(report)
        except OSError:  # the tests have closed the pipe: without a report, the process has ended by the mutant
            _exit(1)
        except BaseException as error:  # nothing may reach the stack below, which belongs to the server
            self.fail(error)
        _exit(0 if getpid() == self.pid or report.get("failure") is None else 1)

    def end_broken(self, error: BaseException) -> NoReturn:
        """Report that pytest does not get as far as the tests, but raises `error`, and end the process."""
        if traceback.extract_tb(error.__traceback__)[-1].filename.startswith(OURS):
            self.fail(error)
        self.end({"exit": 1, "broken": [["", f"{type(error).__name__}: {error}"]], "seconds": 0.0})

    def fail(self, error: BaseException, *, begun: bool = True) -> NoReturn:
        """Report a fault of our own, and end the process. `begun`: tests may have run before it."""
        try:
            traceback.print_exception(error)
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})"
            self._send({"fault": text, "begun": begun})
        finally:
            _exit(1)

    def _send(self, message: Mapping[str, object]) -> None:
        """Only from the job's own process: one that a test forks, and lets go on by a fault, comes here, too."""
        if getpid() == self.pid:
            Channel(-1, self.writer).send(message)

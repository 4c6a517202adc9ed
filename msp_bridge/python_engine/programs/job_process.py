"""The process of a job, as the fork server sees it and as it sees itself. `fork_server` has the theory of operation."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
import traceback
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from os import _exit  # not `os._exit`, which a test may have replaced: see channel.py
from pathlib import Path
from typing import Any, NoReturn

from ...isolation.process_namespace import ProcessNamespace
from .channel import CHUNK, Channel
from .messages import JobMessage, Report

WAITING_S = 60.0  # a process that was forked ahead is used within: others write into /tmp and the home directory
LOOK_S = 0.02  # between two looks at its CPU time
END = b"\n"  # of a report
OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


@dataclass
class JobProcess:
    """A forked process: it waits for its job, or runs it."""

    pid: int
    parts: list[str]  # of its world
    namespace: ProcessNamespace | None
    scratch: Path
    writer: int  # of the pipe on which it gets its job; -1 when it has got it
    reader: int  # of the pipe of its report; -1 at its end
    forked: float = field(default_factory=time.monotonic)
    received: bytearray = field(default_factory=bytearray)
    id: int = 0
    deadline: float = 0.0  # time.monotonic()
    cpu_limit: float | None = None  # seconds
    looked: float = 0.0  # when its CPU time is to be looked at (time.monotonic())
    kill_reason: str = ""  # "timeout" or "stopped" when we killed it
    answered: bool = False

    @property
    def expires(self) -> float:
        """When it can have a job no more (time.monotonic())."""
        return self.forked + WAITING_S

    def begins(self, limit: float, cpu_limit: float | None) -> None:
        """It gets its job now. Both limits in seconds."""
        now = time.monotonic()
        self.deadline, self.cpu_limit = now + limit, cpu_limit
        self.looked = now + cpu_limit if cpu_limit is not None else self.deadline

    @property
    def next_look(self) -> float:
        """When it may have reached one of its limits (time.monotonic())."""
        return min(self.deadline, self.looked)

    def is_over(self) -> bool:
        """Whether it has reached one of its limits: the clock's, or that of the CPU time of its own process."""
        now = time.monotonic()
        if now >= self.deadline:
            return True
        if now < self.looked or self.cpu_limit is None:
            return False
        try:
            left = self.cpu_limit - time.clock_gettime(_cpu_clock(self.pid))
        except OSError:  # it ends, or this system has no such clock
            left = self.deadline - now
        self.looked = now + max(left, LOOK_S)
        return left <= 0

    @property
    def is_apart(self) -> bool:
        """Whether it can leave nothing to others, nor be disturbed by them."""
        return self.namespace is not None and "overlay" in self.parts

    def serves(self, parts: Collection[str]) -> bool:
        """Whether it can have a job with these parts, as one that is forked now could."""
        return self.parts == parts and time.monotonic() < self.expires

    def give(self, message: JobMessage) -> bool:
        """Send it its job; False when it is dead."""
        try:
            Channel(-1, self.writer).send(message)
        except BrokenPipeError:
            return False
        finally:
            os.close(self.writer)
            self.writer = -1
        return True

    def read(self) -> None:
        """Take what it has reported, waiting for some bytes."""
        data = os.read(self.reader, CHUNK)
        self.received += data
        if not data:
            os.close(self.reader)
            self.reader = -1

    @property
    def has_reported(self) -> bool:
        """Whether all of the report is here, though the process may not have ended."""
        return self.received.endswith(END)

    @property
    def report(self) -> Report | None:
        """None when not all of it came."""
        try:
            report: Report = json.loads(bytes(self.received))
        except ValueError:
            return None
        return report

    def erase(self) -> None:
        """Delete its directory, also what tests or an overlay have closed to us; the rest goes with the host's."""

        def allow(function: Callable[..., Any], path: str, _error: object) -> None:
            with contextlib.suppress(OSError):
                os.chmod(os.path.dirname(path), 0o700)
                os.chmod(path, 0o700)
                function(path)

        shutil.rmtree(self.scratch, onerror=allow)

    def close(self) -> None:
        """Close what this process holds of it."""
        for descriptor in (self.writer, self.reader):
            if descriptor >= 0:
                os.close(descriptor)
        self.writer = self.reader = -1


def _cpu_clock(pid: int) -> int:
    """The clock of the CPU time of all threads of a process, as `clock_getcpuclockid` of Linux makes it."""
    return ~pid << 3 | 2


@dataclass(frozen=True)
class Job:
    """A job as a forked process finds it: its message, a private directory, and the pipe for its report."""

    message: JobMessage
    scratch: Path
    writer: int

    def end(self, report: Report) -> NoReturn:
        """Send the report, and end the process."""
        try:
            Channel(-1, self.writer).send(report)
        except OSError:  # the tests have closed the pipe: without a report, the process has ended by the mutant
            _exit(1)
        except BaseException as error:  # nothing may reach the stack below, which belongs to the server
            self.fail(error)
        _exit(0)

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
            Channel(-1, self.writer).send({"fault": text, "begun": begun})
        finally:
            _exit(1)

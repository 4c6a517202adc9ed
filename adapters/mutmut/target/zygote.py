"""Zygotes: processes that have done what all mutants have in common, and fork a worker for each mutant.

The warm one has collected the tests, so a worker runs its few tests at once. The cold one has started pytest and
imported nothing of the project: its workers import everything with the mutant active, as a fresh process would.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import traceback
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from mutmut.configuration import config
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state

from .channel import Channel, Message
from .reach import PROCESS, Reach
from .session import Failure, Session, arguments, enter
from .workers import Mission, Workers

STATS = "stats"


def warm(channel: Channel, root: str) -> None:
    """Collect, tell, and serve workers until the channel ends."""
    enter(root)
    set_mutant_under_test(STATS)
    zygote = Warm(channel)
    code = pytest.main(arguments(), plugins=[zygote, zygote.reach])
    channel.send({"do": "failed", "exit": int(code), "broken": [[f.test, f.text] for f in zygote.broken]})


def cold(channel: Channel, root: str) -> None:
    """Start pytest as far as it goes without the project's own code, tell, and serve workers until the channel ends."""
    enter(root)
    zygote = Cold(channel)
    code = int(pytest.main(arguments(), plugins=[zygote, zygote.reach]))
    if zygote.mission is None:
        channel.send({"do": "failed", "exit": code, "broken": []})
    else:
        zygote.mission.fulfil(lambda _job: zygote.report(code))


def fresh(channel: Channel, root: str) -> None:
    """As `cold`, for projects whose own code comes with pytest's start (`-p` in addopts): workers do everything."""
    enter(root)
    channel.send({"do": "ready"})
    mission = Workers(channel).serve()
    zygote = Cold(channel, mission)
    mission.fulfil(lambda _job: zygote.report(int(pytest.main(arguments(), plugins=[zygote, zygote.reach]))))


class Warm(Session):
    """Holds pytest where it would start to run the tests, and forks there."""

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel
        self._start = time.perf_counter()
        self.reach = Reach()

    def pytest_runtestloop(self, session: Any) -> object:
        """Instead of pytest's own."""
        if session.testsfailed or not self.items:
            return True
        self._channel.send({"do": "ready", **collected(self, self._start)})
        gc.collect()
        gc.freeze()  # collecting garbage would copy the pages that all workers share
        mission = Workers(self._channel).serve()
        return mission.fulfil(lambda job: self._work(job, mission.scratch))

    def _work(self, job: Message, scratch: Path) -> Message:
        _hush()
        self.use_scratch(scratch)
        if job["mutant"] == STATS:
            return stats(self, self.reach, job["tests"])
        set_mutant_under_test(job["mutant"])
        return judge(self, job["tests"])


class Cold(Session):
    """Holds pytest where it would import the first conftest.py, and forks there. Also the worker's plugin."""

    def __init__(self, channel: Channel, mission: Mission | None = None) -> None:
        super().__init__()
        self._channel = channel
        self.mission = mission
        self.reach = Reach()
        self._start = 0.0
        self._report: Message | None = None
        if mission is not None:
            self._begin(mission)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self) -> Generator[None, None, None]:
        """The fork."""
        if self.mission is None:
            here = os.getcwd() + os.sep
            if any(str(getattr(module, "__file__", None)).startswith(here) for module in list(sys.modules.values())):
                self._channel.send({"do": "unfit"})
            else:
                self._channel.send({"do": "ready"})
            gc.collect()
            gc.freeze()
            self.mission = Workers(self._channel).serve()
            self._begin(self.mission)
        try:
            yield
        except BaseException as error:
            self.broken.append(
                Failure("conftest.py", f"{type(error.__cause__ or error).__name__}: {error.__cause__ or error}")
            )
            raise

    def pytest_runtestloop(self, session: Any) -> object:
        """Instead of pytest's own."""
        if session.testsfailed or not self.items:
            return True
        assert self.mission is not None
        self.use_scratch(self.mission.scratch)
        if self.mission.job["mutant"] == STATS:
            self._report = {"collected": collected(self, self._start), **stats(self, self.reach, None)}
            return True
        failing = set(self.mission.job["failing"])
        self._report = judge(self, [test for test, item in enumerate(self.items) if item.nodeid not in failing])
        return True

    def report(self, code: int) -> Message:
        """After pytest has ended with `code`."""
        if self._report is not None:
            return self._report
        seconds = time.perf_counter() - self._start
        return {"exit": code, "broken": [[f.test, f.text] for f in self.broken], "seconds": seconds}

    def _begin(self, mission: Mission) -> None:
        _hush()
        self._start = time.perf_counter()
        set_mutant_under_test(mission.job["mutant"])


def collected(session: Session, start: float) -> Message:
    """What collecting the tests has shown."""
    static = sorted(state()._stats - {PROCESS})
    state()._stats.clear()
    return {
        "tests": [item.nodeid for item in session.items],
        "static": static,
        "threads": threading.active_count() - 1,
        "seconds": time.perf_counter() - start,
    }


def judge(session: Session, tests: list[int]) -> Message:
    """Run `tests` until one fails."""
    count, seconds = 0, 0.0
    interruption: Failure | None = None
    try:
        for _, duration in session.run(tests):
            count, seconds = count + 1, seconds + duration
            if session.failure is not None:
                break
    except (KeyboardInterrupt, pytest.exit.Exception) as error:  # pytest would stop here, and not with success
        interruption = Failure(session.items[tests[count]].nodeid, f"{type(error).__name__}: {error}")
        count += 1
    failure = session.failure or interruption
    if failure is not None:
        _tear_down(session)
    return {"tests": count, "seconds": seconds, "failure": [failure.test, failure.text] if failure else None}


def _tear_down(session: Session) -> None:
    """Let fixtures give back what they hold; what they say of it changes nothing any more."""
    try:
        session.tear_down()
    except BaseException:  # pytest's own outcomes are no Exceptions
        traceback.print_exc()


def stats(session: Session, reach: Reach, tests: list[int] | None) -> Message:
    """Run `tests`, or all, without a mutant."""
    reach.watch()
    durations = []
    coverage: dict[str, list[int]] = {}
    failing: dict[int, str] = {}
    for test, duration in session.run(range(len(session.items)) if tests is None else tests):
        durations.append(duration)
        for function in reach.of(session.items[test]):
            coverage.setdefault(function, []).append(test)
        if session.failure is not None:
            failing[test], session.failure = session.failure.text, None
    spawning = coverage.pop(PROCESS, [])
    return {"durations": durations, "coverage": coverage, "failing": failing, "spawning": spawning}


def _hush() -> None:
    """What tests print past pytest's capture is of no use; with mutmut's option `debug` it stays in the log."""
    if config().debug:
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)

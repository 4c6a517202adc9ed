"""How pytest is started in the sandbox, and how chosen tests are run one by one within it."""

from __future__ import annotations

import os
import traceback
from collections.abc import Generator, Iterable, Iterator, Sequence
from os import times  # as it is before a test replaces it: see channel.py
from pathlib import Path
from typing import IO, Any, NamedTuple

import _pytest.assertion.rewrite
import _pytest.capture
import _pytest.logging
import pytest

from ...isolation import kernel
from .channel import COUNTS, TargetPlan, TestCount
from .endings import CUT
from .imports import loaded_elsewhere
from .listing import leave_out_data
from .messages import JobMessage, Report
from .own_clock import Clock

HYPOTHESIS = "_hypothesis_internal_use_settings"  # where a function has the settings of `given`
LONGEST = 4000  # characters of a message
SKIPPING = (pytest.skip.Exception, pytest.xfail.Exception)
Turn = tuple[Any, Any]  # a test to run, and the one after it, whose fixtures stay; both pytest's items
Work = Generator[Turn, None, Report]  # of a job: yields the tests to run, and returns the report


class TestFailure(NamedTuple):
    """A test that failed, or a module that can't be collected, and its message; `messages.Failure` for the host."""

    test: str
    text: str


class PytestSession:
    """A pytest plugin: collects without running, remembers what fails, and runs the tests that are asked for."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.failure: TestFailure | None = None
        self.skipped: set[str] = set()  # tests that have skipped themselves, which no mark has
        self.broken: list[TestFailure] = []  # modules that can't be collected
        self._session: Any = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: Any) -> None:
        """Collect as pytest does, faster."""
        leave_out_data(session)

    def pytest_collectreport(self, report: Any) -> None:
        """Remember modules that can't be imported."""
        if report.failed:
            self.broken.append(TestFailure(report.nodeid, message_of(report)))

    def pytest_collection_finish(self, session: Any) -> None:
        """Remember the tests."""
        self._session, self.items = session, session.items
        fail_with_first_example(session.items)

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        """Remember a test that skips itself, by a fixture too: it may need what an earlier one leaves."""
        error = None if call.excinfo is None else call.excinfo.value
        if isinstance(error, SKIPPING) and not getattr(error, "_use_item_location", False):
            self.skipped.add(item.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Remember the first failure: also of a subtest, which no other hook sees."""
        if report.failed and self.failure is None:
            self.failure = TestFailure(report.nodeid, message_of(report))

    def turns(self, tests: Sequence[int]) -> Iterator[tuple[int, Turn]]:
        """The indexes of `tests`, each with its turn. When that was yielded to the hook, look at `failure`."""
        for place, test in enumerate(tests):
            following = self.items[tests[place + 1]] if place + 1 < len(tests) else None
            yield test, (self.items[test], following)

    def run(self, turn: Turn, counts: str | None = None) -> Generator[Turn, None, float]:
        """Have a test run; the seconds that it took. What it raises through pytest, which would stop, is a failure.

        `counts`: of `COUNTS`, the one that notes it, if one does.
        """
        start, count = Clock.perf_counter(), None if counts is None else COUNTS[counts]
        if count is not None:
            count.begin(turn[0].nodeid)
        try:
            yield turn
        except BaseException as error:  # KeyboardInterrupt, pytest.exit, a fault of a plug-in
            self.failure = self.failure or TestFailure(turn[0].nodeid, f"{type(error).__name__}: {error}")
            self.tear_down()
        if count is not None:
            count.note()
        return Clock.perf_counter() - start

    def tear_down(self) -> None:
        """End the fixtures that are still set up, after the last test that was run; their faults change nothing."""
        try:
            self._session._setupstate.teardown_exact(None)
        except BaseException:  # pytest's own outcomes are no Exceptions
            traceback.print_exc()

    def elsewhere(self, plan: TargetPlan) -> Sequence[str] | None:
        """A module that comes from another tree: see `imports.loaded_elsewhere`; for a process that has collected."""
        try:
            pythonpath = self._session.config.getini("pythonpath")
        except ValueError:  # this pytest has no such setting
            pythonpath = []
        return loaded_elsewhere(plan.sources, os.path.realpath(plan.place), pythonpath)

    def use_scratch(self, directory: Path) -> None:
        """Let `tmp_path` be below `directory`; for a process that was forked after pytest was configured."""
        factory = getattr(self._session.config, "_tmp_path_factory", None)
        if factory is not None:
            factory._given_basetemp, factory._basetemp = directory / "tests", None


def fail_with_first_example(items: Iterable[Any]) -> None:
    """Let a test of hypothesis fail with the first example that does: to look for a smaller one takes seconds."""
    found: dict[int, tuple[Any, Any]] = {}  # by the id of the old settings: both, so that the ids stay unique
    for item in items:
        function = getattr(item, "function", None)
        old = getattr(function, HYPOTHESIS, None)
        if old is not None and id(old) not in found:
            phases = [phase for phase in old.phases if phase.name not in ("shrink", "explain")]
            found[id(old)] = old, type(old)(old, phases=phases)
        if old is not None:
            setattr(function, HYPOTHESIS, found[id(old)][1])


def message_of(report: Any) -> str:
    """The message of a failed test, without the way that led there."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = (crash.message if crash is not None else report.longreprtext).strip()
    text = text.encode("utf-8", "backslashreplace").decode()  # lone surrogates are no text to anybody else
    return text if len(text) <= LONGEST else f"{CUT}{text[-LONGEST:]}"


def run_until_failure(
    session: PytestSession, tests: Sequence[int], ended: TestCount, counts: str | None = None
) -> Work:
    """Run `tests` until one fails; `ended` is told of each, and so is that of `COUNTS` which `counts` names."""
    count, seconds = 0, 0.0
    for _, turn in session.turns(tests):
        seconds += yield from session.run(turn, counts)
        count += 1
        ended.note()
        if session.failure is not None:
            session.tear_down()
            break
    cpu, skipped = sum(times()[:4]), sorted(session.skipped)
    return {"tests": count, "seconds": seconds, "cpu": cpu, "failure": session.failure, "skipped": skipped}


def silence(plan: TargetPlan, job: JobMessage) -> None:
    """Drop what tests print past pytest's capture; when debugging it stays in the log."""
    if job.get("guarded"):  # all that led to the log leads nowhere
        _open_nothing_to_write()
    elif not plan.debug:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.close(null)


def _open_nothing_to_write() -> None:
    """Have pytest keep what it captures in memory, and its log file, where there is none, open already."""

    def in_memory(*, buffering: int) -> IO[bytes]:
        return open(kernel.open_in_memory("capture"), "w+b", buffering=buffering)

    class Log(_pytest.logging._FileHandler):
        def _open(self) -> Any:
            if self.baseFilename != os.devnull:
                return super()._open()
            return open(os.dup(1), "w")  # it leads nowhere, too

    _pytest.assertion.rewrite.try_makedirs = lambda cache_dir: cache_dir.is_dir()  # of bytecode: it asks each time
    _pytest.capture.TemporaryFile = in_memory  # type: ignore[assignment,attr-defined]
    _pytest.logging._FileHandler = Log  # type: ignore[misc]

"""The live server: it has imported the project and collected the tests, so that a job runs its few tests at once.

It holds pytest where that would start to run the tests, and forks there. After an edit of function bodies its live
functions are replaced (`_handle`). `servers` starts it.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import resource
import signal
import sys
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from ...isolation import descendants
from .baseline import file_of
from .channel import Channel, TargetPlan
from .dependencies import DependencyTrace, holds_code, with_dependencies
from .fork_server import ForkServer
from .import_effects import imported
from .imports import CallingFile, ImportTrace, monitoring
from .job_process import Job
from .late_imports import Line, Lines
from .line_coverage import ProbedFiles, TestCoverage, lines_of
from .live_code import LiveFunctions, NotLive, Segment, put
from .loaded_modules import loaded_files, outside_files
from .made_files import made_in
from .messages import Collected, Facts, JobMessage, Reload, Reloaded, Report
from .own_clock import Clock
from .pytest_session import PytestSession, Work, run_until_failure, silence
from .test_reload import reload_tests
from .text_reads import renew_constants
from .world import World

MACOS = sys.platform == "darwin"  # which counts memory in bytes
PIECE_S, PIECE_PART = 2.0, 0.1  # how often a measurement tells what it has measured; and after which part of its time


class Collecting(PytestSession):
    """The plugin of the live server; also of the fresh one, until it knows which it is."""

    def __init__(self) -> None:
        super().__init__()
        self.live: Live | None = None
        self.coverage = TestCoverage()

    def pytest_collectstart(self, collector: Any) -> None:
        """The import of a test file is about to begin."""
        if self.live is not None and isinstance(collector, pytest.File):
            self.live.calling.begins(relative(collector))

    def pytest_runtestloop(self, session: Any) -> object:
        """Instead of pytest's own. The process ends here: what plug-ins do at the end of a session takes time.

        Tests run in this very frame: see `forked`.
        """
        if (begun := self.begun(session)) is None:
            return True
        job, work = begun
        try:
            turn = next(work)
            while True:
                item, following = turn
                try:
                    item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
                except BaseException as error:
                    turn = work.throw(error)
                else:
                    turn = next(work)
        except StopIteration as end:
            job.end(end.value)
        except BaseException as error:  # nothing may reach the stack below, which belongs to the server
            job.fail(error)

    def begun(self, session: Any) -> tuple[Job, Work] | None:
        """Returns in the processes of jobs, each with its work; None where no test was collected."""
        assert self.live is not None
        return self.live.serve(session)


class Live:
    """The live server in place of pytest's own run of the tests: it forks."""

    def __init__(self, tests: Collecting, channel: Channel, plan: TargetPlan, world: World, trace: ImportTrace) -> None:
        """`tests` is the plugin of this pytest, which has collected nothing yet."""
        self._tests, self._channel, self._plan, self._world, self.trace = tests, channel, plan, world, trace
        self.calling = CallingFile(trace)
        self._start = Clock.perf_counter()
        self._functions = LiveFunctions(frozenset())
        self._loaded: set[str] = set()
        self._probed = ProbedFiles()
        self._lines: Lines | None = None  # of the functions as they are now
        self.dependencies = DependencyTrace.of(plan, world.root)

    def can_fork(self) -> bool:
        """Whether a fork of this process is as good as a process that begins now, also with a mutant in a file."""
        return self.trace.is_forkable() and self.trace.has_met_nothing()

    def leave(self) -> None:
        """In a process that is another server from now on."""
        self._channel.close()
        self.trace.stop(self._functions)

    def serve(self, session: Any) -> tuple[Job, Work] | None:
        """Instead of pytest's own loop: see `Collecting.begun`."""
        if session.testsfailed or not self._tests.items:
            return None
        filenames = frozenset(self._plan.filenames)
        self._functions = LiveFunctions(filenames, holds_code=holds_code(self._plan))
        self.calling.begins("")
        self.trace.stop(self._functions)
        self._loaded = loaded_files(filenames) | self.trace.files
        self._channel.send({"do": "ready", "pid": os.getpid(), **self._collected()})
        server = ForkServer(self._channel, self._world, self._handle, self._before_job)
        gc.collect()
        gc.freeze()  # collecting garbage would copy the pages that all jobs share
        job = server.serve()
        return job, self._work(job)

    def failed(self, code: int) -> None:
        """Say that pytest has ended with `code`, and has collected nothing that can be run."""
        self._channel.send({"do": "failed", "pid": os.getpid(), "exit": code, "broken": self._tests.broken})

    def _collected(self) -> Collected:
        """Facts that collecting the tests has shown."""
        threads, tests = threading.active_count(), {file_of(item.nodeid) for item in self._tests.items}
        return {
            "tests": [item.nodeid for item in self._tests.items],
            "seconds": Clock.perf_counter() - self._start,
            "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << (20 if MACOS else 10)),
            "native_threads": max(0, descendants.kernel_threads() - threads),
            "why_fresh": self.trace.why_fresh(),
            "made": made_in(self._world.place, self._world.pristine, self.trace.made),
            "ran": None if self.dependencies is None else self.dependencies.report(),
            "elsewhere": self._tests.elsewhere(self._plan),
            "outside": outside_files(self._plan.place, self._world.root),
            "imported": imported(self._plan.place, self._plan.sources, tests),
            "files": facts_of(self._plan, self._functions, self.trace, self._loaded),
            "calling": self.calling.found,
        }

    def _handle(self, message: Reload) -> Reloaded:
        """Reload: the live functions of this process get the code of an edited file."""
        self._lines = None
        try:
            segment = Segment(*message["segment"])
            if segment.filename not in self._plan.filenames:
                return {"do": "reloaded", "tests": hex(reload_tests(self._tests.items, segment))}
            old, new = segment.compiled()
            self._probed.forget(segment.filename)
            self._functions.replace(old, new)
            renew_constants(segment.filename)
        except Exception:  # the host then starts another server
            return {"do": "reloaded"}
        return {"do": "reloaded", "facts": self._functions.facts(segment.filename)}

    def _before_job(self, message: JobMessage) -> None:
        """Do once what several jobs have in common. A measurement itself says what can't be done."""
        for test in message["tests"] or ():
            _ = self._tests.items[test].location  # pytest computes it for each report, and keeps it
        if message["work"] == "measure":
            with contextlib.suppress(OSError, SyntaxError, ValueError, RecursionError):
                self._lines = self._noted_lines()
                gc.freeze()

    def _noted_lines(self) -> Lines:
        return self._lines or lines_of(self._functions, self._loaded, self._probed)

    def _work(self, job: Job) -> Work:
        message = job.message
        silence(self._plan, message)
        self._tests.use_scratch(job.scratch)
        if message["work"] == "measure":
            return (yield from self._measure(job))
        if self.dependencies is not None:
            self.dependencies.renew()
        if message.get("segment") is not None:
            try:
                put(self._functions, Segment(*message["segment"]))
            except NotLive as error:
                return with_dependencies({"not_live": str(error)}, self.dependencies)
        ran = yield from run_until_failure(self._tests, message["tests"] or (), job.ended, message.get("counts"))
        return with_dependencies(ran, self.dependencies)

    def _measure(self, job: Job) -> Work:
        """Run `tests`, or all, without a mutant; see `Baseline` for what is measured.

        A test that takes more than `stuck` seconds ends the process; 0: none does. `at_most`: after so many seconds in
        all the process ends, wherever its test is, which has then taken 0 s. `counts`: the number of tests that have
        been run is noted. `pieces`: what was measured is also told from time to time.
        """
        message = job.message
        tests: Sequence[int] | None = message["tests"]
        stuck, at_most = message.get("stuck", 0), message.get("at_most", 0.0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # no watchdog thread: its locks don't survive the fork
        lines, alone = self._noted_lines(), tests is not None and len(tests) == 1
        if alone and self.dependencies is not None:
            self.dependencies.renew()  # a process that was forked ahead of the first measurement has read the sources
        roots = (self._plan.place, self._world.root)
        self._tests.coverage.measure(lines, self._plan.filenames, self._loaded, roots, job.scratch)
        test, whole, piece, began = -1, MeasuredTests(), MeasuredTests(), Clock.perf_counter()
        before = descendants.waited_seconds()
        due = began if message.get("pieces") else math.inf

        def end(_signal: int, _frame: object) -> None:
            if test >= 0 and test not in piece.durations:
                piece.note(test, 0.0, self._tests.coverage.of(self._tests.items[test]), None)
            job.end(self._measured(piece))

        if at_most:
            signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, at_most or stuck)
        for test, turn in self._tests.turns(range(len(self._tests.items)) if tests is None else tests):
            duration = yield from self._tests.run(turn, message.get("counts"))
            hits = self._tests.coverage.of(self._tests.items[test])
            if stuck:
                signal.alarm(stuck)
            failure, self._tests.failure = self._tests.failure, None
            piece.note(test, duration, hits, None if failure is None else failure.text)
            job.ended.note()
            now = Clock.perf_counter()
            if 0 < at_most <= now - began:  # pytest-timeout has taken the timer
                break
            if now >= due and turn[1] is not None:
                job.tell(self._measured(piece))
                whole.add(piece)
                piece, due = MeasuredTests(), now + max(PIECE_S, PIECE_PART * (now - began))
        signal.alarm(0)
        whole.add(piece)
        waited = (descendants.waited_seconds() - before) / (Clock.perf_counter() - began)
        report: Report = {**self._measured(whole), "waited": waited}
        return with_dependencies(report, self.dependencies) if alone else report

    def _measured(self, tests: MeasuredTests) -> Report:
        names = dict(zip(self._plan.filenames, self._plan.sources, strict=False))
        by_path: dict[str, dict[int, str]] = {}
        for (filename, number), mask in tests.lines.items():
            by_path.setdefault(names.get(filename, filename), {})[number] = hex(mask)
        late = (loaded_files(frozenset(self._plan.filenames)) | self._tests.coverage.late) - self._loaded
        return {
            "durations": tests.durations,
            "lines": by_path,
            "failing": tests.failing,
            "skipped": sorted(self._tests.skipped),
            "late": sorted(names[filename] for filename in late),
            "unseen": {
                names[filename]: keys
                for filename in (() if monitoring is not None else self._loaded)
                if (keys := self._functions.not_given(filename))
            },
        }


def facts_of(
    plan: TargetPlan, functions: LiveFunctions, trace: ImportTrace, loaded: Collection[str]
) -> dict[str, Facts]:
    """Facts of the code of the files that a process has `loaded`."""
    return {
        path: {**functions.facts(name), "called": trace.called(name), "read": name in trace.read}
        for path, name in zip(plan.sources, plan.filenames, strict=False)
        if name in loaded
    }


def relative(collector: Any) -> str:
    """The path of a file that pytest collects, relative to the project."""
    return os.path.relpath(str(collector.path), collector.config.rootpath)


@dataclass
class MeasuredTests:
    """Notes what some tests have run; see `Report`."""

    durations: dict[int, float] = field(default_factory=dict)
    lines: dict[Line, int] = field(default_factory=dict)
    failing: dict[int, str] = field(default_factory=dict)

    def note(self, test: int, duration: float, hits: Collection[Line], failure: str | None) -> None:
        """Note that one test was run."""
        for line in hits:
            self.lines[line] = self.lines.get(line, 0) | 1 << test
        if failure is not None:
            self.failing[test] = failure
        self.durations[test] = duration  # at last: it says that the test is measured

    def add(self, other: MeasuredTests) -> None:
        """Add further tests."""
        self.durations.update(other.durations)
        self.failing.update(other.failing)
        for line, mask in other.lines.items():
            self.lines[line] = self.lines.get(line, 0) | mask

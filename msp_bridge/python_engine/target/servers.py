"""The fork servers: processes that have done what all mutants have in common, and fork a process for each mutant.

The *fresh* server has started pytest and imported nothing of the project: its jobs import everything with the mutated
file on the disk. The *live* server, a fork of it, has imported the project and collected the tests, so that a job runs
its few tests at once. The *bare* server has not even imported pytest, for projects that pytest itself imports: nor has
this module, so each job does that with the mutated file in place.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
import time
import traceback
from collections.abc import Generator, Sequence
from typing import Any

import _pytest.assertion.rewrite
import pytest

from .bytecode import read_beside_plugins
from .channel import Channel, Message, TargetPlan
from .connection import Connection
from .fork_server import ForkServer
from .imports import ImportTrace, loaded_elsewhere
from .job_process import Job
from .line_coverage import ProbedFiles, Reach, lines_of
from .live_code import LiveFunctions, NotLive, Segment, loaded_files, put
from .pytest_session import PytestSession, TestFailure, arguments
from .test_reload import reload_tests
from .world import World

read_beside_plugins(_pytest.assertion.rewrite)


def live(channel: Channel, plan: TargetPlan, world: World, trace: ImportTrace) -> None:
    """Collect, say what was found, and serve until the channel ends."""
    tests = Collecting()
    tests.live = Live(tests, channel, plan, world, trace)
    tests.live.failed(int(pytest.main(arguments(plan.arguments), plugins=[tests, tests.reach])))


def fresh(channel: Channel, plan: TargetPlan, world: World, live: Connection | None) -> None:
    """Start pytest as far as it goes without the project's own code, say so, and serve until the channel ends.

    `live`: for the live server, which is forked at that point, if it can be.
    """
    server = Fresh(channel, plan, world, live)
    code = int(pytest.main(arguments(plan.arguments), plugins=[server, server.reach]))
    if server.live is not None:
        server.live.failed(code)
    elif server.job is None:
        channel.send({"do": "failed", "exit": code, "broken": []})
    else:
        server.job.run(lambda _job: server.report(code))


def alone(job: Job, plan: TargetPlan, world: World, start: float) -> Message:
    """What a job of the bare server does, which has entered its world at `start`: everything."""
    server = Fresh(None, plan, world)
    server.begin(job, start)
    return server.report(int(pytest.main(arguments(plan.arguments), plugins=[server, server.reach])))


class Collecting(PytestSession):
    """The plugin of the live server; also of the fresh one, until it knows which it is."""

    def __init__(self) -> None:
        super().__init__()
        self.live: Live | None = None
        self.reach = Reach()

    def pytest_runtestloop(self, session: Any) -> object:
        """Instead of pytest's own."""
        assert self.live is not None
        return self.live.serve(session)


class Live:
    """What the live server does where pytest would start to run the tests: it forks."""

    def __init__(self, tests: Collecting, channel: Channel, plan: TargetPlan, world: World, trace: ImportTrace) -> None:
        """`tests` is the plugin of this pytest, which has collected nothing yet."""
        self._tests, self._channel, self._plan, self._world, self._trace = tests, channel, plan, world, trace
        self._start = time.perf_counter()
        self._functions = LiveFunctions(frozenset())
        self._loaded: set[str] = set()
        self._texts: dict[str, str] = {}  # of the loaded files, by their names, as far as they were needed
        self._probed = ProbedFiles()

    def serve(self, session: Any) -> object:
        """Instead of pytest's own loop."""
        if session.testsfailed or not self._tests.items:
            return True
        self._trace.stop()
        filenames = frozenset(self._plan.filenames)
        self._functions = LiveFunctions(filenames)
        self._loaded = loaded_files(filenames)
        self._channel.send({"do": "ready", **self._collected()})
        gc.collect()
        gc.freeze()  # collecting garbage would copy the pages that all jobs share
        return ForkServer(self._channel, self._world, self._handle, self._before_job).serve().run(self._work)

    def failed(self, code: int) -> None:
        """Say that pytest has ended with `code`, and has collected nothing that can be run."""
        self._channel.send({"do": "failed", "exit": code, "broken": _rows(self._tests.broken)})

    def _collected(self) -> Message:
        """What collecting the tests has shown."""
        threads = threading.active_count()
        return {
            "tests": [item.nodeid for item in self._tests.items],
            "seconds": time.perf_counter() - self._start,
            "threads": threads - 1,
            "native_threads": max(0, _kernel_threads() - threads),
            "trace_lost": self._trace.lost,
            "elsewhere": loaded_elsewhere(self._plan.sources, os.path.realpath(self._plan.place)),
            "files": {
                path: {
                    **self._functions.facts(filename),
                    "called": self._trace.called(filename),
                    "read": filename in self._trace.read,
                }
                for path, filename in zip(self._plan.sources, self._plan.filenames, strict=False)
                if filename in self._loaded
            },
        }

    def _handle(self, message: Message) -> Message:
        """Reload: the live functions of this process get the code of an edited file."""
        try:
            segment = Segment(*message["segment"])
            if segment.filename not in self._plan.filenames:
                return {"do": "reloaded", "tests": hex(reload_tests(self._tests.items, segment))}
            old, new = segment.compiled()
            self._texts.pop(segment.filename, None)
            self._functions.replace(old, new)
        except Exception as error:  # the host then starts another server
            return {"do": "reloaded", "problem": f"{type(error).__name__}: {error}"}
        return {"do": "reloaded", "facts": self._functions.facts(segment.filename)}

    def _before_job(self, message: Message) -> None:
        """What all measurements have in common is done once. What can't be done is said by the measurement itself."""
        if message["work"] == "measure":
            with contextlib.suppress(OSError, SyntaxError, ValueError, RecursionError):
                self._probed.of(self._sources())
                gc.freeze()

    def _sources(self) -> dict[str, str]:
        for filename in self._loaded - self._texts.keys():
            self._texts[filename] = _text(filename)
        return self._texts

    def _work(self, job: Job) -> Message:
        _silence(self._plan)
        message = job.message
        self._tests.use_scratch(job.scratch)
        if message["work"] == "measure":
            return self._measure(message["tests"], message.get("stuck", 0))
        if message.get("segment") is not None:
            try:
                put(self._functions, Segment(*message["segment"]))
            except NotLive as error:
                return {"not_live": str(error)}
        return run_until_failure(self._tests, message["tests"])

    def _measure(self, tests: Sequence[int] | None, stuck: int) -> Message:
        """Run `tests`, or all, without a mutant; see `Baseline` for what is measured.

        A test that takes more than `stuck` seconds ends the process; 0: none does.
        """
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # no watchdog thread: its locks don't survive the fork
        signal.alarm(stuck)
        self._tests.reach.measure(lines_of(self._functions, self._sources(), self._probed))
        names = dict(zip(self._plan.filenames, self._plan.sources, strict=False))
        durations: dict[int, float] = {}
        lines: dict[tuple[str, int], int] = {}
        failing: dict[int, str] = {}
        subprocess_tests = 0
        for test, duration in self._tests.run(range(len(self._tests.items)) if tests is None else tests):
            durations[test] = duration
            hits, started = self._tests.reach.of(self._tests.items[test])
            signal.alarm(stuck)
            bit = 1 << test
            subprocess_tests |= bit if started else 0
            for line in hits:
                lines[line] = lines.get(line, 0) | bit
            if self._tests.failure is not None:
                failing[test], self._tests.failure = self._tests.failure.text, None
        by_path: dict[str, dict[int, str]] = {}
        for (filename, number), mask in lines.items():
            by_path.setdefault(names[filename], {})[number] = hex(mask)
        signal.alarm(0)
        late = loaded_files(frozenset(self._plan.filenames)) - self._loaded
        return {
            "durations": durations,
            "lines": by_path,
            "failing": failing,
            "subprocess_tests": hex(subprocess_tests),
            "late": sorted(names[filename] for filename in late),
        }


class Fresh(Collecting):
    """Holds pytest where it would import the first conftest.py, and forks there. Also the plugin of its jobs."""

    def __init__(
        self, channel: Channel | None, plan: TargetPlan, world: World, connection: Connection | None = None
    ) -> None:
        """`connection`: see `fresh`."""
        super().__init__()
        self._channel, self._plan, self._world, self._connection = channel, plan, world, connection
        self.job: Job | None = None
        self._start = 0.0

    def begin(self, job: Job, start: float) -> None:
        """Be the plugin of `job`, which has begun at `start` (`time.perf_counter`)."""
        self.job, self._start = job, start
        _silence(self._plan)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self) -> Generator[None, None, None]:
        """The forks."""
        if self.job is None:
            assert self._channel is not None
            self._hold(self._channel)
        try:
            yield
        except BaseException as error:
            if self.job is not None:
                cause = error.__cause__ or error
                self.broken.append(TestFailure("conftest.py", f"{type(cause).__name__}: {cause}"))
            raise

    def pytest_runtestloop(self, session: Any) -> object:
        """Instead of pytest's own. The process ends here: what plug-ins do at the end of a session takes time."""
        if self.job is not None:
            self.job.run(lambda job: self._work(session, job))
        return super().pytest_runtestloop(session)

    def _hold(self, channel: Channel) -> None:
        """Returns in the processes of jobs, and in the live server."""
        unfit = bool(loaded_files(frozenset(self._plan.filenames)))
        gc.collect()
        gc.freeze()
        alone = _kernel_threads() == threading.active_count() == 1
        pid = None if unfit or not alone or self._connection is None else self._fork_live(channel, self._connection)
        if self.live is not None:
            return
        if self._connection is not None and pid is None:
            self._connection.leave()
        channel.send({"do": "unfit" if unfit else "ready", "live": pid})
        self.begin(ForkServer(channel, self._world).serve(), time.perf_counter())

    def _fork_live(self, channel: Channel, connection: Connection) -> int:
        pid = os.fork()
        if pid == 0:
            channel.close()
            trace = ImportTrace(frozenset(self._plan.filenames))
            self.live = Live(self, connection.take(), self._plan, self._world, trace)
            trace.start()
        else:
            connection.leave()
        return pid

    def _work(self, session: Any, job: Job) -> Message:
        if session.testsfailed or not self.items:
            return self.report(
                int(pytest.ExitCode.TESTS_FAILED if session.testsfailed else pytest.ExitCode.NO_TESTS_COLLECTED)
            )
        self.use_scratch(job.scratch)
        message = job.message
        if message["work"] == "measure":
            return self._measure(message["tests"])
        left_out = set(message["left_out"])
        names = {item.nodeid: index for index, item in enumerate(self.items)}
        first = [names[name] for name in message["first"] if name in names and name not in left_out]
        rest = [index for name, index in names.items() if name not in left_out and index not in set(first)]
        chosen = first if message["only_first"] else [*first, *rest]
        return run_until_failure(self, chosen)

    def report(self, code: int) -> Message:
        """After pytest has ended with `code`, and has run no test."""
        return {"exit": code, "broken": _rows(self.broken), "seconds": time.perf_counter() - self._start}

    def _measure(self, names: Sequence[str] | None) -> Message:
        """The tests of these names, or all, without a mutant."""
        collected = {"tests": [item.nodeid for item in self.items], "seconds": time.perf_counter() - self._start}
        durations: dict[int, float] = {}
        failing: dict[int, str] = {}
        wanted = None if names is None else set(names)
        chosen = [test for test, item in enumerate(self.items) if wanted is None or item.nodeid in wanted]
        for test, duration in self.run(chosen):
            durations[test] = duration
            if self.failure is not None:
                failing[test], self.failure = self.failure.text, None
        return {"collected": collected, "durations": durations, "failing": failing}


def run_until_failure(session: PytestSession, tests: Sequence[int]) -> Message:
    """Run `tests` until one fails."""
    count, seconds = 0, 0.0
    interruption: TestFailure | None = None
    try:
        for _, duration in session.run(tests):
            count, seconds = count + 1, seconds + duration
            if session.failure is not None:
                break
    except (KeyboardInterrupt, pytest.exit.Exception) as error:  # pytest would stop here, and not with success
        interruption = TestFailure(session.items[tests[count]].nodeid, f"{type(error).__name__}: {error}")
        count += 1
    failure = session.failure or interruption
    if failure is not None:
        _tear_down(session)
    return {"tests": count, "seconds": seconds, "failure": [failure.test, failure.text] if failure else None}


def _tear_down(session: PytestSession) -> None:
    """Let fixtures give back what they hold; their faults change nothing any more."""
    try:
        session.tear_down()
    except BaseException:  # pytest's own outcomes are no Exceptions
        traceback.print_exc()


def _rows(broken: Sequence[TestFailure]) -> list[list[str]]:
    return [[failure.test, failure.text] for failure in broken]


def _text(filename: str) -> str:
    """The text of a source file as Python reads it."""
    import tokenize

    with tokenize.open(filename) as file:
        return file.read()


def _kernel_threads() -> int:
    """The threads of this process that the kernel knows of; where it can't be asked, those that Python knows."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def _silence(plan: TargetPlan) -> None:
    """What tests print past pytest's capture is of no use; when debugging it stays in the log."""
    if plan.debug:
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)

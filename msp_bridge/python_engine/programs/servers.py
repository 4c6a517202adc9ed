"""The fork servers: processes that have done what all mutants have in common, and fork a process for each mutant.

The *fresh* server has started pytest and imported nothing of the project: its jobs import everything with the mutated
file on the disk. The *live* server (`live_server`), a fork of it, has imported the project and collected the tests. On
its way there it may come to the first test file before anything of the sources was imported or read: then the *session*
server stays there, and the live one goes on in a fork. Its jobs are those of the fresh server, without the start of
pytest's session and the import of the first conftest.py. A job that has neither layers of its own nor a guard goes to
the fresh server: what it writes stays, and each fresh process would make a temporary directory of its own. So does each
job after an edit of a test file, which a conftest.py may have imported.
Where pytest's start imports the project, as a plug-in, the *plain* server has imported pytest and this module, and has
not started it. The *bare* server has not even done that, for projects that pytest itself consists of: each job does
it with the mutated file in place. The *early* server (`early_server`) is a fresh one that has collected some
of the test files already.
"""

from __future__ import annotations

import encodings.idna
import encodings.unicode_escape  # noqa: F401  here, not at the first use in each job: by sockets, and by names of rows
import gc
import os
import pdb  # noqa: F401  likewise: pytest imports it as it is configured
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, NoReturn, TypeVar

import _pytest.assertion.rewrite
import pytest

from ...isolation import descendants
from . import pytest_options
from .bytecode import read_beside_plugins
from .channel import Channel, TargetPlan
from .dependencies import DependencyTrace, with_dependencies
from .early_server import Early
from .fork_server import ForkServer
from .imports import ImportTrace
from .job_process import Job
from .live_code import NotLive
from .live_server import Collecting, Live, relative
from .loaded_modules import loaded_files
from .messages import Collected, Report
from .own_clock import Clock
from .pytest_options import arguments
from .pytest_session import TestFailure, Work, run_until_failure, silence
from .server_process import BARE, PLAIN, ServerProcess, begin_group
from .world import World

T = TypeVar("T")

read_beside_plugins(_pytest.assertion.rewrite)


def live(channel: Channel, plan: TargetPlan, world: World, trace: ImportTrace) -> None:
    """Collect, say what was found, and serve until the channel ends."""
    tests = Collecting()
    tests.live = Live(tests, channel, plan, world, trace)
    tests.live.failed(int(pytest.main(arguments(plan.arguments), plugins=[tests, tests.coverage, pytest_options])))


def fresh(
    channel: Channel, plan: TargetPlan, world: World, others: Sequence[ServerProcess], early: Early | None = None
) -> None:
    """Start pytest as far as it goes without the project's own code, say so, and serve until the channel ends.

    `others`: for the live server, which is forked at that point, if it can be, and the session server. `early`: go as
    far as that says.
    """
    server = Fresh(channel, plan, world, others, early)
    try:
        code = int(pytest.main(arguments(plan.arguments), plugins=[server, server.coverage, pytest_options]))
    except BaseException as error:
        if server.job is not None:
            server.job.end_broken(error)
        raise
    if server.live is not None:
        server.live.failed(code)
    elif server.job is None:
        channel.send({"do": "failed", "exit": code, "broken": []})
    else:
        server.job.end(server.report(code))


def alone(job: Job, plan: TargetPlan, world: World, start: float) -> NoReturn:
    """Do a job of a bare or a plain server, which has entered its world at `start`: everything."""
    server = Fresh(None, plan, world)
    server.begin(job, start)
    code = int(pytest.main(arguments(plan.arguments), plugins=[server, server.coverage, pytest_options]))
    job.end(server.report(code))


class Fresh(Collecting):
    """Holds pytest where it would import the first conftest.py, and forks there. Also the plugin of its jobs.

    With `early` it holds pytest later.
    """

    def __init__(
        self,
        channel: Channel | None,
        plan: TargetPlan,
        world: World,
        others: Sequence[ServerProcess] = (),
        early: Early | None = None,
    ) -> None:
        """`others`: see `fresh`."""
        super().__init__()
        self._early = early
        self._channel, self._plan, self._world, self._others = channel, plan, world, list(others)
        self.job: Job | None = None
        self._start = 0.0
        self._wanted = frozenset[str]()  # the tests of its job, and the classes around them
        self._dependencies: DependencyTrace | None = None  # of a job
        self._is_beneath = self._has_loaded()  # the project, by the mere import of pytest

    def begin(self, job: Job, start: float) -> None:
        """Be the plugin of `job`, which has begun at `start` (`Clock.perf_counter`)."""
        self.job, self._start = job, start
        self._wanted = frozenset(chain.from_iterable(map(_way_to, job.message.get("only") or ())))
        silence(self._plan, job.message)
        if job.message["work"] == "mutant" and self._dependencies is None:
            self._dependencies = DependencyTrace.of(self._plan, self._world.root)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self) -> Generator[None, None, None]:
        """The forks."""
        if self._early is not None:
            self._dependencies = DependencyTrace.of(self._plan, self._world.root)
        elif self.job is None:
            assert self._channel is not None
            self._hold(self._channel)
        try:
            yield
        except BaseException as error:
            if self.job is None:
                raise
            cause = error.__cause__ or error
            self.broken.append(TestFailure("conftest.py", f"{type(cause).__name__}: {cause}"))
            self.job.end(self.report(int(pytest.ExitCode.USAGE_ERROR)))

    def pytest_collectstart(self, collector: Any) -> None:
        """The forks of the session server, and of an early one."""
        super().pytest_collectstart(collector)
        if self.job is not None or not isinstance(collector, pytest.File):
            return
        if self.live is not None and self._others:
            self._fork_session(self.live, self._others.pop())
        elif self._early is not None and self._early.has_come_to(collector):
            assert self._channel is not None
            self._channel.send({"do": "ready", **self._early.facts(self._plan)})
            gc.collect()
            gc.freeze()
            job = self._fork(ForkServer(self._channel, self._world).serve)
            self.begin(job, Clock.perf_counter())
            try:
                self._early.put(job.message)
            except NotLive as error:
                job.end(with_dependencies({"not_live": str(error)}, self._dependencies))

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(self, collector: Any) -> pytest.CollectReport | None:
        """Leave out the test files that its job does not ask for. A package is more than a file of tests."""
        if not isinstance(collector, pytest.File) or collector.path.name == "__init__.py":
            return None
        if self._files is None or relative(collector) in self._files:
            return None
        return pytest.CollectReport(collector.nodeid, "passed", None, [])

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, collector: Any, name: str) -> list[Any] | None:
        """Leave out the functions and classes in its files that its job does not ask for."""
        return None if self._files is None or f"{collector.nodeid}::{name}" in self._wanted else []

    @pytest.hookimpl(wrapper=True)
    def pytest_generate_tests(self, metafunc: Any) -> Generator[None, None, None]:
        """Leave out rows that its job does not ask for, but for one: to make thousands of tests takes seconds."""
        yield
        name, calls = metafunc.definition.nodeid, getattr(metafunc, "_calls", None)
        if self.job is not None and self._files is not None and calls:
            only = self.job.message["only"] or ()
            wanted = {test.removeprefix(name) for test in only}  # a row may have no part in the name of its test
            metafunc._calls = [call for call in calls if (f"[{call.id}]" if call.id else "") in wanted] or calls[:1]

    @property
    def _files(self) -> Sequence[str] | None:
        """The test files that its job asks for; None: all, and all that is in them."""
        return None if self.job is None else self.job.message.get("files")

    def begun(self, session: Any) -> tuple[Job, Work] | None:
        """Call `Collecting.begun`. An early server that gets here holds nothing, and ends before the session does."""
        if self.job is not None:
            return self.job, self._work(session, self.job)
        if self._early is not None:
            os._exit(0)
        return super().begun(session)

    def _hold(self, channel: Channel) -> None:
        """Returns in the processes of jobs, and in the live server."""
        unfit = self._has_loaded()
        gc.collect()
        gc.freeze()
        alone = descendants.kernel_threads() == threading.active_count() == 1
        pid = self._fork_live(channel, self._others[0]) if alone and self._others and not unfit else None
        if self.live is not None:
            return
        for other in self._others:
            other.leave()
        channel.send({"do": (BARE if self._is_beneath else PLAIN) if unfit else "ready", "live": pid})
        self.begin(ForkServer(channel, self._world).serve(), Clock.perf_counter())

    def _has_loaded(self) -> bool:
        return bool(loaded_files(frozenset(self._plan.filenames)))

    def _fork_live(self, channel: Channel, server: ServerProcess) -> int:
        pid = os.fork()
        if pid == 0:
            channel.close()
            trace = ImportTrace(frozenset(self._plan.filenames))
            self.live = Live(self, server.take(), self._plan, self._world, trace)
            del self._others[0]
            trace.start()
        return pid

    def _fork_session(self, live: Live, server: ServerProcess) -> None:
        """The live server goes on, in a fork if it can; then this process stays here for jobs, and returns in these."""
        if not live.can_fork():
            server.leave()
            return
        gc.collect()
        gc.freeze()
        self._dependencies = live.dependencies
        live.trace.keep_random_numbers()
        if self._fork(os.fork) == 0:
            server.leave()
            begin_group()
            return
        self.live = None
        live.leave()
        self.begin(self._fork(ForkServer(server.take(), self._world).serve), Clock.perf_counter())

    def _fork(self, fork: Callable[[], T]) -> T:
        return fork() if self._dependencies is None else self._dependencies.without(fork)

    def _work(self, session: Any, job: Job) -> Work:
        if session.testsfailed or not (self.items or self._files):
            return self.report(
                int(pytest.ExitCode.TESTS_FAILED if session.testsfailed else pytest.ExitCode.NO_TESTS_COLLECTED)
            )
        self.use_scratch(job.scratch)
        message = job.message
        if message["work"] == "measure":
            return (yield from self._measure(message["tests"], counts=message.get("counts")))
        left_out = set(message["left_out"])
        names = {item.nodeid: index for index, item in enumerate(self.items)}
        only = names if message["only"] is None else message["only"]
        chosen = [names[name] for name in only if name in names and name not in left_out]
        return with_dependencies((yield from run_until_failure(self, chosen, job.ended)), self._dependencies)

    def report(self, code: int) -> Report:
        """After pytest has ended with `code`, and has run no test."""
        report: Report = {"exit": code, "broken": self.broken, "seconds": Clock.perf_counter() - self._start}
        return with_dependencies(report, self._dependencies)

    def _measure(self, names: Sequence[str] | None, *, counts: str | None) -> Work:
        """The tests of these names, or all, without a mutant."""
        collected: Collected = {
            "tests": [item.nodeid for item in self.items],
            "seconds": Clock.perf_counter() - self._start,
            "elsewhere": self.elsewhere(self._plan),
        }
        durations: dict[int, float] = {}
        failing: dict[int, str] = {}
        wanted = None if names is None else set(names)
        chosen = [test for test, item in enumerate(self.items) if wanted is None or item.nodeid in wanted]
        for test, turn in self.turns(chosen):
            durations[test] = yield from self.run(turn, counts)
            if self.failure is not None:
                failing[test], self.failure = self.failure.text, None
        return {"collected": collected, "durations": durations, "failing": failing}


def _way_to(test: str) -> Iterator[str]:
    """The names of the classes around a test, from the outermost on, and that of its function."""
    file, _, name = test.partition("::")
    return (f"{file}::{part}" for part in accumulate(name.partition("[")[0].split("::"), "{}::{}".format))

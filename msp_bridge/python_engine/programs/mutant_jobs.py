"""A mutant on its way to a verdict, and its jobs: what each sends to a fork server, and how long it may take."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from .baseline import Baseline, Survivor
from .channel import TargetPlan
from .controls import Files
from .file_edit import FileEdit
from .fork_servers import Servers
from .job_queue import JobQueue, Kind, Queued
from .live_code import CodeChange
from .messages import Ended, JobMessage, Trace, Verdict
from .server_process import ServerProcess
from .time_limits import UNMEASURED_S, SetUp, limits_of_mutant, limits_without
from .world import undoes_all

PROBE_S = 2.0  # after which no other test begins
LOAD_FACTOR = 5.0  # how much longer a test may take under load


class Stage(enum.Enum):
    """Where a mutant is."""

    UNMEASURED = "waits until all tests are measured"
    LIVE = "live"
    SUITE = "the whole suite, live"
    STEADY = "steady"
    CONTROL = "control"
    LOADED = "control under load"
    SUITE_CONTROL = "all tests in their order, without the mutant"
    ISOLATED = "isolated"
    FRESH = "fresh"
    FRESH_STEADY = "fresh steady"


@dataclass
class ScheduledMutant:
    """One mutant on its way to a verdict."""

    request: int
    edit: FileEdit
    change: CodeChange
    batch: int = 0  # the user's request that it is of; the newest has the highest number
    stage: Stage = Stage.LIVE
    tests: list[int] = field(default_factory=list)  # of the last LIVE job
    tried: set[int] = field(default_factory=set)  # by LIVE jobs, and by fresh ones before all is measured
    passed: set[int] = field(default_factory=set)  # of LIVE jobs
    left_out: set[int] = field(default_factory=set)  # unsteady tests whose kills were not confirmed
    verdict: Verdict = field(default_factory=Verdict)  # until it is confirmed
    completed: int = 0  # tests
    confirmations: int = 0
    ran: list[Trace | None] = field(default_factory=list)  # what its jobs depend on (`dependencies`)
    files: Files = None  # that its last fresh process has collected
    from_fresh: bool = False  # the verdict is that of a fresh process
    is_not_live: bool = False  # it can't be put into functions that are imported, as a job has found
    is_early: bool = False  # its fresh process is one of the early server, which puts it into such functions
    in_order: bool = False  # its fresh process runs all tests in their order, not the likely killers
    set_up: SetUp = (0.0, 0.0)  # that the limits of its last job allow for: see `time_limits`
    guessed: bool = False  # these limits: it is not known how long one of the tests takes
    timed_out: bool = False  # one of its jobs was over a limit
    stopped: bool = False
    waits: bool = False  # for the measurement; so the bridge was told
    late: bool = False  # its run of the suite is ended: it has taken too long

    @property
    def path(self) -> str:
        """The path of its file, relative to the project."""
        return self.edit.path

    @property
    def function(self) -> str:
        """The first one that it changes."""
        return next((name for (name, _), _ in self.change.changed), "")

    @property
    def place(self) -> str:
        """The function, with its file."""
        return f"{self.path}:{self.function}"

    @property
    def survivor(self) -> Survivor:
        """Its key in `Baseline.survivors`."""
        return self.path, (self.edit.start, self.edit.end, self.edit.replacement)

    def note_time_out(self, names: Sequence[str], ended: int) -> None:
        """Its last job was over a limit after `ended` of its tests; the next one is the killer, if it can be named."""
        self.timed_out = True
        if self.tests and not (self.stage is Stage.FRESH and self.in_order):
            self.verdict["killed_by"] = names[self.tests[min(ended, len(self.tests) - 1)]]

    def was_not_live(self, answer: Ended) -> bool:
        """Whether its last job could not put it into functions that are imported; no other is to try it then."""
        found = "not_live" in (answer["report"] or {})
        self.is_not_live |= found
        if found:
            self.tried.difference_update(self.tests)
        return found


class MutantJobs:
    """Makes the jobs of one scheduler, and puts them into its queue. Tests are indexes of the baseline.

    A job that runs a single unsteady test, or confirms a doubtful kill, has no other job beside it. `mutated=False`
    runs the tests without the mutant, and `loaded=True` runs them while all CPUs are busy.
    """

    def __init__(
        self, plan: TargetPlan, servers: Servers, parts: Collection[str], queue: JobQueue, known: Callable[[], Baseline]
    ) -> None:
        """`parts` are what each job has for itself. `known`: what is known of the tests now."""
        self._plan, self._queue, self._known = plan, queue, known
        self._live, self._fresh, self._session = servers
        self._parts, self._leaves_nothing = sorted(parts), undoes_all(parts)

    def run_live(
        self,
        mutant: ScheduledMutant,
        tests: list[int],
        *,
        mutated: bool = True,
        loaded: bool = False,
        counts: str | None = None,
    ) -> None:
        """Run `tests`, in this order, in a fork of the collected session, until one fails.

        `counts`: of `COUNTS`, the one that notes them, if one does.
        """
        job: JobMessage = {"id": mutant.request, "work": "mutant", "tests": tests, "counts": counts}
        if mutated:
            job["edit"] = mutant.edit
        if mutated and mutant.path in self._known().facts:
            job["segment"] = mutant.change.segment
        job |= self._limits(mutant if mutated else None, tests)
        self._submit(self._live, job, mutant.batch, tests, loaded=loaded, again=mutant.confirmations > 0)

    def run_isolated(self, id: int, test: int, batch: int) -> None:
        """Run `test` alone in a fork of the collected session, without a mutant, and note the lines that it runs."""
        job: JobMessage = {"id": id, "work": "measure", "tests": [test]}
        self._submit(self._live, job | self._limits(None, [test]), batch, [test])

    def run_probe(self, id: int, tests: list[int]) -> None:
        """Note the lines that `tests` run, in a fork of the collected session, for some seconds at most."""
        job: JobMessage = {"id": id, "work": "measure", "tests": tests, "at_most": PROBE_S}
        self._submit(self._live, job | limits_without(self._plan, PROBE_S), 0, tests, once=True)

    def run_fresh(
        self,
        mutant: ScheduledMutant,
        only: Sequence[int] | None,
        early: ServerProcess | None = None,
        *,
        mutated: bool = True,
        loaded: bool = False,
    ) -> None:
        """Run the tests `only`, as they are ordered, or all, in a process that imports everything with the mutant.

        It collects the mutant's `files`. `early`: the server that has done a part of it.
        """
        baseline, job = self._known(), JobMessage(id=mutant.request, work="mutant")
        job["only"] = None if only is None else [baseline.tests[test] for test in only]
        job["files"] = None if mutant.files is None else sorted(mutant.files)
        left_out = {*baseline.failing, *mutant.left_out}
        job["left_out"] = [baseline.tests[test] for test in left_out]
        tests = [test for test in (range(len(baseline.tests)) if only is None else only) if test not in left_out]
        if mutated:
            job["edit"] = mutant.edit
        if early is not None and mutant.is_early:
            job["segment"] = mutant.change.segment
        job |= self._limits(mutant if mutated else None, only, collects=True)
        session = self._session
        if baseline.unmeasured or baseline.fork_unsafe or (session is not None and session.is_old):
            session = None  # a fork of less may be the truth
        self._submit(self._fresh, job, mutant.batch, tests, loaded=loaded, further=early or session)

    def run_collection(self, id: int, early: ServerProcess | None) -> JobMessage:
        """Collect all tests, and run none, in a fork of the early server, or in a fresh process; -> the job.

        The latter is none of the session server, which has behind it what the start of pytest's session writes.
        """
        job: JobMessage = {"id": id, "work": "measure", "tests": [], "limit": self.collection_limit}
        self._submit(self._fresh, job, 0, [], further=early, once=True)
        return job

    @property
    def collection_limit(self) -> float:
        """Seconds, of what collects all tests and runs none."""
        return self._limits(None, [], collects=True)["limit"]

    def run_start(self, id: int, start: Callable[[], None]) -> None:
        """Start a process that reads the sandbox but does not change it, and is no job; until `release`."""
        self._queue.submit(Queued(id, lambda _: start()))

    def release(self, id: int) -> None:
        """It has read what it had to."""
        self._queue.release(id)

    def is_apart(self, job: JobMessage) -> bool:
        """Whether this job, which has begun, can leave nothing to others."""
        return job.get("guarded", False) or self._leaves_nothing

    def _limits(
        self, mutant: ScheduledMutant | None, tests: Sequence[int] | None, *, collects: bool = False
    ) -> JobMessage:
        """For `tests`, or the whole suite, with a mutant or none. `collects`: after a collection of the tests."""
        baseline = self._known()
        tests = range(len(baseline.tests)) if tests is None else tests
        durations = [baseline.durations[test] if baseline.is_timed(test) else UNMEASURED_S for test in tests]
        seconds = sum(durations) + (baseline.collecting if collects else 0.0)
        if mutant is None:  # the longest test has paid for what these may have to set up
            return limits_without(self._plan, seconds + max(baseline.durations, default=0.0))
        mutant.set_up, mutant.guessed = baseline.set_up, not all(map(baseline.is_timed, tests))
        longest = max(durations, default=0.0)
        each = [longest + baseline.collecting, longest] if collects else durations
        return limits_of_mutant(self._plan, seconds, each, baseline.set_up)

    def _submit(
        self,
        server: ServerProcess | None,
        job: JobMessage,
        batch: int,
        tests: Sequence[int],
        *,
        loaded: bool = False,
        again: bool = False,
        once: bool = False,
        further: ServerProcess | None = None,
    ) -> None:
        """`tests`: all that it may run. `further`: a server that has done more, for a job that leaves nothing.

        `again`: it confirms a doubtful kill. `once`: a guard may end it for good.
        """
        assert server is not None
        job |= {"do": "run", "parts": self._parts}
        if loaded:
            job["limit"] *= LOAD_FACTOR
        alone = len(tests) == 1 and (again or tests[0] in self._known().unsteady)

        def start(guarded: bool) -> None:
            job["guarded"] = guarded  # of a job that runs again, the last word
            (further if further and self.is_apart(job) else server).channel.send(job)

        kind = Kind.WRITES if self._plan.debug else Kind.LIVE if server is self._live else Kind.FRESH
        self._queue.submit(Queued(job["id"], start, kind, batch, tests, alone, loaded, once=once))

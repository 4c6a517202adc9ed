"""Early jobs: which mutants that need a fresh process are tested in forks of the early server, and when it is started.

It is another process, and begins to pay with some mutants: so it is started when several have been fresh only because
the import of the tests calls their functions, as one test file does of which the collection has shown it
(`imports.CallingFile`). Until it is used fresh processes go on.

Not every collection can go on in a fork: the file may wait for a process, or for the end of a pipe, that one before it
has begun. So the first job collects all tests without a mutant: the server is used when that finds the same ones.

The server collects beside mutants. Where these share the sandbox, a fresh process with a guard starts pytest's session
and collects all tests first. Where the guard did not end it, this changes nothing that others see, and the server is
started. It must not see what others change either: to the queue its start is a job with a guard, so no mutated file is
in place then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .baseline import Baseline, FileFacts
from .messages import Ended, JobMessage, Started
from .mutant_jobs import MutantJobs, ScheduledMutant
from .server_process import ServerProcess
from .unmeasured import IDS

ENOUGH = 3  # mutants that would have needed it


class EarlyJobs:
    """Chooses among the jobs of one scheduler. `start` starts the server, where there is a file to hold pytest at.

    It gets the limit of that in seconds.
    """

    def __init__(self, jobs: MutantJobs, start: Callable[[float], None]) -> None:
        self._jobs, self._start, self._wanted = jobs, start, 0
        self.server: ServerProcess | None = None
        self._starting: int | None = None  # the id of its start, if exclusive jobs wait for the end of that
        self._trial: JobMessage | None = None  # that collects all tests, while it runs
        self._is_used = False
        self._facts: dict[str, FileFacts] = {}
        self._before: frozenset[str] = frozenset()  # the test files that it has collected

    @property
    def trial(self) -> int | None:
        """The id of the job that collects all tests, while it runs."""
        return None if self._trial is None else self._trial["id"]

    @property
    def is_starting(self) -> bool:
        """Whether it is to be started now: it changes nothing that others see, nor do they."""
        return self._starting is not None

    def start_ended(self) -> None:
        """The server is ready, or there will be none: exclusive jobs can run again."""
        if self._starting is not None:
            self._jobs.release(self._starting)
            self._starting = None

    def ready(self, server: ServerProcess, started: Started) -> None:
        """Try it."""
        self.start_ended()
        self.server, self._before = server, frozenset(started["before"])
        self._facts = {path: FileFacts.of(facts) for path, facts in started["files"].items()}
        self.collect()

    def collect(self) -> None:
        """Collect all tests in a fork of the server or, before there is one, in a fresh process: see `tried`."""
        self._trial = self._jobs.run_collection(next(IDS), self.server)

    def tried(self, answer: Ended, baseline: Baseline) -> None:
        """Start the server, or use it from now on, if all tests have been collected: with a guard, if jobs have one."""
        assert self._trial is not None
        is_apart, self._trial = self._jobs.is_apart(self._trial), None
        if answer["kill_reason"] == "stopped":
            self._wanted = 0
        collected = (answer["report"] or {}).get("collected")
        passed = is_apart and collected is not None and list(collected["tests"]) == list(baseline.tests)
        if self.server is not None:
            self._is_used = passed
        elif passed:
            self._starting = next(IDS)
            self._jobs.run_start(self._starting, self._begin)

    def _begin(self) -> None:
        self._start(self._jobs.collection_limit)

    def take(self, baseline: Baseline, mutant: ScheduledMutant) -> ServerProcess | None:
        """The server, if it can have the next job of `mutant`, which then collects its files, too."""
        mutant.is_early = False
        too_old = self.server is not None and self.server.is_old
        if baseline.unmeasured or baseline.fork_unsafe or mutant.is_not_live or too_old:
            return None
        if not self._is_used:
            self._wanted += mutant.change.not_live is None
            if self._wanted == ENOUGH:
                self._wanted += 1
                self._begin()
            return None
        if not replace(baseline, facts=self._facts).allows_live_code(mutant.path, mutant.change):
            return None
        mutant.is_early = mutant.path in self._facts
        if mutant.files is not None:
            mutant.files |= self._before
        return self.server

"""The scheduler: the way of each mutant from its first job to a verdict that a fresh process would give too.

Theory of operation
-------------------
The truth about a mutant is what a fresh process says: the mutated file on the disk, all tests, in their order. A mutant
gets there in stages, each of which is cheap and either final or hands on to the next:

- *route*. Where live code isn't the truth (`live_code`), straight to `FRESH`. No test runs it: NoCoverage.
- `LIVE`: the candidate tests in a fork of the collected session, the last killer first, then the fastest.
- A test failed: `STEADY`, unless the test was the first one that ran, and then `CONTROL`. STEADY runs the killer alone
  with the mutant: does it fail also without the tests that ran before it here? CONTROL runs it alone without the
  mutant: does it pass? Yes and yes: Killed. Otherwise nobody knows: FRESH.
- No test failed: what one test computes and keeps (a cache, module state), later tests use without running the code; in
  the baseline only the first was seen. `ISOLATED` waits until each test has been run alone once (for all survivors
  together), which shows what it runs then. New candidates: `LIVE` again with them. A suite in which some test fails
  alone (it depends on the order) has no truth but the whole run: FRESH. Otherwise: Survived.
- `FRESH`: a process that imports everything with the mutated file on the disk and runs all tests: likely killers first,
  then all in their order. A kill by a later one is confirmed alone (`FRESH_STEADY`), for others ran before their
  turn; if it isn't, the tests run once more, in their order.

What is known of a test by its controls, and when the next one is due, is `Controls`. Some tests have a second one,
under load (`LOADED`). Each kill by an unsteady test must be confirmed with the mutant and without, twice, while no
other job runs; otherwise the mutant is tested again without that test.

Invariants. Each request is answered once, whatever happens. A mutant has at most one job at a time. Jobs of isolated
runs have negative ids. A stopped request is answered when its job is gone.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from .baseline import Baseline
from .channel import Message, TargetPlan
from .controls import Controls, IsolatedRuns
from .endings import verdict_of
from .fork_server import ServerProcess
from .job_queue import JobQueue
from .live_code import CodeChange
from .world import LOST

CONFIRMATIONS = 2  # runs with and without the mutant that a kill by an unsteady test takes
LOAD_FACTOR = 5.0  # how much longer a test may take under load


class Stage(enum.Enum):
    """Where a mutant is."""

    LIVE = "live"
    STEADY = "steady"
    CONTROL = "control"
    LOADED = "control under load"
    ISOLATED = "isolated"
    FRESH = "fresh"
    FRESH_STEADY = "fresh steady"


@dataclass
class ScheduledMutant:
    """One mutant on its way to a verdict."""

    request: int
    path: str
    change: CodeChange
    files: Mapping[str, str]  # path to the mutated content, in base64
    stage: Stage = Stage.LIVE
    tests: list[int] = field(default_factory=list)  # of the last LIVE job
    asked: set[int] = field(default_factory=set)  # of all LIVE jobs
    left_out: set[int] = field(default_factory=set)  # unsteady tests whose kills were not confirmed
    verdict: Message = field(default_factory=dict)  # until it is confirmed
    completed: int = 0  # tests
    confirmations: int = 0
    from_fresh: bool = False  # the verdict is that of a fresh process
    in_order: bool = False  # no test may be brought forward
    stopped: bool = False


class MutantScheduler:
    """For one baseline. Each mutant is answered once, through `send`, under the id of its request."""

    def __init__(
        self,
        baseline: Baseline,
        plan: TargetPlan,
        servers: tuple[ServerProcess | None, ServerProcess],
        parts: Collection[str],
        jobs: int,
        send: Callable[[Message], None],
        note: Callable[[], None],
    ) -> None:
        """`servers` are the live and the fresh one; `note` is called when the baseline has become richer."""
        self.baseline, self._plan, self._jobs, self._send, self._note = baseline, plan, jobs, send, note
        self._live, self._fresh = servers
        self._parts = sorted(parts)  # what each job has for itself
        self._mutants: dict[int, ScheduledMutant] = {}
        self._isolated: IsolatedRuns | None = None
        self._controls = Controls(baseline.unsteady)
        self._queue = JobQueue()
        self._killers: dict[tuple[str, str], int] = {}  # of the last mutant of a function

    @property
    def servers(self) -> list[ServerProcess]:
        """Those that there are."""
        return [server for server in (self._live, self._fresh) if server is not None]

    @property
    def idle(self) -> bool:
        """Whether no mutant is on its way, and no job runs."""
        return not self._mutants and self._queue.idle

    @property
    def wait_s(self) -> float | None:
        """When `look` is to be called; None: there is no need to."""
        return self._queue.wait_s

    def look(self) -> None:
        """Start what has waited for long enough."""
        self._queue.look()

    def test(self, request: int, path: str, change: CodeChange, files: Mapping[str, str]) -> None:
        """Start on the way."""
        mutant = self._mutants[request] = ScheduledMutant(request, path, change, files)
        if self.needs_fresh(path, change) is not None:
            self._start_fresh(mutant)
            return
        tests = self.baseline.candidates(path, change.lines)
        if tests:
            self._start_live(mutant, tests)
        elif self.baseline.fork_unsafe:  # what these run is not known
            self._start_fresh(mutant)
        else:
            self._answer(mutant, {"status": "NoCoverage", "tests": 0, "seconds": 0.0})

    def needs_fresh(self, path: str, change: CodeChange) -> str | None:
        """Why live code isn't the truth for the mutant; None when it is. See `live_code`."""
        facts = self.baseline.facts.get(path)
        if self._live is None:
            return "every mutant is tested in a fresh process"
        if facts is None:
            unseen = path not in self.baseline.late and not self.baseline.subprocess_tests
            return None if unseen else "its file is imported by the tests themselves"
        if change.not_live is not None:
            return change.not_live
        if facts.read:
            return "the source of its file was read at import"
        for function, parents in change.changed:
            if function in facts.called:
                return "it changes a function that was called at import"
            if function in facts.suspended:
                return "it changes a function that is suspended"
            if function not in facts.live and not facts.live.intersection(parents):
                return "no live function has its code"
        return None

    def stop(self, requests: list[int]) -> None:
        """Kill the jobs of these requests; each request is answered when its job is gone."""
        ids = [request for request in requests if request in self._mutants]
        withdrawn = self._queue.withdraw(ids)
        for mutant in [self._mutants[request] for request in ids]:
            mutant.stopped = True
            if mutant.stage is Stage.ISOLATED or mutant.request in withdrawn:
                self._answer(mutant, {"status": "stopped"})
        waiting = any(mutant.stage is Stage.ISOLATED for mutant in self._mutants.values())
        if self._isolated is not None and not waiting:
            running = self._isolated.pause()
            for id in self._queue.withdraw(running):
                self._isolated.receive({"id": id, "kill_reason": "stopped"})
            ids += running
        for server in self.servers:
            server.channel.send({"do": "stop", "ids": ids})

    def end(self) -> None:
        """The servers have ended: so has every job."""
        self._queue.clear()
        for mutant in list(self._mutants.values()):
            self._answer(mutant, {"status": "stopped"})

    def receive(self, server: ServerProcess) -> None:
        """Handle what the jobs of `server` have come to."""
        answers = server.channel.receive()
        if answers is None:
            raise SystemExit("a fork server has ended")  # the bridge starts a new host
        for answer in answers:
            self._queue.ended(answer["id"])
            if answer["id"] < 0:
                self._on_isolated_run(answer)
            elif (mutant := self._mutants.get(answer["id"])) is not None:
                self._on_answer(mutant, answer)

    def _on_answer(self, mutant: ScheduledMutant, answer: Message) -> None:
        """A job of `mutant` has ended."""
        if mutant.stopped or answer["kill_reason"] == "stopped":
            self._answer(mutant, {"status": "stopped"})
        elif answer["report"] is None and answer["exit"] == LOST:
            raise SystemExit("a job could not enter its world")  # the bridge looks at the project again
        elif mutant.stage is Stage.LIVE:
            self._after_live(mutant, answer)
        elif mutant.stage is Stage.STEADY:
            self._after_steady(mutant, answer)
        elif mutant.stage in (Stage.CONTROL, Stage.LOADED):
            self._after_control(mutant, answer)
        elif mutant.stage is Stage.FRESH:
            self._after_fresh(mutant, answer)
        else:
            self._after_fresh_steady(mutant, answer)

    def _after_live(self, mutant: ScheduledMutant, answer: Message) -> None:
        if answer["report"] is not None and "not_live" in answer["report"]:
            self._start_fresh(mutant)
            return
        mutant.verdict = verdict_of(answer, self._plan)
        if "tests" in mutant.verdict:
            mutant.completed += mutant.verdict["tests"]
            mutant.verdict["tests"] = mutant.completed
        killer = self._killer(mutant)
        if mutant.verdict["status"] == "Survived":
            self._after_survival(mutant)
        elif killer is None:
            self._answer(mutant, mutant.verdict)
        elif killer == mutant.tests[0] and not self._controls.is_unsteady(killer):
            self._control(mutant, killer)
        else:
            mutant.stage = Stage.STEADY
            self._run_live(mutant, [killer], mutated=True)

    def _after_steady(self, mutant: ScheduledMutant, answer: Message) -> None:
        """The killer ran alone with the mutant."""
        killer = self._killer(mutant)
        assert killer is not None
        if _failed(answer):
            self._control(mutant, killer)
        elif self._controls.is_unsteady(killer):
            self._without(mutant, killer)
        else:
            self._start_fresh(mutant)

    def _control(self, mutant: ScheduledMutant, killer: int) -> None:
        if self._needs_others(killer):
            self._after_failed_control(mutant, killer)
            return
        if self._controls.due(killer):
            self._run_control(mutant, killer, loaded=False)
        else:
            self._killed(mutant, killer)

    def _run_control(self, mutant: ScheduledMutant, killer: int, *, loaded: bool) -> None:
        mutant.stage = Stage.LOADED if loaded else Stage.CONTROL
        if self._live is not None:
            self._run_live(mutant, [killer], mutated=False, loaded=loaded)
        else:
            self._run_fresh(mutant, [self.baseline.tests[killer]], only_first=True, mutated=False, loaded=loaded)

    def _after_control(self, mutant: ScheduledMutant, answer: Message) -> None:
        """The killer ran alone without the mutant."""
        killer = self._killer(mutant)
        assert killer is not None
        report, loaded = answer["report"], mutant.stage is Stage.LOADED
        if report is None or report.get("failure", "") is not None:
            self._controls.failed(killer, passed_alone=loaded or killer in self.baseline.alone)
            if self._controls.unsteady > self.baseline.unsteady:
                self.baseline = self.baseline.with_unsteady(self._controls.unsteady)
                self._note()
            if loaded:
                self._confirm(mutant, killer)
            else:
                self._after_failed_control(mutant, killer)
            return
        self._controls.passed(killer)
        if not loaded and self._controls.due_under_load(killer, report["seconds"]):
            self._run_control(mutant, killer, loaded=True)
        elif self._controls.is_unsteady(killer) and mutant.confirmations < CONFIRMATIONS:
            self._confirm(mutant, killer)
        else:
            self._killed(mutant, killer)

    def _confirm(self, mutant: ScheduledMutant, killer: int) -> None:
        """Once more, alone, with the mutant."""
        mutant.confirmations += 1
        if self._live is None or mutant.from_fresh:
            mutant.stage = Stage.FRESH_STEADY
            self._run_fresh(mutant, [self.baseline.tests[killer]], only_first=True)
        else:
            mutant.stage = Stage.STEADY
            self._run_live(mutant, [killer], mutated=True)

    def _after_failed_control(self, mutant: ScheduledMutant, killer: int) -> None:
        """The killer does not pass alone without the mutant either."""
        if self._controls.is_unsteady(killer):
            self._without(mutant, killer)
        elif mutant.from_fresh and mutant.confirmations:  # it needs others before it, and failed after them twice
            self._killed(mutant, killer)
        else:
            mutant.confirmations += mutant.from_fresh
            self._start_fresh(mutant)

    def _without(self, mutant: ScheduledMutant, killer: int) -> None:
        """Test the mutant again without a test whose failure says nothing."""
        mutant.left_out.add(killer)
        if mutant.from_fresh:
            self._start_fresh(mutant)
            return
        rest = [test for test in mutant.tests[mutant.tests.index(killer) + 1 :] if test not in mutant.left_out]
        if rest:
            self._start_live(mutant, rest)
        else:
            mutant.verdict = {"status": "Survived", "tests": mutant.completed, "seconds": 0.0}
            self._after_survival(mutant)

    def _killed(self, mutant: ScheduledMutant, killer: int) -> None:
        for function, _ in mutant.change.changed[:1]:
            self._killers[mutant.path, function[0]] = killer
        self._answer(mutant, mutant.verdict)

    def _after_survival(self, mutant: ScheduledMutant) -> None:
        """It survived its candidates; would others notice it that run its code when they run alone?"""
        baseline = self.baseline
        if not baseline.isolated_runs:
            mutant.stage = Stage.ISOLATED
            if self._isolated is None:
                self._isolated = IsolatedRuns(baseline.never_alone, self._jobs, self._start_isolated)
            self._isolated.advance()
        elif baseline.order_dependent or baseline.fork_unsafe:
            self._start_fresh(mutant)
        elif more := self._more(mutant):
            self._start_live(mutant, more)
        else:
            self._answer(mutant, self._seen(mutant, mutant.verdict))

    def _more(self, mutant: ScheduledMutant) -> list[int]:
        candidates = self.baseline.candidates(mutant.path, mutant.change.lines)
        return [test for test in candidates if test not in mutant.asked]

    def _seen(self, mutant: ScheduledMutant, verdict: Message) -> Message:
        """Nobody saw the code run, and no process that the tests start minds the mutant: that's no coverage."""
        unknown = self._live is None or self.baseline.fork_unsafe
        covered = unknown or self.baseline.covering(mutant.path, mutant.change.lines)
        unseen = not covered and not self._is_static(mutant) and mutant.path not in self.baseline.late
        return {**verdict, "status": "NoCoverage"} if unseen and verdict["status"] == "Survived" else verdict

    def _after_fresh(self, mutant: ScheduledMutant, answer: Message) -> None:
        mutant.verdict = self._seen(mutant, verdict_of(answer, self._plan))
        killer = self._killer(mutant)
        reordered = bool(self._first(mutant)) and mutant.verdict.get("tests", 0) > 1
        if killer is not None and (self._controls.is_unsteady(killer) or reordered):
            mutant.stage = Stage.FRESH_STEADY
            self._run_fresh(mutant, [self.baseline.tests[killer]], only_first=True)
        elif killer is not None:
            mutant.from_fresh = True
            self._control(mutant, killer)
        else:
            self._answer(mutant, mutant.verdict)

    def _after_fresh_steady(self, mutant: ScheduledMutant, answer: Message) -> None:
        killer = self._killer(mutant)
        assert killer is not None
        if not _failed(answer) and self._controls.is_unsteady(killer):
            self._without(mutant, killer)
        elif not _failed(answer):
            mutant.in_order = True
            self._start_fresh(mutant)
        else:
            mutant.from_fresh = True
            self._control(mutant, killer)

    def _start_live(self, mutant: ScheduledMutant, tests: list[int]) -> None:
        mutant.stage = Stage.LIVE
        mutant.asked.update(tests)
        last = next((self._killers.get((mutant.path, function[0])) for function, _ in mutant.change.changed[:1]), None)
        if last is not None and last in tests:
            tests = [last, *(test for test in tests if test != last)]
        mutant.tests = tests = sorted(tests, key=self._controls.is_unsteady)  # those last
        self._run_live(mutant, tests, mutated=True)

    def _run_live(self, mutant: ScheduledMutant, tests: list[int], *, mutated: bool, loaded: bool = False) -> None:
        assert self._live is not None
        job: Message = {"id": mutant.request, "do": "run", "work": "mutant", "tests": tests, "parts": self._parts}
        job["limit"] = self._plan.limit_for(self.baseline.seconds(tests)) * (LOAD_FACTOR if loaded else 1)
        if mutated:
            job |= {"segment": mutant.change.segment.as_list(), "files": dict(mutant.files)}
        self._submit(self._live, job, alone=len(tests) == 1 and self._controls.is_unsteady(tests[0]), loaded=loaded)

    def _submit(self, server: ServerProcess, job: Message, *, alone: bool = False, loaded: bool = False) -> None:
        self._queue.submit(job["id"], lambda: server.channel.send(job), alone=alone, loaded=loaded)

    def _start_fresh(self, mutant: ScheduledMutant) -> None:
        mutant.stage = Stage.FRESH
        mutant.completed = 0
        self._run_fresh(mutant, self._first(mutant), only_first=False)

    def _first(self, mutant: ScheduledMutant) -> list[str]:
        """The tests that are most likely to fail, before all others; none that needs others before it."""
        last = next((self._killers.get((mutant.path, function[0])) for function, _ in mutant.change.changed[:1]), None)
        if last is None or mutant.in_order or last in mutant.left_out or self._needs_others(last):
            return []
        return [self.baseline.tests[last]]

    def _needs_others(self, test: int) -> bool:
        """Whether a test fails alone, as far as is known."""
        return self._controls.fails_alone(test) or test in self.baseline.order_dependent

    def _run_fresh(
        self, mutant: ScheduledMutant, first: list[str], *, only_first: bool, mutated: bool = True, loaded: bool = False
    ) -> None:
        left_out = [self.baseline.tests[test] for test in {*self.baseline.failing, *mutant.left_out}]
        limit = self._plan.limit_for(self.baseline.total + self.baseline.collecting)
        job: Message = {"id": mutant.request, "do": "run", "work": "mutant", "parts": self._parts}
        job |= {"first": first, "only_first": only_first, "left_out": left_out}
        job |= {"files": dict(mutant.files) if mutated else {}, "limit": limit * (LOAD_FACTOR if loaded else 1)}
        killer = self._killer(mutant)
        alone = only_first and killer is not None and self._controls.is_unsteady(killer)
        self._submit(self._fresh, job, alone=alone, loaded=loaded)

    def _start_isolated(self, id: int, test: int) -> None:
        assert self._live is not None
        limit = self._plan.limit_for(self.baseline.durations[test])
        job: Message = {"id": id, "do": "run", "work": "measure", "tests": [test], "limit": limit}
        self._submit(self._live, {**job, "parts": self._parts})

    def _on_isolated_run(self, answer: Message) -> None:
        """One test was run alone."""
        assert self._isolated is not None
        self._isolated.receive(answer)
        waiting = [mutant for mutant in self._mutants.values() if mutant.stage is Stage.ISOLATED]
        if waiting and not self._isolated.done:
            self._isolated.advance()
        elif self._isolated.done:
            self.baseline = self.baseline.with_isolated_runs(self._isolated.reports)
            self._isolated = None
            self._note()
            for mutant in waiting:
                self._after_survival(mutant)

    def _killer(self, mutant: ScheduledMutant) -> int | None:
        """The index of the test that killed it; None where nothing or no test did."""
        name = mutant.verdict.get("killed_by")
        return self.baseline.tests.index(name) if name in self.baseline.tests else None

    def _is_static(self, mutant: ScheduledMutant) -> bool:
        facts = self.baseline.facts.get(mutant.path)
        if facts is None:
            return False
        at_import = mutant.change.not_live is not None
        return at_import or any(function in facts.called for function, _ in mutant.change.changed)

    def _answer(self, mutant: ScheduledMutant, verdict: Message) -> None:
        del self._mutants[mutant.request]
        covered = self.baseline.covering(mutant.path, mutant.change.lines)
        static = self._is_static(mutant)
        unsteady = [self.baseline.tests[test] for test in sorted(self._controls.unsteady)]
        self._send(
            {"id": mutant.request, "covered": sorted(covered), "static": static, "unsteady": unsteady, **verdict}
        )


def _failed(answer: Message) -> bool:
    """Whether the tests of a job failed, or didn't come to their end."""
    report = answer["report"]
    return report is None or bool(report.get("failure", True))

"""The scheduler: the way of each mutant from its first job to a verdict that a fresh process would give too.

Theory of operation
-------------------
The truth about a mutant is what a fresh process says: the mutated file on the disk, all tests, in their order. A mutant
gets there in stages, each of which is cheap and either final or hands on to the next:

- *route*. Where live code isn't the truth (`live_code`), straight to `FRESH`. No test runs it: NoCoverage.
- `LIVE`: the candidate tests in a fork of the collected session, the last killer first, then the fastest.
- A test failed: the kill is confirmed by runs of that test alone (`kill_confirmation`: STEADY, CONTROL, LOADED). If it
  is not: FRESH.
- No test failed: `survivors` decides what shows that no other test would. `SUITE` runs all tests in their order with
  the mutant. `ISOLATED` waits until each test has been run alone once (for all survivors together), which shows what
  it runs then. New candidates: `LIVE` again with them. A suite in which some test fails alone (it depends on the
  order) has no truth but the whole run: FRESH. Otherwise: Survived.
- `UNMEASURED`: not all tests are measured yet (`measuring`). Likely tests are, and may kill the mutant; NoCoverage and
  Survived wait for the rest.
- `FRESH`: a process that imports everything with the mutated file on the disk and runs all tests in their order. Before
  that, the likely killer runs alone in a process of its own: in the same one it could change what the others find.

Invariants. Each request is answered once, whatever happens. A mutant has at most one job at a time. Jobs of isolated
runs have negative ids. A stopped request is answered when its job is gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from .baseline import Baseline
from .channel import Message, TargetPlan
from .controls import Controls, IsolatedRuns
from .dependencies import Function, joined
from .endings import verdict_of
from .fork_servers import ServerProcess
from .job_queue import JobQueue
from .kill_confirmation import KillConfirmation
from .likely_tests import LikelyTests, Probes
from .live_code import CodeChange
from .mutant_jobs import MutantJobs, ScheduledMutant, Stage
from .survivors import Survivors
from .world import LOST

PATIENCE_S = 0.5  # after which mutants do not wait any longer for the measurement of all tests
NOTED_S = 1.0  # of a suite that takes more, what it says of each survivor is kept at once


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
        texts: Mapping[str, str],
    ) -> None:
        """`servers` are the live and the fresh one; `note` is called when the baseline has become richer.

        Through `send` goes also what tests have run alone, under no id. `texts` are those of the test files, by path.
        """
        self.baseline, self._plan, self._at_once, self._send, self._note = baseline, plan, jobs, send, note
        self._live, self._fresh = servers
        self._parts = frozenset(parts)
        self._mutants: dict[int, ScheduledMutant] = {}
        self._isolated = IsolatedRuns(jobs, self._start_isolated)
        self._asked: dict[int, Callable[[], Message]] = {}  # what waits for the isolated runs, and is no mutant
        self._controls = Controls(baseline.unsteady)
        self._queue = JobQueue()
        self._jobs = MutantJobs(plan, servers, parts, self._controls, self._queue)
        self._confirmation = KillConfirmation(self, self._jobs, self._controls, note, live=self._live is not None)
        self._numbers = {name: test for test, name in enumerate(baseline.tests)}
        self._probes = Probes(LikelyTests(baseline.tests, texts), self._jobs)
        self._seek_at = time.monotonic() + PATIENCE_S if baseline.unmeasured else 0.0  # 0: mutants do not wait for it
        self._survivors = Survivors(plan)

    @property
    def servers(self) -> list[ServerProcess]:
        """The servers that run."""
        return [server for server in (self._live, self._fresh) if server is not None and not server.has_ended]

    @property
    def idle(self) -> bool:
        """Whether no mutant is on its way, and no job runs."""
        return not self._mutants and self._queue.idle

    @property
    def is_unwanted(self) -> bool:
        """Whether nobody waits for an answer."""
        return not self._asked and all(mutant.stopped for mutant in self._mutants.values())

    @property
    def wait_s(self) -> float | None:
        """When `look` is to be called; None: there is no need to."""
        waits = [self._queue.wait_s, max(0.0, self._seek_at - time.monotonic()) if self._seek_at else None]
        return min((wait for wait in waits if wait is not None), default=None)

    def look(self) -> None:
        """Start what has waited for long enough."""
        self._queue.look()
        if self._seek_at and time.monotonic() >= self._seek_at:
            self._seek_at = 0.0
            self._seek_all()

    def test(self, request: int, path: str, change: CodeChange, files: Mapping[str, str]) -> None:
        """Start on the way."""
        mutant = self._mutants[request] = ScheduledMutant(request, path, change, files)
        if self.baseline.unmeasured:
            self._seek(mutant)
        else:
            self._route(mutant)

    def complete(self, baseline: Baseline) -> None:
        """All tests are measured: `baseline`."""
        unsteady = self._controls.unsteady | baseline.unsteady
        self.baseline, self._seek_at = baseline.with_unsteady(unsteady), 0.0
        for mutant in self._waiting(Stage.UNMEASURED):
            mutant.completed = 0
            self._route(mutant)

    def uses(self, servers: tuple[ServerProcess | None, ServerProcess], parts: Collection[str]) -> bool:
        """Whether its jobs run in these servers, with these parts."""
        return servers == (self._live, self._fresh) and parts == self._parts

    def _waiting(self, stage: Stage) -> list[ScheduledMutant]:
        return [mutant for mutant in self._mutants.values() if mutant.stage is stage]

    def _seek_all(self) -> None:
        for mutant in self._waiting(Stage.UNMEASURED):
            self._seek(mutant)

    def _seek(self, mutant: ScheduledMutant) -> None:
        """Look for a test that kills it, though not all tests are measured; where there is none it waits for that."""
        mutant.stage = Stage.UNMEASURED
        baseline = self.baseline
        ended = self._live is None or self._live.has_ended
        if self._seek_at or ended or not baseline.allows_live_code(mutant.path, mutant.change):
            return
        last = self._last_killer(mutant)
        tests = [test for test in [last] if test is not None]
        tests += baseline.covering(mutant.path, mutant.change.lines)
        tests = [test for test in dict.fromkeys(tests) if test not in mutant.tried]
        if tests:
            self.start_live(mutant, tests)
        else:
            self._probes.start(baseline, mutant)

    def _route(self, mutant: ScheduledMutant) -> None:
        """Begin with the first stage that may say the truth."""
        path, change = mutant.path, mutant.change
        if self._live is None or not self.baseline.allows_live_code(path, change):
            self.start_fresh(mutant)
            return
        tests = self.baseline.candidates(path, change.lines)
        if tests:
            self.start_live(mutant, tests)
        elif self.baseline.fork_unsafe:  # what these run is not known
            self.start_fresh(mutant)
        else:
            self._answer(mutant, {"status": "NoCoverage", "tests": 0, "seconds": 0.0})

    def know_alone(self, functions: Sequence[Function], ran_alone: Mapping[str, Sequence[int]]) -> None:
        """Note runs of tests alone that hold for the project as it is (`Baseline.knowing`)."""
        self.baseline = self.baseline.knowing(functions, ran_alone)

    def when_alone(self, request: int, answer: Callable[[], Message]) -> None:
        """Answer with what `answer` returns once each test has been run alone."""
        self._asked[request] = answer
        self._answer_asked()

    @property
    def is_sound(self) -> bool:
        """Whether each verdict is that of tests which pass in a fork, alone as among others."""
        baseline = self.baseline
        odd = baseline.failing or baseline.fork_unsafe or baseline.order_dependent or self._controls.unsteady
        return self._live is not None and not odd and not baseline.unmeasured

    def stop(self, requests: list[int]) -> None:
        """Kill the jobs of these requests; each request is answered when its job is gone."""
        for request in requests:
            if self._asked.pop(request, None) is not None:
                self._send({"id": request, "status": "stopped"})
        ids = [request for request in requests if request in self._mutants]
        withdrawn = self._queue.withdraw(ids)
        for mutant in [self._mutants[request] for request in ids]:
            mutant.stopped = True
            if mutant.stage in (Stage.ISOLATED, Stage.UNMEASURED) or mutant.request in withdrawn:
                self._answer(mutant, {"status": "stopped"})
        waiting = self._asked or any(mutant.stage is Stage.ISOLATED for mutant in self._mutants.values())
        if not waiting:
            running = self._isolated.pause()
            for id in self._queue.withdraw(running):
                self._isolated.receive({"id": id, "kill_reason": "stopped"})
            ids += running
        if self.is_unwanted:
            ids += self._probes.stop(self._queue)
        for server in self.servers:
            server.channel.send({"do": "stop", "ids": ids})

    def stop_all(self) -> None:
        """Kill all jobs, and answer all requests at once: what becomes of their jobs is not waited for."""
        self.stop([*self._mutants, *self._asked])
        self.end()

    def end(self) -> None:
        """The servers have ended: so has every job."""
        self._queue.clear()
        for mutant in list(self._mutants.values()):
            self._answer(mutant, {"status": "stopped"})
        for request in list(self._asked):
            del self._asked[request]
            self._send({"id": request, "status": "stopped"})

    def receive(self, answer: Message) -> None:
        """Handle what a job has come to."""
        self._queue.ended(answer["id"])
        if answer["id"] == self._probes.id:
            self.baseline = self._probes.ended(answer, self.baseline)
            self._seek_all()
        elif -len(self.baseline.tests) <= answer["id"] < 0:
            self._on_isolated_run(answer)
        elif (mutant := self._mutants.get(answer["id"])) is not None:
            self._on_answer(mutant, answer)

    def _on_answer(self, mutant: ScheduledMutant, answer: Message) -> None:
        """A job of `mutant` has ended."""
        mutant.ran.append((answer["report"] or {}).get("ran"))
        if mutant.stopped or answer["kill_reason"] == "stopped":
            self._answer(mutant, {"status": "stopped"})
        elif answer["report"] is None and answer["exit"] == LOST:
            raise SystemExit("a job could not enter its world")  # the bridge looks at the project again
        elif mutant.stage in (Stage.LIVE, Stage.SUITE):
            self._after_live(mutant, answer)
        elif mutant.stage is Stage.FRESH:
            self._after_fresh(mutant, answer)
        else:
            self._confirmation.receive(mutant, answer)

    def _after_live(self, mutant: ScheduledMutant, answer: Message) -> None:
        if answer["report"] is not None and "not_live" in answer["report"]:
            self.start_fresh(mutant)
            return
        mutant.verdict = verdict_of(answer, self._plan)
        if "tests" in mutant.verdict:
            mutant.completed += mutant.verdict["tests"]
            mutant.verdict["tests"] = mutant.completed
        killer = self.killer(mutant)
        if mutant.verdict["status"] == "Survived" and mutant.stage is Stage.SUITE:
            self._after_suite(mutant)
        elif mutant.verdict["status"] == "Survived":
            self.survived(mutant)
        elif killer is None:
            self._answer(mutant, mutant.verdict)
        else:
            self._confirmation.begin_live(mutant, killer)

    def killed(self, mutant: ScheduledMutant, killer: int) -> None:
        """Answer: its kill by the test `killer` is confirmed."""
        killers = {**self.baseline.killers, mutant.place: self.baseline.tests[killer]}
        self.baseline = replace(self.baseline, killers=killers)
        self._answer(mutant, mutant.verdict)

    def survived(self, mutant: ScheduledMutant) -> None:
        """Look for other tests that may kill a mutant that has survived its candidates."""
        stage, tests = self._survivors.next(self.baseline, mutant)
        if stage is Stage.UNMEASURED:
            self._seek(mutant)
        elif stage is Stage.FRESH:
            self.start_fresh(mutant)
        elif stage is Stage.SUITE:
            self._start_suite(mutant, tests)
        elif stage is Stage.ISOLATED:
            mutant.stage = stage
            self._run_isolated(tests)
        elif stage is Stage.LIVE:
            self.start_live(mutant, tests)
        else:
            self._answer(mutant, self._seen(mutant, mutant.verdict))

    def _start_suite(self, mutant: ScheduledMutant, tests: list[int]) -> None:
        """All tests in their order, with the mutant."""
        mutant.stage, mutant.tests = Stage.SUITE, tests
        self._send({"id": None, "suite": len(mutant.tests), "tried": len(mutant.tried)})
        self._jobs.run_live(self.baseline, mutant, mutant.tests)

    def _after_suite(self, mutant: ScheduledMutant) -> None:
        """The whole suite passes with it: the truth."""
        self.baseline = replace(self.baseline, survivors=self.baseline.survivors | {mutant.digest})
        if self.baseline.total > NOTED_S:
            self._note()
        self._answer(mutant, self._seen(mutant, mutant.verdict))

    def _run_isolated(self, tests: Collection[int]) -> None:
        self._isolated.want(tests)
        self._isolated.advance()

    def _answer_asked(self) -> None:
        """Or run what is unknown: another request may have made it so meanwhile."""
        unknown = self.baseline.unknown_alone
        if self._asked and unknown:
            self._run_isolated(unknown)
            return
        for request, answer in list(self._asked.items()):
            del self._asked[request]
            self._send({"id": request, **answer()})

    def _seen(self, mutant: ScheduledMutant, verdict: Message) -> Message:
        """NoCoverage for a survivor of all tests, none of which was seen to run its code."""
        unknown = self._live is None or self.baseline.fork_unsafe
        covered = unknown or self.baseline.covering(mutant.path, mutant.change.lines)
        unseen = not covered and not self.baseline.is_static(mutant.path, mutant.change)
        return {**verdict, "status": "NoCoverage"} if unseen and verdict["status"] == "Survived" else verdict

    def _after_fresh(self, mutant: ScheduledMutant, answer: Message) -> None:
        mutant.verdict = self._seen(mutant, verdict_of(answer, self._plan))
        killer = self.killer(mutant)
        if mutant.verdict["status"] in ("Survived", "NoCoverage") and not mutant.in_order:
            mutant.in_order = True
            self.start_fresh(mutant)
        elif killer is None:
            self._answer(mutant, mutant.verdict)
        else:
            self._confirmation.begin_fresh(mutant, killer)

    def start_live(self, mutant: ScheduledMutant, tests: list[int]) -> None:
        """Run `tests` in a fork of the collected session, with the mutant."""
        mutant.stage = Stage.LIVE
        mutant.tried.update(tests)
        last = self._last_killer(mutant)
        if last is not None and last in tests:
            tests = [last, *(test for test in tests if test != last)]
        mutant.tests = sorted(tests, key=self._controls.is_unsteady)  # those last
        self._jobs.run_live(self.baseline, mutant, mutant.tests)

    def start_fresh(self, mutant: ScheduledMutant) -> None:
        """Run the likely killer alone in a process that imports everything with the mutant; without one, all tests."""
        if self.baseline.unmeasured:
            mutant.stage = Stage.UNMEASURED
            return
        mutant.stage = Stage.FRESH
        mutant.completed = 0
        first = self._first(mutant)
        mutant.in_order = first is None
        self._jobs.run_fresh(self.baseline, mutant, first)

    def _first(self, mutant: ScheduledMutant) -> int | None:
        """The test that is most likely to fail, if it may run alone; not one that needs others before it."""
        last = self._last_killer(mutant)
        if last is None or mutant.in_order or last in mutant.left_out or self._confirmation.needs_others(last):
            return None
        return last

    def _last_killer(self, mutant: ScheduledMutant) -> int | None:
        """The last killer of the mutants of the same function."""
        return self._index(self.baseline.killers.get(mutant.place))

    def _start_isolated(self, id: int, test: int) -> None:
        self._jobs.run_isolated(self.baseline, id, test)

    def _on_isolated_run(self, answer: Message) -> None:
        """One test was run alone."""
        self._isolated.receive(answer)
        waiting = [mutant for mutant in self._mutants.values() if mutant.stage is Stage.ISOLATED]
        if (waiting or self._asked) and not self._isolated.done:
            self._isolated.advance()
        elif self._isolated.done:
            self.baseline = self.baseline.with_isolated_runs(self._isolated.reports)
            ran = self._isolated.dependencies if self.is_sound else {}
            named = {self.baseline.tests[test]: report for test, report in ran.items()}
            self._send({"id": None, "ran_alone": named, "count": len(self._isolated.reports)})
            self._isolated = IsolatedRuns(self._at_once, self._start_isolated)
            self._note()
            self._answer_asked()
            for mutant in waiting:
                self.survived(mutant)

    def killer(self, mutant: ScheduledMutant) -> int | None:
        """The index of the test that killed it; None where nothing or no test did."""
        return self._index(mutant.verdict.get("killed_by"))

    def _index(self, name: str | None) -> int | None:
        return self._numbers.get(name) if name is not None else None

    def _answer(self, mutant: ScheduledMutant, verdict: Message) -> None:
        del self._mutants[mutant.request]
        covered = None if self.baseline.unmeasured else sorted(self.baseline.covering(mutant.path, mutant.change.lines))
        static = self.baseline.is_static(mutant.path, mutant.change)
        ran = joined(mutant.ran) if self.is_sound else None
        fresh = mutant.stage in (Stage.FRESH, Stage.FRESH_STEADY)
        rests = {"ran": ran, "tried": None if fresh or verdict["status"] == "Killed" else sorted(mutant.tried)}
        unsteady = [self.baseline.tests[test] for test in sorted(self._controls.unsteady)]
        known = {"covered": covered, "static": static, "unsteady": unsteady}
        self._send({"id": mutant.request, **known, **rests, **verdict})

"""The scheduler: the way of each mutant from its first job to a verdict that a fresh process would give too.

Theory of operation
-------------------
The truth about a mutant is what a fresh process says: the mutated file on the disk, all tests, in their order. A mutant
gets there in stages, each of which is cheap and either final or hands on to the next (`transitions` is the table):

- *route*. Where live code isn't the truth (`live_code`), straight to `FRESH`. No test runs it: NoCoverage.
- `LIVE`: the candidate tests in a fork of the collected session, the last killer first, then the fastest.
- A test failed, or was over a time limit (`time_limits`): the kill is confirmed by runs of that test alone
  (`kill_confirmation`: STEADY, CONTROL, LOADED). If it is not: FRESH.
- No test failed: `survivors` decides what shows that no other test would. `SUITE` runs all tests in their order with
  the mutant. `ISOLATED` waits until each test has been run alone once, which shows what it runs then. New candidates:
  `LIVE` again. A suite in which some test fails alone has no truth but the whole run: FRESH. Otherwise: Survived.
- `UNMEASURED`: not all tests are measured yet (`measuring`). `unmeasured` decides which tests may kill the mutant
  meanwhile; NoCoverage waits for the rest, and so does Survived, but for one mutant.
- `FRESH`: a process that imports everything with the mutated file on the disk and runs all tests in their order. Before
  that, the `likely_killers` run in one of their own. Another process may have done a part of it (`early_jobs`).

Invariants. Each request is answered once; a stopped one when its job is gone. A mutant has one job at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from .answers import ToHost, answer_of
from .baseline import Baseline
from .channel import COUNTS, IN_SUITE, PROGRESS_S, TargetPlan
from .controls import Controls, IsolatedRuns
from .early_jobs import EarlyJobs
from .endings import fault_of, verdict_of
from .file_edit import FileEdit
from .fork_servers import Servers
from .job_queue import JobQueue, Sharing
from .kill_confirmation import KillConfirmation
from .likely_killers import LikelyKillers
from .likely_tests import LikelyTests
from .live_code import CodeChange
from .messages import Ended, Report, Verdict
from .mutant_jobs import MutantJobs, ScheduledMutant, Stage
from .survivors import Survivors, skips_anew
from .transitions import TRANSITIONS, Action, Seen
from .unmeasured import Probes, Unmeasured

NOTED_S = 1.0  # of a suite that takes more, what it says of each survivor is kept at once


class MutantScheduler:
    """For one baseline. Each mutant is answered once, under the id of its request."""

    def __init__(
        self,
        baseline: Baseline,
        plan: TargetPlan,
        servers: Servers,
        parts: Collection[str],
        jobs: int,
        host: ToHost,
        texts: Mapping[str, str],
        sharing: Sharing = Sharing.APART,
    ) -> None:
        """`texts` are those of the test files, by path. What tests have run alone is sent, too, under no id."""
        self.baseline, self.plan, self._send, self._note = baseline, plan, host.send, host.note
        self._servers, self._live = servers, servers.live
        self._parts = frozenset(parts)
        self._mutants: dict[int, ScheduledMutant] = {}
        self._isolated = IsolatedRuns(jobs, self._run_isolated)
        self._questions: dict[int, Callable[[], Mapping[str, object]]] = {}  # wait for isolated runs, for no mutant
        self._queue = JobQueue(sharing, jobs)
        self._jobs = MutantJobs(plan, servers, parts, self._queue, lambda: self.baseline)
        self._confirmation = KillConfirmation(self, self._jobs, Controls(), host, self._live)
        self._actions: dict[Action, Callable[[ScheduledMutant], None]] = {
            **self._confirmation.actions(),
            Action.ANSWER: lambda mutant: self._answer(mutant, mutant.verdict),
            Action.SURVIVED: self.survived,
            Action.RECORD: self._record,
            Action.FRESH: self._start_in_order,
            Action.START_ANEW: lambda _: host.start_anew(),
        }
        self._numbers = {name: test for test, name in enumerate(baseline.tests)}
        self._likely = LikelyKillers(self._numbers, self._confirmation.can_be_alone)
        self.early, self._survivors = EarlyJobs(self._jobs, host.start_early), Survivors(plan)
        probes = Probes(LikelyTests(baseline.tests, texts), self._jobs, self._queue)
        self.unmeasured = Unmeasured(self._survivors, probes, baseline, self._queue, host.send)
        self._counted: ScheduledMutant | None = None  # whose run of the suite COUNTS counts

    @property
    def idle(self) -> bool:
        """Whether no mutant is on its way, and no job runs."""
        return not self._mutants and self._queue.idle

    @property
    def is_unwanted(self) -> bool:
        """Whether nobody waits for an answer."""
        return not self._questions and all(mutant.stopped for mutant in self._mutants.values())

    @property
    def wait_s(self) -> float | None:
        """When `look` is to be called; None: there is no need to."""
        waits = [self._queue.wait_s, self.unmeasured.wait_s, PROGRESS_S if self._waiting(Stage.SUITE) else None]
        return min((wait for wait in waits if wait is not None), default=None)

    def look(self) -> None:
        """Start what has waited for long enough."""
        self._queue.look()
        self.tell()
        early, is_due = self.unmeasured.early, self.unmeasured.look()
        if is_due and self.baseline.unmeasured:
            self._seek_all()
        elif is_due and early is not None and early.stage is Stage.SUITE and early.request in self._mutants:
            early.late = True
            self._stop_jobs([early.request])

    def test(self, request: int, edit: FileEdit, change: CodeChange, batch: int) -> None:
        """Start on the way."""
        mutant = self._mutants[request] = ScheduledMutant(request, edit, change, batch)
        (self._seek if self.baseline.unmeasured else self._route)(mutant)

    def learn(self, piece: Report) -> None:
        """Note that some more tests are measured."""
        self.baseline = self.baseline.measured(piece)
        self._seek_all()

    def complete(self, baseline: Baseline) -> None:
        """All tests are measured: `baseline`."""
        self.baseline = baseline.with_unsteady(self.baseline.unsteady)
        self.unmeasured.complete(baseline)
        for mutant in self._waiting(Stage.UNMEASURED):
            self._route(mutant)

    def uses(self, servers: Servers, parts: Collection[str]) -> bool:
        """Whether its jobs run in these servers, with these parts."""
        return servers == self._servers and parts == self._parts

    def _waiting(self, stage: Stage) -> list[ScheduledMutant]:
        return [mutant for mutant in self._mutants.values() if mutant.stage is stage]

    def _seek_all(self) -> None:
        turns = self.unmeasured.probes.turns
        for mutant in sorted(self._waiting(Stage.UNMEASURED), key=lambda each: turns[each.place]):
            self._seek(mutant)

    def _seek(self, mutant: ScheduledMutant) -> None:
        """Look for a test that kills it, though not all tests are measured; where there is none it waits for that."""
        stage, tests = Stage.UNMEASURED, list[int]()
        if self._live is not None and not self._live.has_ended:
            stage, tests = self.unmeasured.next(self.baseline, mutant, self._likely.last(self.baseline, mutant))
        if stage is Stage.UNMEASURED:
            self.unmeasured.wait(mutant)
        else:
            self._enter(mutant, stage, tests)

    def _route(self, mutant: ScheduledMutant) -> None:
        """Begin with the first stage that may say the truth. Tests that have passed with it need not do so again."""
        if self._live is None or not self.baseline.allows_live_code(mutant.path, mutant.change):
            self.start_fresh(mutant)
            return
        tests = self.baseline.candidates(mutant.path, mutant.change.lines)
        first = [test for test in tests if test not in mutant.passed]
        if (left := self._survivors.left(self.baseline, mutant)) == []:
            first = tests = self._survivors.again(self.baseline, tests)
        if left or (tests and not first):
            self.survived(mutant)
        elif tests:
            self.start_live(mutant, self._survivors.before_suite(self.baseline, mutant, first))
        elif left == []:
            self._answer_known(mutant)
        elif self.baseline.fork_unsafe:  # what these run is not known
            self.start_fresh(mutant)
        elif self.baseline.is_run_by_failing(mutant.path, mutant.change.lines):
            self.survived(mutant)
        else:
            self._answer(mutant, {"status": "NoCoverage", "tests": 0, "seconds": 0.0})

    def when_alone(self, request: int, answer: Callable[[], Mapping[str, object]]) -> None:
        """Answer with what `answer` returns once each test has been run alone."""
        self._questions[request] = answer
        self._answer_questions()

    @property
    def is_sound(self) -> bool:
        """Whether each verdict is that of tests which pass in a fork, alone as among others."""
        baseline = self.baseline
        odd = baseline.failing or baseline.fork_unsafe or baseline.order_dependent or baseline.unsteady
        return self._live is not None and not odd and not baseline.unmeasured

    def stop(self, requests: Sequence[int]) -> None:
        """Kill the jobs of these requests; each request is answered when its job is gone."""
        self._stop_questions(requests)
        ids = [request for request in requests if request in self._mutants]
        for mutant in [self._mutants[request] for request in ids]:
            mutant.stopped = True
            if mutant.stage in (Stage.ISOLATED, Stage.UNMEASURED):  # it has no job
                self._answer(mutant, {"status": "stopped"})
        if not (self._questions or self._waiting(Stage.ISOLATED)):
            ids += self._isolated.ids
        if self.is_unwanted:
            ids += [id for id in (*self.unmeasured.ids, self.early.trial) if id is not None]
        for answer in self._queue.withdraw(ids):
            self._on_end(answer)
        self._stop_jobs(ids)

    def _stop_questions(self, requests: Collection[int]) -> None:
        for id in self._questions.keys() & set(requests):
            del self._questions[id]
            self._send({"id": id, "status": "stopped"})

    def _stop_jobs(self, ids: list[int]) -> None:
        for server in (*self._servers, self.early.server):
            if server is not None and not server.has_ended:
                server.channel.send({"do": "stop", "ids": ids})

    def stop_all(self) -> None:
        """Kill all jobs, and answer all requests at once: what becomes of their jobs is not waited for."""
        self.stop([*self._mutants, *self._questions])
        self.end()

    def end(self) -> None:
        """The servers have ended: so has every job."""
        self._queue.clear()
        for mutant in list(self._mutants.values()):
            self._answer(mutant, {"status": "stopped"})
        self._stop_questions(self._questions)

    def receive(self, answer: Ended) -> None:
        """Handle what a job has come to."""
        if self._queue.ended(answer):
            self._on_end(answer)

    def _on_end(self, answer: Ended) -> None:
        if answer["id"] == self.unmeasured.probes.id:
            self.baseline = self.unmeasured.probes.ended(answer, self.baseline)
            self._seek_all()
        elif answer["id"] == self.early.trial:
            self.early.tried(answer, self.baseline)
        elif -len(self.baseline.tests) <= answer["id"] < 0:
            self._on_isolated_run(answer)
        elif (mutant := self._mutants.get(answer["id"])) is not None:
            self._on_answer(mutant, answer)

    def _on_answer(self, mutant: ScheduledMutant, answer: Ended) -> None:
        """A job of `mutant` has ended."""
        mutant.ran.append((answer["report"] or {}).get("ran"))
        if mutant.late and not mutant.stopped and answer["kill_reason"] == "stopped":
            mutant.late = False
            self._route(mutant)
        elif mutant.stopped or answer["kill_reason"] == "stopped":
            self._answer(mutant, {"status": "stopped"})
        elif (fault := fault_of(answer)) is not None:
            self._answer(mutant, {"status": "RuntimeError", "reason": fault})
        else:
            self._actions[TRANSITIONS[mutant.stage, self._seen(mutant, answer)]](mutant)

    def _seen(self, mutant: ScheduledMutant, answer: Ended) -> Seen:
        """Tell what the end of its job has shown; where that is a verdict, it is noted."""
        if mutant.stage not in (Stage.LIVE, Stage.SUITE, Stage.FRESH):
            return self._confirmation.seen(mutant, answer)
        if mutant.was_not_live(answer):
            return Seen.NOT_LIVE
        mutant.verdict = verdict_of(answer, self.plan)
        if mutant.verdict["status"] == "Timeout":
            mutant.note_time_out(self.baseline.tests, answer["tests"])
        if "tests" in mutant.verdict and mutant.stage is not Stage.FRESH:
            mutant.completed += mutant.verdict["tests"]
            mutant.verdict["tests"] = mutant.completed
        alone = mutant.stage is Stage.FRESH and not mutant.in_order
        if mutant.verdict["status"] == "Survived":
            mutant.passed.update(mutant.tests if mutant.stage is Stage.LIVE else ())
            if not alone and self._survivors.is_doubtful(self.baseline, mutant, answer["report"]):
                self.baseline = self.baseline.without_survivor(mutant.survivor)
                return Seen.SKIPPED
            return Seen.PASSED_ALONE if alone else Seen.PASSED
        if self.killer(mutant) is not None:
            return Seen.FAILED
        return Seen.ENDED_ALONE if alone and not self._confirmation.ended_by(mutant, answer) else Seen.ENDED

    def killed(self, mutant: ScheduledMutant, killer: int) -> None:
        """Answer: its kill by the test `killer` is confirmed."""
        self.baseline = self.baseline.with_kill(mutant.survivor, mutant.place, killer)
        self._answer(mutant, mutant.verdict)

    def survived(self, mutant: ScheduledMutant) -> None:
        """Look for other tests that may kill a mutant that has survived its candidates."""
        self._enter(mutant, *self._survivors.next(self.baseline, mutant))

    def _enter(self, mutant: ScheduledMutant, stage: Stage | None, tests: list[int]) -> None:
        """Begin a stage; None: it has survived."""
        if stage is Stage.UNMEASURED:
            self._seek(mutant)
        elif stage is Stage.FRESH:
            self.start_fresh(mutant)
        elif stage is Stage.SUITE:
            self._start_suite(mutant, tests)
        elif stage is Stage.ISOLATED:
            mutant.stage = stage
            self._isolated.want(tests)
        elif stage is Stage.LIVE:
            self.start_live(mutant, tests)
        else:
            self._answer_known(mutant)

    def _start_suite(self, mutant: ScheduledMutant, tests: list[int]) -> None:
        """All tests in their order, with the mutant; of a survivor that is known, the tests that are left."""
        is_first = not self._waiting(Stage.SUITE)
        mutant.stage, mutant.tests = Stage.SUITE, tests
        self.baseline = self._survivors.paid(self.baseline, mutant)
        if is_first:
            self._counted = mutant
            COUNTS[IN_SUITE].reset()
        self._jobs.run_live(mutant, tests, counts=IN_SUITE if is_first else None)

    def tell(self) -> None:
        """Say how far the run of a long suite has come that is the only one, if there is one."""
        suites = self._waiting(Stage.SUITE) if self.baseline.unmeasured or self.baseline.total > NOTED_S else []
        if suites == [self._counted] and (news := COUNTS[IN_SUITE].news) is not None:
            self._send({"id": None, "suite": suites[0].request, "tests_run": news.done, "of": len(suites[0].tests)})

    def _record(self, mutant: ScheduledMutant) -> None:
        """The whole suite passes with it, in a fork or in a fresh process: the truth."""
        self.baseline = self.baseline.with_survivor(mutant.survivor)
        if self.baseline.total > NOTED_S:
            self._note()
        self._answer(mutant, mutant.verdict)

    def _answer_known(self, mutant: ScheduledMutant) -> None:
        """No test is left that may kill it."""
        self._answer(mutant, mutant.verdict or {"status": "Survived", "tests": 0, "seconds": 0.0})

    def _answer_questions(self) -> None:
        """Or run what is unknown: another request may have made it so meanwhile."""
        if self._questions and (unknown := self.baseline.unknown_alone):
            self._isolated.want(unknown)
            return
        for id in list(self._questions):
            self._send({"id": id, **self._questions.pop(id)()})

    def start_live(self, mutant: ScheduledMutant, tests: list[int]) -> None:
        """Run `tests` in a fork of the collected session, with the mutant."""
        mutant.stage, mutant.files = Stage.LIVE, None
        tests = self._queue.without_effects(tests) or tests  # the others follow if it survives these
        mutant.tried.update(tests)
        last = self._likely.last(self.baseline, mutant)  # first, and unsteady tests last
        mutant.tests = sorted(tests, key=lambda test: (test in self.baseline.unsteady, test != last))
        self._jobs.run_live(mutant, mutant.tests)

    def start_fresh(self, mutant: ScheduledMutant) -> None:
        """Run likely killers in a process that imports everything; without any, the tests that are left."""
        first = None if mutant.in_order else self.unmeasured.fresh(self.baseline, mutant)
        likely = [] if first is None else self._likely.of(self.baseline, mutant, first)
        likely = self.unmeasured.timed(self.baseline, likely)
        if self.baseline.unmeasured and not likely:
            self.unmeasured.wait(mutant)
            return
        mutant.tried.update(likely if self.baseline.unmeasured else ())
        mutant.stage, mutant.completed = Stage.FRESH, 0
        left = None if self.baseline.unmeasured else self._survivors.left(self.baseline, mutant)
        if left is not None:
            likely = self._survivors.again(self.baseline, likely)
        mutant.in_order, mutant.tests = not likely, likely or left or []
        mutant.files = self.baseline.files_of(likely) if likely else None
        if not likely and left == []:
            self._answer_known(mutant)
            return
        self._jobs.run_fresh(mutant, likely or left, self.early.take(self.baseline, mutant))

    def _start_in_order(self, mutant: ScheduledMutant) -> None:
        """Run all tests in a fresh process: after the likely killers passed there, or one did alone."""
        mutant.in_order |= mutant.stage in (Stage.FRESH, Stage.FRESH_STEADY) and not self.baseline.unmeasured
        self.start_fresh(mutant)

    def _run_isolated(self, id: int, test: int) -> None:
        batch = max((mutant.batch for mutant in self._waiting(Stage.ISOLATED)), default=0)
        self._jobs.run_isolated(id, test, batch)

    def _on_isolated_run(self, answer: Ended) -> None:
        """One test was run alone."""
        self._isolated.receive(answer, skipped=skips_anew(self.baseline, answer["report"]))
        waiting = self._waiting(Stage.ISOLATED)
        if (waiting or self._questions) and not self._isolated.done:
            self._isolated.advance()
        elif self._isolated.done:
            self._confirmation.passed_alone(self._isolated.reports)
            self.baseline = self.baseline.with_isolated_runs(self._isolated.reports)
            ran = self._isolated.dependencies if self.is_sound else {}
            named = {self.baseline.tests[test]: report for test, report in ran.items()}
            self._send({"id": None, "ran_alone": named, "count": len(self._isolated.reports)})
            self._isolated.reports.clear()
            self._note()
            self._answer_questions()
            for mutant in waiting:
                self.survived(mutant)

    def killer(self, mutant: ScheduledMutant) -> int | None:
        """The index of the test that killed it; None where nothing or no test did."""
        return self._numbers.get(mutant.verdict.get("killed_by") or "")

    def _answer(self, mutant: ScheduledMutant, verdict: Verdict) -> None:
        del self._mutants[mutant.request]
        self._send(answer_of(self.baseline, mutant, verdict, live=self._live is not None, sound=self.is_sound))

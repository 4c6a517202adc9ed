"""Judge: the way of each mutant from its first worker to a verdict that a fresh process would give too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mutmut.utils.format_utils import mangled_name_from_mutant_name

from .channel import Message
from .measurement import STATS, Measurement
from .nursery import Nursery
from .suite import Suite
from .survey import Survey
from .verdict import limit_for, verdict_of
from .workers import Pool

NO_MUTANT = ""


@dataclass
class Test:
    """One mutant on its way to a verdict."""

    request: int
    mutant: str
    function: str
    stage: str = "warm"  # then, if need be, "control", "survey", "cold"
    asked: frozenset[int] = frozenset()  # tests
    verdict: Message | None = None  # of the warm stage, until it is confirmed
    completed: int = 0  # tests
    stopped: bool = False


class Judge:
    """For one suite. Each mutant is answered once, through `send`, under the id of its request."""

    def __init__(
        self, suite: Suite, nursery: Nursery, measurement: Measurement, jobs: int, send: Callable[[Message], None]
    ) -> None:
        self._suite, self._nursery, self._measurement, self._jobs, self._send = suite, nursery, measurement, jobs, send
        self._tests: dict[int, Test] = {}
        self._survey: Survey | None = None
        self._dependable: dict[int, bool] = {}  # tests that pass on their own, without a mutant

    def test(self, request: int, mutant: str) -> None:
        """Start on the way."""
        test = Test(request, mutant, mangled_name_from_mutant_name(mutant))
        self._tests[request] = test
        if self._nursery.warm is None or test.function in self._suite.static:
            self._start_cold(test)
        elif not self._suite.suspects(test.function):
            self._answer(test, {"status": "NoCoverage", "tests": 0, "seconds": 0.0})
        else:
            self._start_warm(test, mutant, self._suite.suspects(test.function))

    def stop(self, requests: list[int]) -> None:
        """Kill the workers of these requests; each request is answered when its worker is gone."""
        ids = [request for request in requests if request in self._tests]
        for test in [self._tests[request] for request in ids]:
            test.stopped = True
            if test.stage == "survey":
                self._answer(test, {"status": "stopped"})
        if self._survey is not None and not any(test.stage == "survey" for test in self._tests.values()):
            ids += self._survey.pause()
        for pool in self._nursery.pools:
            pool.channel.send({"do": "stop", "ids": ids})

    def end(self) -> None:
        """The zygotes have ended: so has every test."""
        for test in list(self._tests.values()):
            self._answer(test, {"status": "stopped"})

    def _start_warm(self, test: Test, mutant: str, tests: list[int]) -> None:
        test.asked = test.asked.union(tests) if mutant else test.asked
        assert self._nursery.warm is not None
        limit = limit_for(self._suite.seconds(tests))
        self._nursery.warm.channel.send(
            {"id": test.request, "do": "run", "mutant": mutant, "tests": tests, "limit": limit}
        )

    def _start_cold(self, test: Test) -> None:
        assert self._nursery.cold is not None
        test.stage = "cold"
        failing = [self._suite.tests[index] for index in self._suite.failing]
        limit = limit_for(self._suite.total + self._suite.collecting)
        self._nursery.cold.channel.send(
            {"id": test.request, "do": "run", "mutant": test.mutant, "failing": failing, "limit": limit}
        )

    def hear(self, pool: Pool) -> None:
        """What the workers of `pool` have come to."""
        answers = pool.channel.receive()
        if answers is None:
            raise SystemExit("a zygote has ended")  # the bridge starts a new host
        for answer in answers:
            if answer["id"] < 0:
                self._surveyed(answer)
                continue
            test = self._tests.get(answer["id"])
            if test is not None:
                self._consider(test, answer)

    def _consider(self, test: Test, answer: Message) -> None:
        """A worker of `test` is gone; what it says, and whether that is enough."""
        if test.stopped or answer["fate"] == "stopped":
            self._answer(test, {"status": "stopped"})
        elif test.stage == "control":
            assert test.verdict is not None
            killer = self._suite.tests.index(test.verdict["killed_by"])
            self._dependable[killer] = bool(answer["report"]) and answer["report"]["failure"] is None
            self._settle(test, killer)
        elif test.stage == "warm":
            test.verdict = verdict_of(answer)
            if "tests" in test.verdict:
                test.completed += test.verdict["tests"]
                test.verdict["tests"] = test.completed
            self._confirm(test)
        else:
            self._answer(test, self._seen(test, verdict_of(answer)))

    def _confirm(self, test: Test) -> None:
        """A test that fails without the others and without the mutant doesn't kill: ask it once, then believe it."""
        assert test.verdict is not None
        name = test.verdict.get("killed_by")
        if test.verdict["status"] == "Survived":
            self._doubt(test)
            return
        if name is None or name not in self._suite.tests:
            self._answer(test, test.verdict)
            return
        killer = self._suite.tests.index(name)
        if killer in self._dependable:
            self._settle(test, killer)
        else:
            test.stage = "control"
            self._start_warm(test, NO_MUTANT, [killer])

    def _doubt(self, test: Test) -> None:
        """It survived the tests that reach it when all run in their order: would others notice that reach it alone?"""
        assert test.verdict is not None
        if not self._suite.covering(test.function):
            self._answer(test, self._seen(test, test.verdict))
        elif self._suite.dependent is None:
            test.stage = "survey"
            if self._survey is None:
                tests = [index for index in range(len(self._suite.tests)) if index not in self._suite.failing]
                self._survey = Survey(tests, self._jobs, self._start_survey)
            self._survey.advance()
        elif self._suite.dependent:
            self._start_cold(test)
        elif more := [index for index in self._suite.suspects(test.function) if index not in test.asked]:
            test.stage = "warm"
            self._start_warm(test, test.mutant, more)
        else:
            self._answer(test, test.verdict)

    def _start_survey(self, request: int, test: int) -> None:
        assert self._nursery.warm is not None
        limit = limit_for(self._suite.durations[test])
        self._nursery.warm.channel.send({"id": request, "do": "run", "mutant": STATS, "tests": [test], "limit": limit})

    def _surveyed(self, answer: Message) -> None:
        """One test was run alone."""
        assert self._survey is not None
        self._survey.hear(answer)
        waiting = [test for test in self._tests.values() if test.stage == "survey"]
        if waiting and not self._survey.done:
            self._survey.advance()
        elif self._survey.done:
            self._suite = self._suite.surveyed(self._survey.reports)
            self._measurement.note(self._survey.reports)
            for test in waiting:
                self._doubt(test)

    def _seen(self, test: Test, verdict: Message) -> Message:
        """Nobody saw the code run, and no process that the tests start minds the mutant: that's no coverage."""
        unseen = not self._suite.covering(test.function) and test.function not in self._suite.static
        return {**verdict, "status": "NoCoverage"} if unseen and verdict["status"] == "Survived" else verdict

    def _settle(self, test: Test, killer: int) -> None:
        if self._dependable[killer]:
            assert test.verdict is not None
            self._answer(test, test.verdict)
        else:
            self._start_cold(test)

    def _answer(self, test: Test, verdict: Message) -> None:
        del self._tests[test.request]
        if self._suite.dependent is not None:  # the bridge knows what was known before
            verdict = {**verdict, "covered": sorted(self._suite.coverage.get(test.function, ()))}
        static = test.function in self._suite.static
        self._send({"id": test.request, "function": test.function, "static": static, **verdict})

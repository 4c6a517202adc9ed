"""The baseline: what is known of the tests from running them without a mutant."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from .dependencies import Function, outermost
from .live_code import CodeChange, Key
from .messages import Collected, Facts, Report
from .narrowing import Edit, moving
from .process_starts import PROCESSES
from .text_reads import TEXT

Survivor = tuple[str, Edit]  # of the file of this path, as it is
SETS = ("alone", "order_dependent", "fork_unsafe", "unsteady")  # of tests
FOUND_OUT = ("killers", "survivors", "suites_s", "alone_s", "set_up")  # while mutants were tested
ALONE_S = 0.0004  # what a run of one test alone takes beyond the test, for each MB of the process: page faults
SMALL_MB = 35.0  # a process that has imported pytest


class Held(NamedTuple):
    """A run in which the whole suite has passed with a mutant, as far as it still holds."""

    tests: int  # that ran nothing then or later which was edited since
    edited: bool = False  # whether any source was


@dataclass(frozen=True)
class FileFacts:
    """Facts of a file's code before the fork; see `live_code`."""

    live: frozenset[Key]
    suspended: frozenset[Key]
    called: frozenset[Key]
    read: bool

    @classmethod
    def of(cls, message: Facts) -> FileFacts:
        """From the live server's message."""
        return cls(_keys(message["live"]), _keys(message["suspended"]), _keys(message["called"]), bool(message["read"]))


@dataclass(frozen=True)
class Baseline:
    """The tests, by index in the order of their collection. Sets of tests are integers with a bit for each."""

    tests: Sequence[str]  # pytest's node ids
    durations: Sequence[float]  # seconds, set-up and tear-down included
    lines: Mapping[str, Mapping[int, int]]  # path to line to tests that run it; none: one did, before an edit
    facts: Mapping[str, FileFacts]  # of the files that were loaded at the fork
    unseen: Mapping[str, frozenset[Key]]  # functions whose lines can't be noted: something else has compiled them
    classes_and_modules: Mapping[str, Sequence[str]]  # loaded then, by kind: `import_effects`
    late: frozenset[str]  # files that the tests themselves import
    failing: Mapping[int, str]  # tests that fail without a mutant, and their messages
    collecting: float  # seconds
    skipped: frozenset[str] = frozenset()  # names of tests that skip themselves in the suite
    alone: frozenset[int] = frozenset()  # tests that have been run alone, and passed
    order_dependent: frozenset[int] = frozenset()  # tests that fail, or skip themselves, without others before them
    fork_unsafe: frozenset[int] = frozenset()  # tests that fail in a fork of the collected session, and only there
    unsteady: frozenset[int] = frozenset()  # tests that have passed and failed without a mutant
    # What tests that have not been run alone would run of the functions that are told apart.
    ran_alone: Mapping[int, frozenset[Function]] = field(default_factory=dict)
    told_apart: frozenset[Function] = frozenset()
    unmeasured: int = 0  # tests of which it is not known what they run now
    is_unknown: bool = False  # there was no run of all tests yet
    killers: Mapping[str, str] = field(default_factory=dict)  # function to the test that has killed its last mutant
    survivors: Mapping[Survivor, Held] = field(default_factory=dict)
    suites_s: float = 0.0  # what such runs have cost, in seconds
    alone_s: tuple[float, int] = (0.0, 0)  # seconds beyond their tests that runs of one test took, and their number
    set_up: tuple[float, float] = (0.0, 0.0)  # seconds, and of CPU time: see `time_limits`
    waited: float = 0.0  # the part of `total` for which other processes used the CPU

    @classmethod
    def of(cls, report: Report, collected: Collected) -> Baseline:
        """From the report of the measuring run and that of the collection."""
        tests = collected["tests"]
        durations = {int(test): seconds for test, seconds in report["durations"].items()}
        return cls(
            tests=tests,
            durations=[durations.get(test, 0.0) for test in range(len(tests))],
            lines=masks(report.get("lines", {})),
            facts={path: FileFacts.of(facts) for path, facts in collected.get("files", {}).items()},
            unseen={path: _keys(keys) for path, keys in report.get("unseen", {}).items()},
            classes_and_modules=collected.get("imported", {}),
            late=frozenset(report.get("late", ())),
            failing={int(test): text for test, text in report["failing"].items()},
            collecting=collected["seconds"],
            skipped=frozenset(report.get("skipped", ())),
            alone_s=(ALONE_S * collected.get("megabytes", SMALL_MB), 1),
            waited=report.get("waited", 0.0),
        )

    @classmethod
    def unknown(cls, collected: Collected) -> Baseline:
        """From the report of the collection alone."""
        known = cls.of({"durations": {}, "failing": {}}, collected)
        return replace(known, unmeasured=(1 << len(known.tests)) - 1, is_unknown=True)

    def measured(self, report: Report, *, all: bool = False, in_order: bool = True) -> Baseline:
        """With what some tests run that were not measured, by the report of a run of them.

        `all`: nothing else is to be measured. `in_order`: they ran as in the suite, and are measured by that.
        """
        again = Baseline.of(report, {"tests": self.tests, "seconds": self.collecting})
        done = {test for test in map(int, report["durations"]) if self.unmeasured >> test & 1}
        tests = sum(1 << test for test in done)
        failing = {test: text for test, text in again.failing.items() if test in done}
        took = {test: again.durations[test] or self.durations[test] for test in done}  # 0: it was interrupted
        anew = again.skipped if self.is_unknown and in_order else frozenset[str]()
        merged: dict[str, dict[int, int]] = {}
        for name in self.lines.keys() | again.lines.keys():
            old, new = self.lines.get(name, {}), again.lines.get(name, {})
            merged[name] = {
                line: old.get(line, 0) & ~tests | new.get(line, 0) & tests for line in old.keys() | new.keys()
            }
        return replace(
            self,
            unseen={**self.unseen, **again.unseen},
            durations=[took.get(test, seconds) for test, seconds in enumerate(self.durations)],
            lines=merged,
            late=self.late | again.late,
            skipped=self.skipped - ({self.tests[test] for test in done} - again.skipped) | anew,
            failing={**{test: text for test, text in self.failing.items() if test not in done}, **failing},
            unmeasured=0 if all else self.unmeasured & ~tests if in_order else self.unmeasured,
            waited=self._waited_with(again, done),
            is_unknown=self.is_unknown and not all,
        )

    def _waited_with(self, again: Baseline, done: Collection[int]) -> float:
        """`waited` when `again` has measured the tests of `done`."""
        took, left = again.seconds(done), self.total - self.seconds(done)
        return (again.waited * took + self.waited * left) / ((took + left) or 1.0)

    def of_tests(self, tests: Sequence[str]) -> Baseline | None:
        """For the tests as they were collected now; tests that have other names are not measured. None: all of them."""
        if list(self.tests) == list(tests):
            return self
        index = {name: test for test, name in enumerate(tests)}
        moved = {test: index[name] for test, name in enumerate(self.tests) if name in index}
        if not moved or len(index) < len(tests):
            return None

        def mask(old: int) -> int:
            return sum(1 << moved[test] for test in bits(old) if test in moved)

        def subset(old: Iterable[int]) -> frozenset[int]:
            return frozenset(moved[test] for test in old if test in moved)

        sets: dict[str, Any] = {name: subset(getattr(self, name)) for name in SETS}
        durations = [0.0] * len(tests)
        for test, place in moved.items():
            durations[place] = self.durations[test]
        return replace(
            self,
            tests=tests,
            durations=durations,
            lines={path: {line: mask(old) for line, old in found.items()} for path, found in self.lines.items()},
            failing={moved[test]: text for test, text in self.failing.items() if test in moved},
            **sets,
            unmeasured=(1 << len(tests)) - 1 & ~mask((1 << len(self.tests)) - 1),
            survivors={survivor: Held(mask(held.tests), held.edited) for survivor, held in self.survivors.items()},
        )

    def with_isolated_runs(self, reports: Mapping[int, Report | None]) -> Baseline:
        """With what each test runs when it runs alone; None: it does not pass."""
        lines = {path: dict(found) for path, found in self.lines.items()}
        late = set(self.late)
        passed = {test: report for test, report in reports.items() if report is not None}
        for report in passed.values():
            late.update(report["late"])
            for path, found in masks(report["lines"]).items():
                known = lines.setdefault(path, {})
                for line, mask in found.items():
                    known[line] = known.get(line, 0) | mask
        dependent = reports.keys() - passed.keys()
        took = {test: report["seconds"] for test, report in passed.items() if "seconds" in report}
        return replace(
            self.with_runs_alone(took),
            lines=lines,
            late=frozenset(late),
            alone=(self.alone | reports.keys()) - dependent,
            order_dependent=self.order_dependent | dependent,
        )

    def edited(
        self,
        path: str,
        facts: FileFacts | None,
        to: Mapping[int, int],
        tests: int,
        texts: tuple[str, str] | None = None,
    ) -> Baseline:
        """After an edit of function bodies in a file, before `tests`, all that ran one of them, are measured again.

        `facts`: of the file now, if it has any. `to` are its lines, old to new, and `texts` what it was and is; None
        for a test file.
        """
        lines, tests = dict(self.lines), tests | self.readers(path)
        lines[path] = {to[line]: mask for line, mask in lines.get(path, {}).items() if line in to}
        concerned = tests | self.unmeasured  # nobody knows what these run
        moved = None if texts is None else moving(*texts)
        survivors = {
            (name, at): Held(held.tests & ~concerned, held.edited or texts is not None)
            for (name, edit), held in self.survivors.items()
            if (at := moved(edit) if moved and name == path else edit) is not None
        }
        done = frozenset(bits(tests))
        return replace(
            self,
            lines=lines,
            facts=self.facts if facts is None else {**self.facts, path: facts},
            alone=self.alone - done,
            order_dependent=self.order_dependent - done,
            ran_alone={},
            told_apart=frozenset(),
            unmeasured=self.unmeasured | tests,
            survivors=survivors,
        )

    def with_runs_alone(self, runs: Mapping[int, float]) -> Baseline:
        """Processes that ran one test alone took so long; of tests that are not measured, that says nothing."""
        beyond = [max(0.0, seconds - took) for test, seconds in runs.items() if (took := self.durations[test])]
        return replace(self, alone_s=(self.alone_s[0] + sum(beyond), self.alone_s[1] + len(beyond)))

    def seconds_alone(self, tests: Collection[int]) -> float:
        """How long `tests` take, each alone, as far as such runs have shown."""
        return self.seconds(tests) + len(tests) * self.alone_s[0] / self.alone_s[1]

    def with_survivor(self, survivor: Survivor) -> Baseline:
        """All tests have passed with it."""
        return replace(self, survivors={**self.survivors, survivor: Held((1 << len(self.tests)) - 1)})

    def with_kill(self, mutant: Survivor, function: str, test: int) -> Baseline:
        """`test` has killed it; whatever has survived before."""
        return replace(self.without_survivor(mutant), killers={**self.killers, function: self.tests[test]})

    def without_survivor(self, mutant: Survivor) -> Baseline:
        """It is not known whether all tests pass with it."""
        if mutant not in self.survivors:
            return self
        return replace(self, survivors={each: held for each, held in self.survivors.items() if each != mutant})

    def with_unsteady(self, tests: Iterable[int]) -> Baseline:
        """With tests that have passed, and failed, in a fork."""
        unsteady = self.unsteady.union(tests)
        return replace(self, unsteady=unsteady, fork_unsafe=self.fork_unsafe - unsteady)

    def knowing(self, functions: Sequence[Function], tests: Mapping[str, Iterable[int]]) -> Baseline:
        """With what `tests`, by their names, run alone as an earlier run has shown: indexes of `functions`."""
        index = {name: test for test, name in enumerate(self.tests)}
        known = {
            index[name]: frozenset(functions[number] for number in ran) for name, ran in tests.items() if name in index
        }
        return replace(self, ran_alone=known, told_apart=frozenset(functions))

    @property
    def imported(self) -> dict[str, list[str]]:
        """The functions that ran while the tests were imported, of each source, beside what `import_effects` says."""
        called = {path: sorted(name for name, _ in facts.called) for path, facts in self.facts.items()}
        return {**{name: [*found] for name, found in self.classes_and_modules.items()}, **called}

    @property
    def unknown_alone(self) -> list[int]:
        """The tests of which nobody knows what they run alone."""
        return [test for test in self._never_alone if test not in self.ran_alone]

    def unknown_for(self, path: str, change: CodeChange) -> list[int]:
        """The tests of which it is not known whether they run the code of `change` in the file `path` alone."""
        functions = {(path, outermost(name) or "") for (name, _), _ in change.changed}
        if not functions or not functions <= self.told_apart:
            return self._never_alone
        known = {test for test, ran in self.ran_alone.items() if ran.isdisjoint(functions)}
        return [test for test in self._never_alone if test not in known]

    @property
    def _never_alone(self) -> list[int]:
        """The tests that have not been run alone yet."""
        known = self.alone | self.order_dependent | self.fork_unsafe | self.failing.keys()
        return [test for test in range(len(self.tests)) if test not in known]

    def is_timed(self, test: int) -> bool:
        """Whether it is known how long `test` takes."""
        return self.durations[test] > 0 or not self.unmeasured >> test & 1

    @property
    def total(self) -> float:
        """Seconds for all tests."""
        return sum(self.durations)

    @property
    def has_lost_lines(self) -> bool:
        """Whether no test is left that runs some line which tests ran before an edit.

        Another test may run it now that has used so far what these had computed and kept.
        """
        return any(line != TEXT and not mask for found in self.lines.values() for line, mask in found.items())

    def is_run_by_failing(self, path: str, lines: Iterable[int]) -> bool:
        """Whether a test that fails runs one of the lines; another would, perhaps, had it not run before."""
        failing, found = sum(1 << test for test in self.failing), self.lines.get(path, {})
        return any(found.get(line, 0) & failing for line in lines)

    def covering(self, path: str, lines: Iterable[int]) -> list[int]:
        """The tests that run one of the lines, the fastest first, without tests that fail anyway."""
        found, mask = self.lines.get(path, {}), 0
        for line in lines:
            mask |= found.get(line, 0)
        return self._sorted(mask)

    def files_of(self, tests: Iterable[int]) -> frozenset[str]:
        """The test files that have them."""
        return frozenset(file_of(self.tests[test]) for test in tests)

    def candidates(self, path: str, lines: Iterable[int]) -> list[int]:
        """`covering`, and after it the tests that may run the lines in another process, or read them."""
        covering = self.covering(path, lines)
        known = set(covering)
        return covering + [test for test in self._sorted(self._beside(path)) if test not in known]

    def readers(self, *paths: str) -> int:
        """The tests that have read one of these files as text, or listed one of these directories."""
        found = 0
        for path in paths:
            found |= self.lines.get(path, {}).get(TEXT, 0)
        return found

    def _beside(self, path: str) -> int:
        """The tests that any change of the file may concern, whatever they are seen to run."""
        return self.readers(path, PROCESSES)

    def reach(self, path: str, lines: Iterable[int]) -> tuple[str, str]:
        """The tests that run one of the lines, and tests that could: of a file that tests import, all."""
        covering = sum(1 << test for test in self.covering(path, lines))
        everything = (1 << len(self.tests)) - 1
        return hex(covering), hex(everything if path in self.late else covering | self._beside(path))

    def allows_live_code(self, path: str, change: CodeChange) -> bool:
        """Whether live code is the truth for a mutant of the file `path`: the rules in `live_code`."""
        facts = self.facts.get(path)
        if facts is None:  # what imports it after the fork finds the mutant in the file (`late_imports`)
            return True
        if change.not_live is not None or facts.read:
            return False
        return not self.is_unseen(path, change) and not any(
            function in facts.called or (function not in facts.live and not facts.live.intersection(parents))
            for function, parents in change.changed
        )

    def is_unseen(self, path: str, change: CodeChange) -> bool:
        """Whether it is not known which tests run the code of a mutant of the file `path`, as where it is suspended."""
        facts = self.facts.get(path)
        unseen = self.unseen.get(path, frozenset()) | (facts.suspended if facts is not None else frozenset())
        return any(not unseen.isdisjoint((function, *parents)) for function, parents in change.changed)

    def is_static(self, path: str, change: CodeChange) -> bool:
        """Whether a mutant of the file `path` changes code that ran at import."""
        facts = self.facts.get(path)
        if facts is None:
            return False
        return change.not_live is not None or any(function in facts.called for function, _ in change.changed)

    def seconds(self, tests: Iterable[int]) -> float:
        """How long `tests` take."""
        return sum(self.durations[test] for test in tests)

    def _sorted(self, mask: int) -> list[int]:
        tests = [test for test in bits(mask) if test not in self.failing and test not in self.fork_unsafe]
        return sorted(tests, key=lambda test: self.durations[test] or math.inf)  # 0: it was interrupted


def file_of(test: str) -> str:
    """The path of the file that a test is in, relative to the project."""
    return test.partition("::")[0]


def function_of(test: str) -> str:
    """The name of its function, which all rows of a parametrized test have in common."""
    return test.partition("[")[0]


def masks(lines: Mapping[str, Mapping[str, str]]) -> dict[str, dict[int, int]]:
    """Path to line to tests, from JSON."""
    return {path: {int(line): int(mask, 16) for line, mask in found.items()} for path, found in lines.items()}


def bits(mask: int) -> Iterator[int]:
    """The tests of a set. Each step on a number of 60,000 bits takes microseconds: so its digits are searched."""
    digits = bin(mask)[:1:-1]
    test = digits.find("1")
    while test >= 0:
        yield test
        test = digits.find("1", test + 1)


def _keys(rows: Iterable[Sequence[str | int]]) -> frozenset[Key]:
    return frozenset((str(name), int(line)) for name, line in rows)

"""Suite: what is known of the tests from running them once without a mutant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from .channel import Message


@dataclass(frozen=True)
class Suite:
    """The tests, by index in the order of their collection."""

    tests: Sequence[str]  # pytest's node ids
    durations: Sequence[float]  # seconds, set-up and tear-down included
    coverage: dict[str, frozenset[int]]  # function (mutmut's mangled name) to the tests that reach it
    static: frozenset[str]  # functions that run when the tests are imported
    failing: dict[int, str]  # tests that fail without any mutant, and what they say
    spawning: frozenset[int]  # tests that start Python processes: what those reach, nobody sees
    collecting: float  # seconds
    dependent: frozenset[int] | None = None  # tests that fail without others before them; None: not known yet

    @classmethod
    def of(cls, report: Message, collected: Message) -> Suite:
        """From the report of the stats run and that of the collection."""
        return cls(
            tests=collected["tests"],
            durations=report["durations"],
            coverage={function: frozenset(tests) for function, tests in report["coverage"].items()},
            static=frozenset(collected["static"]),
            failing={int(test): text for test, text in report["failing"].items()},
            spawning=frozenset(report["spawning"]),
            collecting=collected["seconds"],
        )

    def surveyed(self, reports: Mapping[int, Message | None]) -> Suite:
        """With what each test does alone."""
        coverage = {function: set(tests) for function, tests in self.coverage.items()}
        spawning = set(self.spawning)
        for test, report in reports.items():
            for function in report["coverage"] if report is not None else ():
                coverage.setdefault(function, set()).add(test)
            if report is not None and report["spawning"]:
                spawning.add(test)
        return replace(
            self,
            coverage={function: frozenset(tests) for function, tests in coverage.items()},
            spawning=frozenset(spawning),
            dependent=frozenset(test for test, report in reports.items() if report is None),
        )

    @property
    def total(self) -> float:
        """Seconds for all tests."""
        return sum(self.durations)

    def covering(self, function: str) -> list[int]:
        """The tests that reach `function`, the quickest first, without those that fail anyway."""
        tests = self.coverage.get(function, frozenset()) - self.failing.keys()
        return sorted(tests, key=self.durations.__getitem__)

    def suspects(self, function: str) -> list[int]:
        """`covering`, and after it the tests that may reach `function` in another process."""
        covering = self.covering(function)
        rest = self.spawning.difference(covering).difference(self.failing)
        return covering + sorted(rest, key=self.durations.__getitem__)

    def seconds(self, tests: Sequence[int]) -> float:
        """How long `tests` take."""
        return sum(self.durations[test] for test in tests)

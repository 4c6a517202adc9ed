"""Isolated runs: each test alone, in a process that has run no other: what it then runs, and whether it passes.

What one test computes and keeps, later tests use without running the code: a mutant there would survive if only the
first were a candidate. Only survivors need to know, so these runs are made when the first mutant survives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .channel import Message


class IsolatedRuns:
    """One job for each test, at most `jobs` at once. Their ids are negative."""

    def __init__(self, tests: list[int], jobs: int, start: Callable[[int, int], None]) -> None:
        self._left, self._jobs, self._start = tests, jobs, start
        self._running: set[int] = set()
        self.reports: dict[int, Message | None] = {}  # None: the test doesn't pass alone

    @property
    def done(self) -> bool:
        """Whether every test has been run."""
        return not self._left and not self._running

    def advance(self) -> None:
        """Start what may run now."""
        while self._left and len(self._running) < self._jobs:
            test = self._left.pop()
            self._running.add(test)
            self._start(-1 - test, test)

    def pause(self) -> list[int]:
        """No mutant waits for them any more: the ids of the jobs to stop."""
        return [-1 - test for test in self._running]

    def receive(self, answer: Message) -> None:
        """A job has ended."""
        test = -1 - answer["id"]
        self._running.discard(test)
        if answer["kill_reason"] == "stopped":
            self._left.append(test)
            return
        report: dict[str, Any] | None = answer["report"]
        self.reports[test] = report if report is not None and not report["failing"] else None

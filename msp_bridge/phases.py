"""Phases: what a tool is busy with before its first result, for a person who waits for it.

`msp-bridge run` shows the phase with its own progress. Elsewhere it goes to the log: that a phase has begun as info,
how far it has come as debug. Whoever shows phases adds a handler to the logger `LOGGER` and reads the attribute `phase`
of its records, which may come from any thread.
"""

from __future__ import annotations

import logging
import time

from attrs import define, field, frozen

LOGGER = logging.getLogger(__name__)
COPYING = "copying the project"
DISCOVERING = "looking for mutants"
GENERATING = "generating the mutated code"
COLLECTING = "collecting the tests"
BASELINE = "running the tests without mutants"
BRIEF_S = 0.3  # what is over sooner isn't reported
EVERY_S = 0.2


@frozen
class PhaseReport:
    """How far a phase has come: `done` of `total` steps; None where there are no steps, or nobody knows how many."""

    name: str
    done: int | None = None
    total: int | None = None

    def __str__(self) -> str:
        """For the log."""
        return self.name if self.done is None or self.total is None else f"{self.name}: {self.done} of {self.total}"


@define
class Phase:
    """A phase that has just begun. Call `reached` as often as you like: only some of the calls are reported."""

    name: str
    total: int | None = None
    _next: float = field(init=False, factory=lambda: time.monotonic() + BRIEF_S)
    _reported: bool = field(init=False, default=False)

    def reached(self, done: int) -> None:
        """So many steps are done."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + EVERY_S
            report_phase(self.name, done, self.total, begins=not self._reported)
            self._reported = True


def report_phase(name: str, done: int | None = None, total: int | None = None, *, begins: bool = True) -> None:
    """Say that a phase begins or, with `begins=False`, how far it has come."""
    found = PhaseReport(name, done, total)
    LOGGER.log(logging.INFO if begins else logging.DEBUG, "%s", found, extra={"phase": found})

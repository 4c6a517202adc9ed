"""Run: what one run of the tests came to, and what that says of a mutant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from msp_bridge.adapter import Mutant, Result, Status

STATUSES = {
    "passed": Status.SURVIVED,
    "failed": Status.KILLED,
    "timeout": Status.TIMEOUT,
    "unable": Status.RUNTIME_ERROR,
}
PYTEST_CODES = {
    2: "pytest was interrupted",
    3: "pytest failed internally",
    4: "pytest couldn't start: a conftest.py can't be imported, or its options are wrong",
    5: "pytest found no tests",
}
SHOWN = 1000  # characters of output


@frozen
class Run:
    """One run of the test command."""

    outcome: str  # passed, failed, timeout, unable; stale: it wasn't run, for a file has changed
    returncode: int | None = None
    duration: float = 0.0  # ms
    stdout: str = ""  # their tails
    stderr: str = ""
    report: tuple[Mapping[str, Any], ...] = ()  # what the pytest plugin wrote, in its order

    @classmethod
    def of(cls, reply: Mapping[str, Any]) -> Run:
        """From what the worker said."""
        if reply["outcome"] == "stale":
            return cls("stale")
        return cls(
            reply["outcome"],
            reply["returncode"],
            reply["duration"],
            reply["stdout"],
            reply["stderr"],
            tuple(reply["report"]),
        )

    @property
    def observed(self) -> bool:
        """Whether pytest ran, with our plugin."""
        return any("started" in event for event in self.report)

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the tests that failed."""
        return tuple(dict.fromkeys(event["failed"] for event in self.report if "failed" in event))

    @property
    def completed(self) -> int | None:
        """How many tests ran, when pytest came to its end."""
        return next((event["completed"] for event in self.report if "completed" in event), None)

    @property
    def outside(self) -> tuple[str, ...]:
        """The files of modules that were imported from the user's tree."""
        return tuple(file for event in self.report for file in event.get("outside", ()))

    @property
    def was_killed(self) -> bool:
        """Whether somebody else killed the tests: perhaps for want of memory."""
        return self.outcome == "failed" and self.returncode == -9

    @property
    def reason(self) -> str | None:
        """Why it failed, in the tests' own words."""
        if self.outcome == "passed":
            return None
        for event in self.report:
            if "message" in event:
                return f"{event.get('failed') or event.get('uncollected')}: {event['message']}"
        if self.outcome == "timeout":
            return "the tests took longer than `timeout`"
        if self.observed and self.returncode in PYTEST_CODES:
            return f"{PYTEST_CODES[self.returncode]} (exit code {self.returncode}): {self._tail}".rstrip(": ")
        if self.was_killed:
            return "the tests were killed from outside, twice (for want of memory?)"
        return self._tail or f"the test command ended with exit code {self.returncode}"

    @property
    def _tail(self) -> str:
        return (self.stderr.strip() or self.stdout.strip())[-SHOWN:]

    def result(self, mutant: Mutant) -> Result:
        """What the run, with the mutant in place, says of it."""
        return Result(
            mutant,
            STATUSES[self.outcome],
            duration=self.duration,
            killed_by=self.failed or None,
            status_reason=self.reason,
            tests_completed=self.completed,
        )

"""CommandRun: one run of the test command in a sandbox, and what that says of a mutant."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from msp_bridge.adapter import Mutant, Result, Status
from msp_bridge.toolkit import JsonLinesProcess, unwritable

from .command import TestCommand

ANSWER_MARGIN_S = 60.0  # that the program may take beyond the limit of the tests
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
SHOWN_CHARS = 1000  # characters of output
Files = Mapping[str, tuple[str | None, bytes]]  # path to the digest it must have (None: any), and the content instead


@frozen
class CommandRun:
    """One run of the test command."""

    outcome: str  # passed, failed, timeout, unable; stale: it wasn't run, for a file has changed
    returncode: int | None = None
    duration: float = 0.0  # ms
    stdout: str = ""  # their tails
    stderr: str = ""
    report: tuple[Mapping[str, Any], ...] = ()  # what the pytest plugin wrote, in its order

    @classmethod
    async def of(
        cls,
        process: JsonLinesProcess,
        sandbox: Path,
        command: TestCommand,
        files: Files,
        *,
        observed: bool,
        bytecode: bool = False,
        timeout_factor: float = 1,
    ) -> CommandRun:
        """Run the tests with other contents for some files. `timeout_factor` multiplies the time that they may take.

        Raises `ProcessEnded` when the program ends, `ToolError` when a file can't be written.
        """
        report, limit = sandbox.parent / "report.jsonl", command.timeout * timeout_factor
        question = {
            "argv": command.argv(sandbox),
            "timeout": limit,
            "env": command.environment(sandbox, report, observed=observed, bytecode=bytecode),
            "files": {
                path: [digest, base64.b64encode(content).decode("ascii")] for path, (digest, content) in files.items()
            },
            "report": str(report),
        }
        answer = await process.ask(question, timeout_s=limit + ANSWER_MARGIN_S)
        if answer["outcome"] == "unwritable":
            raise unwritable(sandbox.parent, OSError(answer["errno"], answer["error"]))
        if answer["outcome"] == "stale":
            return cls("stale")
        return cls(
            answer["outcome"],
            answer["returncode"],
            answer["duration"],
            answer["stdout"],
            answer["stderr"],
            tuple(answer["report"]),
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
        """Whether some other process killed the tests: perhaps for want of memory."""
        return self.outcome == "failed" and self.returncode == -9

    @property
    def failures(self) -> Mapping[str, str]:
        """The tests that failed and the modules that can't be imported, and the message of each."""
        failures = (event for event in self.report if "message" in event)
        return {event.get("failed") or event["uncollected"]: event["message"] for event in failures}

    @property
    def reason(self) -> str | None:
        """Why it failed, as the tests say."""
        if self.outcome == "passed":
            return None
        for name, message in self.failures.items():
            return f"{name}: {message}"
        if self.outcome == "timeout":
            return "the tests took longer than `timeout`"
        if self.observed and self.returncode in PYTEST_CODES:
            return f"{PYTEST_CODES[self.returncode]} (exit code {self.returncode}): {self._tail}".rstrip(": ")
        if self.was_killed:
            return "the tests were killed from outside, twice (for want of memory?)"
        return self._tail or f"the test command ended with exit code {self.returncode}"

    @property
    def _tail(self) -> str:
        return (self.stderr.strip() or self.stdout.strip())[-SHOWN_CHARS:]

    def result(self, mutant: Mutant) -> Result:
        """The result of the run with the mutant in place."""
        return Result(
            mutant,
            STATUSES[self.outcome],
            duration=self.duration,
            killed_by=self.failed or None,
            status_reason=self.reason,
            tests_completed=self.completed,
        )

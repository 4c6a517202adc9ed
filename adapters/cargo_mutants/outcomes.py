"""Outcomes: what `mutants.out` says of the mutants that have been tested."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

from msp_bridge.adapter import Result, Status

from .listing import Sources

STATUSES = {
    "CaughtMutant": Status.KILLED,
    "MissedMutant": Status.SURVIVED,
    "Unviable": Status.COMPILE_ERROR,
    "Timeout": Status.TIMEOUT,
    "Failure": Status.RUNTIME_ERROR,
}
FAILED = re.compile(r"^test (.+?)(?: - should panic)? \.\.\. FAILED$", re.MULTILINE)
COUNTED = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed;", re.MULTILINE)
PANIC = re.compile(r"^thread '.*' .*panicked at .*:\n((?:.+\n)+?)(?=stack backtrace:|note: |\n)", re.MULTILINE)
ERROR = re.compile(r"^error.*", re.MULTILINE)
SHOWN = 1000  # characters of a reason


@define
class Outcomes:
    """The directory `mutants.out` of one run, while it grows."""

    directory: Path
    sources: Sources
    _seen: int = field(default=0, init=False)

    def new(self) -> list[Result]:
        """Results since the last call. `outcomes.json` is written anew for each: half of one tells nothing yet."""
        try:
            outcomes = json.loads((self.directory / "outcomes.json").read_bytes())["outcomes"]
        except (FileNotFoundError, ValueError):
            return []
        fresh, self._seen = outcomes[self._seen :], len(outcomes)
        return [result for outcome in fresh for result in self._results(outcome)]

    def baseline_failure(self) -> str:
        """What failed without a mutant."""
        log = self._log("log/baseline.log")
        return ", ".join(FAILED.findall(log)) or _reason(log) or "see `cargo test`"

    def _results(self, outcome: Mapping[str, Any]) -> Iterator[Result]:
        scenario = outcome["scenario"]
        if not isinstance(scenario, dict) or outcome["summary"] not in STATUSES:
            return  # the baseline, or a mutant that was only built
        mutant = self.sources.mutant(scenario["Mutant"])
        if mutant is None:
            return
        status, log = STATUSES[outcome["summary"]], self._log(outcome["log_path"])
        counted = [int(passed) + int(failed) for passed, failed in COUNTED.findall(log)]
        yield Result(
            mutant,
            status,
            duration=sum(phase["duration"] for phase in outcome["phase_results"] if phase["phase"] == "Test") * 1000,
            killed_by=tuple(FAILED.findall(log)) or None if status is Status.KILLED else None,
            status_reason=None if status is Status.SURVIVED else _reason(log),
            tests_completed=sum(counted) if counted else None,
        )

    def _log(self, path: str) -> str:
        try:
            return (self.directory / path).read_text("utf-8", "replace")
        except OSError:
            return ""


def _reason(log: str) -> str | None:
    panic = PANIC.search(log)
    if panic is not None:
        return panic[1].strip()[:SHOWN]
    error = ERROR.search(log)
    return error[0][:SHOWN] if error else None

"""Outcomes: what the growing report of a run of cargo-mutants says of its mutants."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

from msp_bridge.adapter import BaselineError, Mutant, Result, Status
from msp_bridge.source import as_discovered

from .listing import Key, key_of

STATUSES = {
    "CaughtMutant": Status.KILLED,
    "MissedMutant": Status.SURVIVED,
    "Unviable": Status.COMPILE_ERROR,
    "Timeout": Status.TIMEOUT,
    "Failure": Status.RUNTIME_ERROR,
}
# Of `cargo test`, and of nextest, which indents what tests print.
FAILED = re.compile(r"^test (.+?)(?: - should panic)? \.\.\. FAILED$", re.MULTILINE)
COUNTED = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed;", re.MULTILINE)
NEXTEST_FAILED = re.compile(r"^ +(?:FAIL|ABORT|SIG[A-Z]+|TIMEOUT) \[.*?\] (?:\(.*?\) )?\S+ (\S+)$", re.MULTILINE)
NEXTEST_COUNTED = re.compile(r"^ +Summary \[.*?\] (\d+)(?:/\d+)? tests? run:", re.MULTILINE)
PANIC = re.compile(r"^ *thread '.*' .*panicked at .*:\n((?:.+\n)+?)(?= *stack backtrace:| *note: |\n)", re.MULTILINE)
LIMIT = re.compile(r"Auto-set test timeout to (\d+)s")
ERROR = re.compile(r"^error.*", re.MULTILINE)
GIT = re.compile(r"not a git repository|could not find repository", re.IGNORECASE)  # of git, and of libgit2
NEEDS_GIT = "write `copy_vcs = true` into .cargo/mutants.toml: the copy that is tested has no version control"
SHOWN_CHARS = 1000  # of a reason


@define
class Outcomes:
    """The directory `mutants.out` of one run, while it grows."""

    directory: Path
    due: Iterable[Mutant]
    copied: Path | None = None  # the project, if the run makes copies of it
    limit: str | None = None  # for tests, in seconds; if it isn't known, what the tool derives from its baseline
    _seen: int = field(default=0, init=False)
    _left: dict[Mutant, int] = field(init=False)  # outcomes that are still to come of each without a result
    _by_key: Mapping[Key, Mutant] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._left = {mutant: len(mutant.handle.keys) for mutant in self.due}
        self._by_key = {key: mutant for mutant in self._left for key in mutant.handle.keys}

    def new(self) -> list[Result]:
        """Results since the last call. `outcomes.json` is written anew for each: half of one is no report yet."""
        try:
            outcomes = json.loads((self.directory / "outcomes.json").read_bytes())["outcomes"]
        except (FileNotFoundError, ValueError):
            return []
        if outcomes and not self._seen and self.copied is not None:  # what was edited by now, is another mutant's
            self._left = {mutant: self._left[mutant] for mutant in as_discovered(self.copied, self._left)}
        if self.limit is None and (found := LIMIT.search(self._log("debug.log"))):
            self.limit = found[1]
        fresh, self._seen = outcomes[self._seen :], len(outcomes)
        return [result for outcome in fresh for result in self._results(outcome)]

    def baseline_error(self) -> BaselineError:
        """The error for tests that fail without a mutant."""
        log = self._log("log/baseline.log")
        failing, first = _failed(log), _reason(log) or ""
        what = ", ".join(failing) or first or "`cargo test` fails"
        hint = NEEDS_GIT if GIT.search(log) else "make `cargo test` pass first"
        return BaselineError(f"the tests fail without any mutant: {what}", hint, failing, first)

    def _results(self, outcome: Mapping[str, Any]) -> Iterator[Result]:
        scenario = outcome["scenario"]
        if not isinstance(scenario, dict) or outcome["summary"] not in STATUSES:
            return  # the baseline, or a mutant that was only built
        mutant = self._by_key.get(key_of(scenario["Mutant"]))
        if mutant is None or mutant not in self._left:
            return
        status, log = STATUSES[outcome["summary"]], self._log(outcome["log_path"])
        self._left[mutant] -= 1
        if self._left[mutant] and not status.detected:
            return  # the file's other packages decide
        del self._left[mutant]
        yield Result(
            mutant,
            status,
            duration=sum(phase["duration"] for phase in outcome["phase_results"] if phase["phase"] == "Test") * 1000,
            killed_by=_failed(log) or None if status is Status.KILLED else None,
            status_reason=None if status is Status.SURVIVED else _reason(log),
            tests_completed=_completed(log),
        )

    def _log(self, path: str) -> str:
        try:
            return (self.directory / path).read_text("utf-8", "replace")
        except OSError:
            return ""


def _failed(log: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(NEXTEST_FAILED.findall(log) or FAILED.findall(log)))


def _completed(log: str) -> int | None:
    if summary := NEXTEST_COUNTED.search(log):
        return int(summary[1])
    counted = [int(number) for numbers in COUNTED.findall(log) for number in numbers]
    return sum(counted) if counted else None


def _reason(log: str) -> str | None:
    panic = PANIC.search(log)
    if panic is not None:
        return textwrap.dedent(panic[1]).strip()[:SHOWN_CHARS]
    error = ERROR.search(log)
    return error[0][:SHOWN_CHARS] if error else None

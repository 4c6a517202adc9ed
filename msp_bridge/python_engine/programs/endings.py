"""The meaning of an end: of a job, for its mutant; of a run that collected no test, for the user, in one sentence."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from itertools import groupby
from textwrap import dedent

from .channel import TargetPlan
from .messages import Ended, Report, Started, Verdict
from .time_limits import CPU_FACTOR, LEAST_CPU_S

MARK = "E   "  # pytest's, before the lines of an exception
SILENCE = "no message"
FRAME, INTERNAL = re.compile(r"^INTERNALERROR>  .*\n", re.MULTILINE), "INTERNALERROR> "  # of an error in pytest itself
NO_ERROR = re.compile(r"\b(0|no) errors\b", re.IGNORECASE)
TRACEBACK = "Traceback (most recent call last):"
CUT = "…"  # in the place of the beginning of a message that was too long


class Unprepared(Exception):
    """The project can't be tested: why, in one sentence, and the output that says it."""

    def __init__(self, why: str, output: str = "", *, kind: str = "collection", failing: Sequence[str] = ()) -> None:
        """`kind`: "baseline" (tests fail), "none" (no tests), "collection", or the way to another copy."""
        super().__init__(why)
        self.output, self.kind, self.failing = output, kind, list(failing)


def reject_elsewhere(found: Sequence[str] | None) -> None:
    """Raise Unprepared where the tests import a module from another place: `found`, by `imports.loaded_elsewhere`."""
    if found is not None:
        name, file, way = found
        raise Unprepared(f"the tests import {name} from {file}, not from this project", kind=way)


def why_not_collected(answer: Started | Report, log: str) -> Unprepared:
    """Why pytest didn't get as far as the tests, though no mutant is active; `log` is the end of what it printed."""
    if answer["broken"]:
        test, text = answer["broken"][0]
        failing = list(dict.fromkeys(name for name, _ in answer["broken"]))  # --doctest-modules imports a file twice
        others = len(failing) - 1
        nor = f", nor can {others} other{'s' * (others > 1)}" if others else ""
        return Unprepared(f"{test} can't be imported{nor}: {gist(text)}", text, failing=failing)
    if answer["exit"] == 5:
        return Unprepared("pytest finds no tests", kind="none")
    return Unprepared(f"pytest can't start (exit code {answer['exit']}): {last_error(log)}", log)


def gist(text: str) -> str:
    """The line that names the last exception, of what pytest says of a test or a module."""
    lines = text.splitlines()
    if blocks := [[*block] for marked, block in groupby(lines, lambda line: line.startswith(MARK)) if marked]:
        lines = dedent("\n".join(line.removeprefix(MARK) for line in blocks[-1])).splitlines()  # of a chain
    elif text.startswith(CUT):
        lines = lines[-1:]
    elif TRACEBACK in lines:
        lines = lines[len(lines) - lines[::-1].index(TRACEBACK) :]
    return next((line.strip() for line in lines if line[:1].strip()), "") or _first(lines)


def last_error(log: str) -> str:
    """The exception that ended pytest itself; or else the last line that speaks of an error, or the last one."""
    *frames, exception = FRAME.split(log)
    if frames and exception.startswith(INTERNAL):
        return exception.partition("\n")[0].removeprefix(INTERNAL).strip()
    lines = [line.strip() for line in reversed(log.splitlines())]
    return next((line for line in lines if "error" in NO_ERROR.sub("", line).lower()), _first(lines))


def _first(lines: list[str]) -> str:
    return next((line.strip() for line in lines if line.strip()), SILENCE)


def fault_of(answer: Ended) -> str | None:
    """Name what has failed in our own code, so that the job says nothing of its mutant; None: nothing has.

    Raises SystemExit where that was before the job could begin: the bridge then looks at the project again.
    """
    report = answer["report"] or {}
    if "fault" not in report:
        return None
    if not report["begun"]:
        raise SystemExit(f"a job could not enter its world: {report['fault']}")
    return f"msp-bridge itself has failed in the process of the tests: {report['fault']}"


def reject_fault(answer: Ended) -> None:
    """Raise SystemExit where our own code has failed in a job that has no mutant: the bridge starts a new host."""
    if (fault := fault_of(answer)) is not None:
        raise SystemExit(fault)


def verdict_of(answer: Ended, plan: TargetPlan) -> Verdict:
    """From the fork server's answer."""
    report = answer["report"]
    if answer["kill_reason"] == "timeout":
        reason = "the tests took longer than the time limit, ({:g} s + their time without the mutant) * {:g}"
        if plan.cpu_limited:
            reason += f"; or one of them took longer than that limit for it alone, or {CPU_FACTOR:g} times its time"
            reason += f" in CPU time, and {LEAST_CPU_S:g} s at least"
        return {"status": "Timeout", "reason": reason.format(*plan.limit)}
    if report is None:
        status = "Killed" if plan.exit_kills and answer["exit"] != 0 else "RuntimeError"
        return {"status": status, "reason": f"the process of the tests ended {_way(answer['exit'])}"}
    if "failure" not in report:
        return _not_collected(report)
    verdict: Verdict = {"tests": report["tests"], "seconds": report["seconds"]}
    if report["failure"] is None:
        return {"status": "Survived", **verdict}
    return {"status": "Killed", "killed_by": report["failure"][0], "reason": report["failure"][1], **verdict}


def _not_collected(report: Report) -> Verdict:
    """With the mutant, pytest didn't get as far as the tests: without it, it did."""
    test, text = (
        report["broken"][0]
        if report["broken"]
        else (None, f"pytest ended with exit code {report['exit']} before the first test")
    )
    # A mutant of what pytest consists of may have it run the tests by itself: then its exit code is the verdict.
    status = "Killed" if report["exit"] else "Survived"
    return {"status": status, "killed_by": test or None, "reason": text, "tests": 0, "seconds": report["seconds"]}


def _way(code: int) -> str:
    if code >= 0:
        return f"by the mutant with exit code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"

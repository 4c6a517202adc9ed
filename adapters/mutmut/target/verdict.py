"""Verdict: what the end of a worker means for its mutant."""

from __future__ import annotations

import signal

from mutmut.configuration import config

from .channel import Message


def verdict_of(answer: Message) -> Message:
    """Of what became of a worker."""
    report = answer["report"]
    if answer["fate"] == "timeout":
        return {
            "status": "Timeout",
            "reason": "the tests took longer than mutmut's time limit (timeout_multiplier, timeout_constant)",
        }
    if report is None:
        return {"status": "RuntimeError", "reason": f"the tests' process was ended {_way(answer['exit'])}"}
    if "failure" not in report:
        return _uncollected(report)
    verdict = {"tests": report["tests"], "seconds": report["seconds"]}
    if report["failure"] is None:
        return {"status": "Survived", **verdict}
    return {"status": "Killed", "killed_by": report["failure"][0], "reason": report["failure"][1], **verdict}


def _uncollected(report: Message) -> Message:
    """With the mutant, pytest didn't get as far as the tests: without it, it did."""
    test, text = (
        report["broken"][0]
        if report["broken"]
        else (None, f"pytest ended with exit code {report['exit']} before the first test")
    )
    return {"status": "Killed", "killed_by": test or None, "reason": text, "tests": 0, "seconds": report["seconds"]}


def _way(code: int) -> str:
    if code >= 0:
        return f"by the mutant with exit code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"


def limit_for(seconds: float) -> float:
    """As mutmut computes it."""
    return float((seconds + config().timeout_constant) * config().timeout_multiplier)

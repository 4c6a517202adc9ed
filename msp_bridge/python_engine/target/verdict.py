"""What the end of a job means for its mutant."""

from __future__ import annotations

import signal

from .channel import Message
from .plan import Plan


def verdict_of(answer: Message, plan: Plan) -> Message:
    """From the fork server's answer."""
    report = answer["report"]
    if answer["kill_reason"] == "timeout":
        reason = "the tests took longer than the time limit, ({:g} s + their time without the mutant) * {:g}"
        return {"status": "Timeout", "reason": reason.format(*plan.limit)}
    if report is None:
        status = "Killed" if plan.exit_kills and answer["exit"] != 0 else "RuntimeError"
        return {"status": status, "reason": f"the process of the tests ended {_way(answer['exit'])}"}
    if "failure" not in report:
        return _not_collected(report)
    verdict = {"tests": report["tests"], "seconds": report["seconds"]}
    if report["failure"] is None:
        return {"status": "Survived", **verdict}
    return {"status": "Killed", "killed_by": report["failure"][0], "reason": report["failure"][1], **verdict}


def _not_collected(report: Message) -> Message:
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

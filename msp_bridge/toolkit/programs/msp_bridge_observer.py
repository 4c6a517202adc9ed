"""A pytest plugin that reports which tests failed, how many ran, and which modules came from outside the private copy.

Lines of JSON in `$MSP_BRIDGE_REPORT`. `CommandRun` copies it to a directory of its own, which is on the tests' path.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from typing import Any

LIMIT = 50  # failed tests that are named
MARK = "E   "  # pytest's, before the lines of an exception
PLACE = re.compile(r'\s+File "(.+)", line (\d+)')
_report = os.environ.get("MSP_BRIDGE_REPORT")
_source = os.environ.get("MSP_BRIDGE_SOURCE")  # the user's tree, which nothing should come from
if os.environ.get("MSP_BRIDGE_OBSERVED"):
    _report = None  # a pytest that the tests started, or a worker of pytest-xdist, whose results the first one gets
os.environ["MSP_BRIDGE_OBSERVED"] = "1"
_counts = {"completed": 0, "failed": 0}


def _write(event: Any) -> None:
    if _report:
        with contextlib.suppress(OSError):  # a full disk is no reason for a test to fail
            with open(_report, "a", encoding="utf-8", errors="surrogatepass") as file:
                file.write(json.dumps(event) + "\n")


def _message(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(getattr(crash, "message", None) or _gist(str(report.longrepr)))[-1000:]


def _gist(text: str) -> str:
    """The line that names the exception, and where, of the many that pytest says when a module can't be imported."""
    marked = [line[len(MARK) :] for line in text.splitlines() if line.startswith(MARK)]
    exception = next((line for line in reversed(marked) if line[:1].strip()), None)
    if exception is None:
        return text
    place = next((found for line in marked if (found := PLACE.fullmatch(line))), None)  # of a syntax error
    return exception if place is None else f"{exception} ({os.path.basename(place[1])}, line {place[2]})"


def pytest_configure() -> None:
    """pytest has begun."""
    _write({"started": True})


def pytest_runtest_logreport(report: Any) -> None:
    """A test, or what is done before and after it, has ended."""
    if report.when == "call":
        _counts["completed"] += 1
    if report.failed:
        _counts["failed"] += 1
        if _counts["failed"] <= LIMIT:
            _write({"failed": report.nodeid, "message": _message(report)})


def pytest_collectreport(report: Any) -> None:
    """A module was collected."""
    if report.failed:
        _write({"uncollected": report.nodeid, "message": _message(report)})


def pytest_sessionfinish(exitstatus: Any) -> None:
    """All tests have ended."""
    _write({"exit": int(exitstatus), "completed": _counts["completed"], "outside": _outside()})


def _outside() -> list[str]:
    if not _source:
        return []
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return [file for file in files if isinstance(file, str) and file.startswith(_source + os.sep)]

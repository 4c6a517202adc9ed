"""GitHub: annotations on the lines that the tests miss, and a summary of the job, in the words of GitHub Actions.

https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from msp_bridge.model import Status
from msp_bridge.reports.entries import Entry, entries
from msp_bridge.reports.score import Score

MESSAGES = {
    Status.SURVIVED: "No test notices this change",
    Status.NO_COVERAGE: "No test reaches this line; none would notice this change",
}
MAX_FILES = 100  # rows of the summary: GitHub refuses one of more than 1 MiB


def warnings(report: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """A warning for each mutant that the tests miss; `prefix` leads from the repository's root to the report's."""
    for entry in entries(report):
        if entry.result.status in MESSAGES:
            yield _warning(entry, prefix)


def summary(report: Mapping[str, Any]) -> str:
    """Markdown: the score, the count of each status, and the files in which most is missed."""
    by_file = [
        (path, Score.of(entry.result for entry in found))
        for path, found in groupby(entries(report), key=lambda entry: entry.result.mutant.path)
    ]
    total = Score()
    for _, score in by_file:
        total.counts.update(score.counts)
    counts = ", ".join(f"{total.counts[status]} {status.value}" for status in Status if total.counts[status])
    lines = [f"### Mutation score: {_percent(total)}", "", counts or "There are no mutants.", ""]
    return "\n".join([*lines, *_table([row for row in by_file if row[1].undetected])]) + "\n"


def _table(rows: Sequence[tuple[str, Score]]) -> Iterator[str]:
    if not rows:
        return
    yield from ("| file | score | missed |", "|---|---|---|")
    worst = sorted(rows, key=lambda row: -row[1].undetected)
    for path, score in worst[:MAX_FILES]:
        yield f"| {_cell(path)} | {_percent(score)} | {score.undetected} |"
    if len(rows) > MAX_FILES:
        yield f"| … {len(rows) - MAX_FILES} more files | | |"


def _percent(score: Score) -> str:
    return "-" if score.percent is None else f"{score.percent:.1f} %"


def _cell(text: str) -> str:
    special = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|"} | {"\n": " ", "\r": " "})
    return text.translate(special)


def _warning(entry: Entry, prefix: str) -> str:
    mutant, status = entry.result.mutant, entry.result.status
    start, end = mutant.location.start, mutant.location.end
    places = {"file": prefix + mutant.path, "line": start.line, "endLine": end.line}
    if start.line == end.line:  # GitHub takes columns only within a line
        places |= {"col": start.column, "endColumn": end.column}
    places["title"] = f"{status.value}: {mutant.mutator}"
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in places.items())
    message = "\n".join([f"{MESSAGES[status]}:", entry.diff_text] if entry.diff else [f"{MESSAGES[status]}."])
    return f"::warning {properties}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

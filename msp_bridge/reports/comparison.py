"""Comparison: what has become of mutants between two reports. A mutant is found again by its code, not by its line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from attrs import frozen

from msp_bridge.model import Mutant
from msp_bridge.reports.ci import cell
from msp_bridge.reports.results import ContentIndex, MutantContent, Score
from msp_bridge.reports.standard import Report, ReportedMutant, entries
from msp_bridge.source import SourceText
from msp_bridge.text import first_of

MAX_ROWS = 100  # of a Markdown table: a comment of GitHub has 65,536 characters at most


@frozen
class Comparison:
    """The scores of two reports, and the mutants of the newer one that have become survivors or were killed since."""

    old: Score
    new: Score
    survived: Sequence[ReportedMutant]  # undetected; before, they were not, or not there
    killed: Sequence[ReportedMutant]  # detected; before, they were undetected

    @classmethod
    def of(cls, old: Report, new: Report) -> Comparison:
        """Compare `new` with `old`."""
        before = {key: entry.result.status for key, entry in _keyed(old)}
        survived, killed = [], []
        for key, entry in _keyed(new):
            status, earlier = entry.result.status, before.get(key)
            if status.undetected and not (earlier and earlier.undetected):
                survived.append(entry)
            elif status.detected and earlier and earlier.undetected:
                killed.append(entry)
        scores = [Score.of(each.result for each in entries(report)) for report in (old, new)]
        return cls(scores[0], scores[1], survived, killed)

    @property
    def title(self) -> str:
        """The scores and counts in one line."""
        scores = f"{self.old.text} -> {self.new.text}"
        return f"Mutation score {scores}: {len(self.survived)} newly survived, {len(self.killed)} newly killed"

    def markdown(self) -> str:
        """A comment for a pull request."""
        lines = [f"### {self.title}", ""]
        for title, found in (("Newly survived", self.survived), ("Newly killed", self.killed)):
            if found:
                lines += [f"| {title} | mutator | change |", "|---|---|---|"]
                lines += [*first_of(found, MAX_ROWS, _row, more="| … {} more | | |"), ""]
        return "\n".join(lines)

    def json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "score": {"old": self.old.percent, "new": self.new.percent},
            "newlySurvived": [_fields(entry) for entry in self.survived],
            "newlyKilled": [_fields(entry) for entry in self.killed],
        }


def _keyed(report: Report) -> Iterator[tuple[tuple[MutantContent | Mutant, str], ReportedMutant]]:
    for path, file in report["files"].items():
        index = ContentIndex(SourceText(file["source"]))
        for entry in entries({"files": {path: file}}):
            mutant = entry.result.mutant
            yield (index.of(mutant) or mutant, mutant.mutator), entry


def _row(entry: ReportedMutant) -> str:
    mutant = entry.result.mutant
    cells = (f"{mutant.path}:{mutant.location.start}", mutant.mutator, " ".join(entry.diff_text.split()))
    return f"| {' | '.join(map(cell, cells))} |"


def _fields(entry: ReportedMutant) -> dict[str, Any]:
    mutant, result = entry.result.mutant, entry.result
    start = mutant.location.start
    place = {"path": mutant.path, "line": start.line, "column": start.column}
    return {"id": mutant.id, **place, "mutator": mutant.mutator, "status": result.status.value, "diff": entry.diff_text}

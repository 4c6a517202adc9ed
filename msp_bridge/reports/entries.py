"""Entries: the mutants of a report in the standard format, read back; other tools' reports serve too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from msp_bridge.model import Location, Mutant, Position, Result, Status
from msp_bridge.reports.diff import Diff
from msp_bridge.source import SourceText


@frozen
class Entry:
    """One mutant: what became of it, and what it changes, as far as the report tells that."""

    result: Result
    diff: tuple[tuple[str, str], ...]  # pairs of sign and line, as of Diff.lines

    @property
    def diff_text(self) -> str:
        """The diff, a line each."""
        return "\n".join(f"{sign} {line}" for sign, line in self.diff)


def entries(report: Mapping[str, Any]) -> Iterator[Entry]:
    """Every mutant of a valid report, file by file."""
    for path, file in report["files"].items():
        source = SourceText(file["source"])
        for fields in file["mutants"]:
            result = _result(path, fields)
            yield Entry(result, _diff(source, result.mutant) if "replacement" in fields else ())


def location(fields: Mapping[str, Any]) -> Location:
    """A location of the format."""
    start, end = fields["start"], fields["end"]
    return Location(Position(start["line"], start["column"]), Position(end["line"], end["column"]))


def _result(path: str, fields: Mapping[str, Any]) -> Result:
    mutant = Mutant(
        path,
        fields["mutatorName"],
        location(fields["location"]),
        fields.get("replacement", ""),
        fields.get("description"),
    )
    return Result(
        mutant,
        Status(fields["status"]),
        duration=fields.get("duration"),
        covered_by=_names(fields.get("coveredBy")),
        killed_by=_names(fields.get("killedBy")),
        static=fields.get("static"),
        status_reason=fields.get("statusReason"),
        tests_completed=fields.get("testsCompleted"),
    )


def _names(names: list[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _diff(source: SourceText, mutant: Mutant) -> tuple[tuple[str, str], ...]:
    try:
        return tuple(Diff.of(source, mutant).lines())
    except ValueError:  # the source is another one than the mutant's: edited during the run
        return ()

"""Kept reports: the last runs of a project, in a private directory, and what they say of each mutant together.

A run is of all mutants or of some. The last result of a mutant is that of the newest run which tested it, unless a
newer run was of the whole project (`WHOLE`), or found other lines where the mutant was. A result is stale when a line
that its mutant changes is another one by now; where lines have only moved, so does the mutant.

Runs of single mutants are many, and must push out neither the run of the whole project that they are compared with nor
each other's results. So runs of the whole are counted apart, and the oldest two of the others become one when there
are too many. The name of a file says of which kind its run is: the time in nanoseconds, and `ALL` for the whole.
"""

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from msp_bridge import reading
from msp_bridge.errors import CommandLineError
from msp_bridge.model import Mutant, Result, Status
from msp_bridge.reports.results import ContentIndex, MutantContent
from msp_bridge.reports.standard import Report, ReportedMutant, entries, reported_mutants, start_of
from msp_bridge.rows import location_fields, reported_mutant
from msp_bridge.source import Changed, SourceText
from msp_bridge.writing import replace_content

log = logging.getLogger(__name__)

KEPT = 20  # runs of the whole project, and as many others
ALL = "-all"  # at the end of a file's name: of every mutant
FOLDER = "runs"  # in the cache of the project
WHOLE, STARTED, SECONDS, TESTED = "whole project", "started", "seconds", "tested"  # in its `config`
COMMIT, CHANGED = "commit", "uncommitted changes"  # there, too, where the project is in a git repository
STALE = "stale: the source has changed since"
PENDING = Status.PENDING.value


@frozen
class KeptReports:
    """The reports in `directory`, newest first. Reading is safe beside a run that keeps its own."""

    directory: Path

    def keep(self, report: Report, instead: Path | None = None) -> Path:
        """Keep `report`, in place of the file `instead`; forget the oldest beyond `KEPT`. Raises OSError."""
        file = self.directory / f"{time.time_ns():020}{ALL if is_complete(report) else ''}.json"
        replace_content(file, json.dumps(report))
        if instead is not None:
            instead.unlink(missing_ok=True)
        self._forget()
        return file

    def _forget(self) -> None:
        files = self._files()
        whole = [file for file in files if file.stem.endswith(ALL)]
        others = [file for file in files if not file.stem.endswith(ALL)]
        since = sum(not whole or file > whole[0] for file in others)
        if since > KEPT:
            self._join(others[KEPT - 1 : since])
        for old in (*whole[KEPT:], *others[max(KEPT, since) :]):
            old.unlink(missing_ok=True)

    def _join(self, files: Sequence[Path]) -> None:
        """Make one run of several, newest first, under a name of its own: `files[0]` may be about to be replaced."""
        report = joined(filter(None, map(_read, files)))
        if all(file.exists() for file in files):  # else another run has just done it
            if report is not None:
                part = {**report, "config": {**report.get("config", {}), WHOLE: False}}
                replace_content(self.directory / f"{int(files[0].stem) + 1:020}.json", json.dumps(part))
            for file in files:
                file.unlink(missing_ok=True)

    def each(self) -> Iterator[Report]:
        """Every report that can be read; each is read when it is asked for."""
        return (report for file in self._files() if (report := _read(file)) is not None)

    def all(self) -> list[Report]:
        """Every report that can be read."""
        return list(self.each())

    def as_of(self, number: int) -> Report:
        """The last result of each mutant when the last run (1) ended, the one before (2) … Raises CommandLineError."""
        kept = self.all()
        if not 1 <= number <= len(kept):
            runs = f"{len(kept)} are" if len(kept) != 1 else "1 is"
            raise CommandLineError(f"there is no run {number}: {runs} kept", "1 is the last one, 2 the one before")
        report = joined(kept[number - 1 :])
        assert report is not None
        return report

    def last(self) -> Report | None:
        """The last result of each mutant, as one report; None when no run is kept."""
        return joined(self.each())

    def _files(self) -> list[Path]:
        try:
            return sorted(self.directory.glob("*.json"), reverse=True)
        except OSError:
            return []


def joined(reports: Iterable[Report]) -> Report | None:
    """One report of `reports`, newest first (see the module); None when there is none."""
    newest: Report | None = None
    files: dict[str, dict[str, Any]] = {}
    tests: dict[str, Any] = {}
    for report in reports:
        newest = newest or report
        for path, file in report["files"].items():
            ours = files.setdefault(path, {**file, "mutants": {}})
            for fields in _moved(path, file, ours["source"]):
                if ours["mutants"].get(fields["id"], fields)["status"] == PENDING or (
                    fields["id"] not in ours["mutants"]
                ):
                    ours["mutants"][fields["id"]] = fields
        tests = {**report.get("testFiles", {}), **tests}
        if is_complete(report):
            break
    if newest is None:
        return None
    for file in files.values():
        file["mutants"] = sorted(file["mutants"].values(), key=start_of)
    return {**newest, "files": dict(sorted(files.items())), "testFiles": tests}


def started(seconds: float) -> str:
    """The value of `STARTED` for a time of `time.time`."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def is_complete(report: Report) -> bool:
    """Whether it is of a run that has tested every mutant of the project."""
    pending = (fields["status"] == PENDING for fields in reported_mutants(report))
    return report.get("config", {}).get(WHOLE) is True and not any(pending)


@frozen
class LastResult:
    """The last result of a mutant."""

    entry: ReportedMutant  # as it was found
    found_in: SourceText
    content: MutantContent | None
    mutant: Mutant  # at its present place; as it was found when that is stale
    source: SourceText  # that `mutant` is in
    stale: bool

    @property
    def result(self) -> Result:
        """The result, of the mutant at its present place."""
        return evolve(self.entry.result, mutant=self.mutant)


def last_results(report: Report, read: Callable[[str], SourceText | None]) -> list[LastResult]:
    """The results of `report` beside the sources as they are now, which `read` gives by path."""
    found: list[LastResult] = []
    for path, file in report["files"].items():
        source, now = SourceText(file["source"]), read(path)
        index = ContentIndex(source)
        changed = None if now is None else Changed.between(source.text, now.text)
        for entry in entries({"files": {path: file}}):
            mutant = entry.result.mutant
            moved = None if changed is None else changed.moved(mutant.location)
            if now is None or moved is None:
                found.append(LastResult(entry, source, index.of(mutant), mutant, source, stale=True))
            else:
                present = evolve(mutant, location=moved)
                found.append(LastResult(entry, source, index.of(mutant), present, now, stale=False))
    return found


def reported(report: Report, wanted: Iterable[LastResult]) -> Report:
    """The part of `report` about the `wanted` results; a stale one says so in its reason."""
    stale = {last.entry.result.mutant.id: last.stale for last in wanted}
    files = {
        path: {**file, "mutants": [_marked(each, stale[each["id"]]) for each in file["mutants"] if each["id"] in stale]}
        for path, file in report["files"].items()
    }
    return {**report, "files": {path: file for path, file in files.items() if file["mutants"]}}


def _marked(fields: Mapping[str, Any], stale: bool) -> Mapping[str, Any]:
    reason = fields.get("statusReason")
    return {**fields, "statusReason": f"{STALE}\n{reason}" if reason else STALE} if stale else fields


def _read(file: Path) -> Report | None:
    try:
        report = reading.json_value(file)
        if isinstance(report["files"], dict):
            return dict(report)
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("the kept report %s can't be read: %s", file, error)
    return None


def _moved(path: str, file: Mapping[str, Any], source: str) -> Iterator[Mapping[str, Any]]:
    """The mutants of `file` as they stand in the text `source`, but for mutants of lines that are others in it."""
    if file["source"] == source:
        yield from file["mutants"]
        return
    changed = Changed.between(file["source"], source)
    for fields in file["mutants"]:
        mutant = reported_mutant(path, fields)
        if (place := changed.moved(mutant.location)) is not None:
            yield {**fields, "id": evolve(mutant, location=place).id, "location": location_fields(place)}

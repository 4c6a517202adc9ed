"""Report: the mutants and results in a report of Stryker.NET, and the way from its positions to the protocol's.

It is the mutation-testing-report-schema, version 2 [Stryker.Core/Reporters/Json]: absolute paths as keys; counters as
ids, which are unique in a solution; coveredBy and killedBy with ids of tests, whose names are in `testFiles`; lines and
columns are Roslyn's + 1. The ids of tests are VSTest's or the testing platform's own, the same in every run.
"""

import logging
import os
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from attrs import field, frozen

from msp_bridge.adapter import Mutant, Position, Remark, Result, Status, ToolError
from msp_bridge.rows import reported_result
from msp_bridge.source import BOM, SourceText

log = logging.getLogger(__name__)

BREAK = re.compile("\r\n|[\r\n\u0085\u2028\u2029]")  # Roslyn's ends of lines
# Why a mutant is Ignored [Stryker.Core/MutantFilters]: all but the second are the user's wish.
FILTERED = "Removed by mutate filter"
BLOCK_COVERED = "Removed by block already covered filter"


@frozen
class ReportEntry:
    """One mutant of a report, and what is said of it."""

    mutant: Mutant
    id: int
    status: Status
    reason: str | None
    covered_by: tuple[str, ...]  # ids of tests
    static: bool
    result: Result  # with the names of tests

    @property
    def excluded(self) -> bool:
        """Whether the user doesn't want to see it."""
        return self.status is Status.IGNORED and self.reason != BLOCK_COVERED

    @property
    def pending(self) -> bool:
        """Whether it is to be tested."""
        return self.status is Status.PENDING


@frozen
class Report:
    """`root` is the directory that its absolute paths are made relative to."""

    root: Path
    content: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, content: Any, root: Path) -> Self:
        """Raises `ToolError` when it has another shape."""
        files = content.get("files") if isinstance(content, dict) else None
        if not isinstance(files, dict) or not all(
            isinstance(file, dict) and isinstance(file.get("mutants"), list) for file in files.values()
        ):
            raise ToolError(
                "Stryker.NET wrote a report of an unknown shape", "open an issue of msp-bridge with the tool's version"
            )
        return cls(root, content)

    def entries(
        self, digests: Mapping[str, str | None], *, listing: bool = False, ranges: bool = False
    ) -> list[ReportEntry | Remark]:
        """Every mutant, file by file, with the digest of its file as its handle. Tens of thousands take a second.

        With `listing` the run had a filter that takes no mutant: filtered mutants are to be tested. Those of a
        file that `mutate` excludes have no entry where they don't compile: the tool says CompileError of them, and
        FILTERED of others. With `ranges`, the others may lie outside of a part of the file that is mutated: there all
        must be FILTERED. A remark says what is left out.
        """
        found: list[ReportEntry | Remark] = []
        for path, file in sorted(self._files.items()):
            text = str(file.get("source", "")).removeprefix(BOM)
            source, roslyn = SourceText(text), SourceText(text, BREAK)
            rows = [self._entry(path, source, roslyn, row, digests.get(path), listing) for row in file["mutants"]]
            found += (row for row in rows if isinstance(row, Remark))
            entries = [row for row in rows if isinstance(row, ReportEntry)]
            compiled = [entry for entry in entries if entry.status is not Status.COMPILE_ERROR]
            filtered = [entry.reason == FILTERED for entry in compiled]
            is_excluded = any(filtered) and (all(filtered) or not ranges)
            found += compiled if is_excluded else entries
        return found

    @property
    def paths(self) -> list[str]:
        """The paths of all files, relative to the root."""
        return sorted(self._files)

    @cached_property
    def _files(self) -> dict[str, Mapping[str, Any]]:
        found = {}
        for name, file in self.content["files"].items():
            path = os.path.relpath(name, self.root)
            if path.startswith("../"):
                log.info("%s is left out: it lies outside of the directory that was opened", name)
            else:
                found[path] = file
        return found

    @cached_property
    def _tests(self) -> dict[str, str]:
        """Ids of tests to their names."""
        files = self.content.get("testFiles") or {}
        return {str(test["id"]): str(test["name"]) for file in files.values() for test in file.get("tests") or ()}

    def _entry(
        self,
        path: str,
        source: SourceText,
        roslyn: SourceText,
        row: Mapping[str, Any],
        digest: str | None,
        listing: bool,
    ) -> ReportEntry | Remark:
        """A remark where the file doesn't have the place, as after a `#line` directive, which positions follow."""
        try:
            edges = (row["location"][edge] for edge in ("start", "end"))
            start, end = (roslyn.offset(Position(int(edge["line"]), int(edge["column"]))) for edge in edges)
            mutant = Mutant(
                path,
                str(row["mutatorName"]),
                source.location(start, end),
                str(row.get("replacement") or ""),
                description=row.get("description"),
                handle=digest,
            )
            status, reason = _status_of(row)
            if listing and reason == FILTERED:
                status, reason = Status.PENDING, None
            pending = status is Status.PENDING
            shown = {
                "status": (Status.RUNTIME_ERROR if pending else status).value,
                "statusReason": reason or ("Stryker.NET did not finish testing it" if pending else None),
            }
            result = reported_result(mutant, {**row, **shown}, self._tests)
            covering = tuple(map(str, row.get("coveredBy") or ()))
            return ReportEntry(mutant, int(row["id"]), status, reason, covering, bool(row.get("static")), result)
        except (KeyError, TypeError, ValueError) as error:
            return Remark(f"has a mutant that is left out: {error}", path)


def _status_of(row: Mapping[str, Any]) -> tuple[Status, str | None]:
    """The status, and the reason for it."""
    try:
        return Status(row.get("status")), row.get("statusReason") or None
    except ValueError:
        return Status.RUNTIME_ERROR, f"Stryker.NET gave a status that the bridge doesn't know: {row.get('status')}"

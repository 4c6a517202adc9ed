"""Report: Stryker.NET's report, and the mutants and results that it tells of."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from attrs import evolve, frozen

from msp_bridge.adapter import Location, Mutant, Position, Result, Status, ToolError

from .assumptions import FILE_FILTERED
from .patterns import handle
from .text import ToolText

log = logging.getLogger(__name__)

Entry = Mapping[str, Any]  # a mutant, as the report or an event has it


@frozen
class Report:
    """`root` is the directory that its absolute paths are made relative to."""

    root: Path
    content: Mapping[str, Any]

    @classmethod
    def read(cls, file: Path, root: Path) -> Self:
        """Raises `ToolError` when it isn't a report."""
        try:
            content = json.loads(file.read_bytes().decode("utf-8-sig"))
        except (OSError, ValueError) as error:
            raise ToolError(f"Stryker.NET wrote a report that can't be read ({error}): run it again") from error
        return cls.of(content, root)

    @classmethod
    def of(cls, content: Any, root: Path) -> Self:
        """Raises `ToolError` when it has another shape."""
        files = content.get("files") if isinstance(content, dict) else None
        if not isinstance(files, dict) or not all(
            isinstance(file, dict) and isinstance(file.get("mutants"), list) for file in files.values()
        ):
            raise ToolError(
                "Stryker.NET wrote a report of an unknown shape: tell its version in an issue of msp-bridge"
            )
        return cls(root, content)

    async def mutants(self, base: str) -> list[tuple[Mutant, Entry]]:
        """Every mutant, file by file. `base` becomes part of the handles."""
        return await asyncio.to_thread(list, self._mutants(base))  # there may be tens of thousands

    def _mutants(self, base: str) -> Iterator[tuple[Mutant, Entry]]:
        for path, file in sorted(self._files.items()):
            text = ToolText.of(str(file.get("source", "")))
            for entry in file["mutants"]:
                mutant = _mutant(path, text, entry, base)
                if mutant is not None:
                    yield mutant, entry

    def filtered(self) -> frozenset[str]:
        """The files that no pattern took: their mutants aren't listed."""
        return frozenset(path for path, file in self._files.items() if file.get("source") == FILE_FILTERED)

    @cached_property
    def _files(self) -> dict[str, Entry]:
        found = {}
        for name, file in self.content["files"].items():
            path = os.path.relpath(name, self.root).replace(os.sep, "/")
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

    def result(self, mutant: Mutant, entry: Entry) -> Result:
        """What `entry` says of `mutant`, and which tests it names."""
        covered_by, killed_by = (self._names(entry.get(name)) for name in ("coveredBy", "killedBy"))
        return evolve(result_of(mutant, entry), covered_by=covered_by, killed_by=killed_by)

    def _names(self, ids: Any) -> tuple[str, ...] | None:
        return None if ids is None else tuple(self._tests.get(str(test), str(test)) for test in ids)


def is_pending(entry: Entry) -> bool:
    """Whether the mutant has no result yet."""
    return entry.get("status") == Status.PENDING.value


def result_of(mutant: Mutant, entry: Entry) -> Result:
    """What `entry` says of `mutant`, but for the tests."""
    status, reason = _status_of(entry)
    return Result(
        mutant,
        status,
        duration=entry.get("duration"),
        static=entry.get("static"),
        status_reason=reason,
        tests_completed=entry.get("testsCompleted"),
    )


def _status_of(entry: Entry) -> tuple[Status, str | None]:
    """The status, and the reason for it."""
    reason = entry.get("statusReason") or None
    try:
        status = Status(entry.get("status"))
    except ValueError:
        return Status.IGNORED, f"Stryker.NET gave a status that the bridge doesn't know: {entry.get('status')}"
    if status is Status.PENDING:
        return Status.RUNTIME_ERROR, reason or "Stryker.NET did not finish testing it"
    return status, reason


def _mutant(path: str, text: ToolText, entry: Entry, base: str) -> Mutant | None:
    """None for one at a place that the file doesn't have, as after a `#line` directive, which positions follow."""
    try:
        start, end = (text.offset(_position(entry["location"][edge])) for edge in ("start", "end"))
        location: Location = text.location(start, end)
        return Mutant(
            path,
            str(entry["mutatorName"]),
            location,
            str(entry.get("replacement") or ""),
            description=entry.get("description"),
            handle=handle(base, text.utf16(start), text.utf16(end)),
        )
    except (KeyError, TypeError, ValueError) as error:
        log.warning("a mutant of %s is left out: %s", path, error)
        return None


def _position(place: Mapping[str, Any]) -> Position:
    return Position(int(place["line"]), int(place["column"]))

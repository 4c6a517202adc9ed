"""Served: mutants and results as Stryker.NET's own server tells them, and ours that go with them."""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from attrs import define, evolve

from msp_bridge.adapter import Location, Mutant, Result, ToolError

from .report import Entry, Report, result_of


async def mutants(answer: Any, root: Path, base: str) -> list[Mutant]:
    """Every mutant in the answer to `discover` of a server in the directory `base` of `root`. Raises `ToolError`.

    Their handles hold the ids that the server knows them by.
    """
    report = await asyncio.to_thread(_report, answer, root, base)
    return [evolve(mutant, handle=f"{base}:{entry.get('id')}") for mutant, entry in await report.mutants(base)]


@define
class Wanted:
    """What a server in the directory `base` is to find out, and what of it isn't told yet."""

    request: dict[str, Any]  # the parameters of `mutationTest`
    _due: dict[str, Mutant]
    _count: int

    @classmethod
    def of(cls, due: Sequence[Mutant], base: str) -> Self:
        """`due` are of `mutants`."""
        files: dict[str, dict[str, list[dict[str, Any]]]] = {}
        for mutant in due:
            path = os.path.relpath(mutant.path, base or ".").replace(os.sep, "/")
            files.setdefault(path, {"mutants": []})["mutants"].append(_entry(mutant))
        by_id = {_id(mutant): mutant for mutant in due}
        return cls({"mutants": files}, by_id, len(by_id))

    @property
    def left(self) -> Collection[Mutant]:
        """Those that nothing was told of."""
        return self._due.values()

    @property
    def none_told(self) -> bool:
        """Whether nothing was told of any."""
        return len(self._due) == self._count

    def result(self, entry: Entry) -> Result | None:
        """What `entry` says, once; None for what nobody asked for.

        The tests in it are ids, which say nothing to a person: whether there are any is all that we could tell.
        """
        mutant = self._due.pop(str(entry.get("id")), None)
        return None if mutant is None else result_of(mutant, entry)


def _report(answer: Any, root: Path, base: str) -> Report:
    """The answer as if it were a report, with the sources, which the server doesn't send."""
    try:
        listed = {str(root / base / name): list(file["mutants"]) for name, file in answer["files"].items()}
        if not all(isinstance(entry, Mapping) and "id" in entry for entries in listed.values() for entry in entries):
            raise TypeError("a mutant without an id")
    except (AttributeError, KeyError, TypeError) as error:
        raise ToolError(
            f"Stryker.NET's server listed mutants in an unknown shape ({error!r}): tell its version in an issue of "
            "msp-bridge, and set `serve = false` for stryker-net"
        ) from None
    files = {
        path: {"source": _text(Path(os.path.normpath(path))), "mutants": entries}
        for path, entries in listed.items()
        if entries
    }
    return Report.of({"files": files}, root)


def _text(file: Path) -> str:
    """As .NET reads it: in UTF-16 if a byte order mark says so, else in UTF-8, whatever it takes."""
    try:
        content = file.read_bytes()
    except OSError:  # its mutants have no place, then, and are left out
        return ""
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode("utf-16" if wide else "utf-8", "replace")


def _id(mutant: Mutant) -> str:
    return mutant.handle.rpartition(":")[2]


def _entry(mutant: Mutant) -> dict[str, Any]:
    """A mutant as the protocol has it. The server goes by the id."""
    return {
        "id": _id(mutant),
        "location": _range(mutant.location),
        "mutatorName": mutant.mutator,
        "replacement": mutant.replacement,
    }


def _range(location: Location) -> dict[str, dict[str, int]]:
    return {
        "start": {"line": location.start.line, "column": location.start.column},
        "end": {"line": location.end.line, "column": location.end.column},
    }

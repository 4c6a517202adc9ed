"""Mutants and results as StrykerJS writes them, and the patterns by which it is told which to test."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Self

from attrs import frozen

from msp_bridge.adapter import Location, Mutant, Position, Result, Status

Raw = Mapping[str, Any]
Tested = tuple[Mutant, Raw]  # a mutant, and what StrykerJS said of it
MAGIC = re.compile(r"[*?\[{(]")


@frozen
class Found:
    """A mutant, and why StrykerJS won't test it, if so."""

    mutant: Mutant
    ignored: str | None = None

    @classmethod
    def of(cls, path: str, raw: Raw, *, base: int = 1) -> Found:
        """`base` is the number of the first line and column."""
        reason = None
        if raw.get("status") == Status.IGNORED.value:
            reason = str(raw.get("statusReason") or "ignored by StrykerJS's configuration")
        return cls(mutant_of(path, raw, base=base), reason)


@frozen
class Target:
    """What to test of one file: all, or what lies within one of the locations."""

    path: str
    locations: tuple[Location, ...] | None = None


@frozen
class Chosen:
    """What to test: the mutants, and where they are."""

    mutants: Sequence[Mutant]
    targets: Sequence[Target]
    whole: bool  # whether they are all that there are in their files

    @property
    def only(self) -> Sequence[Mutant] | None:
        """What to limit a run of the targets to, if need be."""
        return None if self.whole else self.mutants

    @property
    def paths(self) -> Sequence[str]:
        """Their files."""
        return [target.path for target in self.targets]

    @classmethod
    def of(cls, mutants: Collection[Mutant], known: Iterable[Mutant]) -> Self:
        """`mutants`, of all that are known in their files."""
        every = Counter(mutant.path for mutant in known)
        whole = {path for path, count in Counter(mutant.path for mutant in mutants).items() if count == every[path]}
        by_path: dict[str, list[Mutant]] = {}
        for mutant in mutants:
            by_path.setdefault(mutant.path, []).append(mutant)
        targets = [Target(path, None if path in whole else _outermost(some)) for path, some in by_path.items()]
        return cls(tuple(mutants), targets, len(whole) == len(by_path))


def mutant_of(path: str, raw: Raw, *, base: int = 1) -> Mutant:
    """The mutant that StrykerJS tells of `path`."""
    start, end = (
        Position(raw["location"][side]["line"] + 1 - base, raw["location"][side]["column"] + 1 - base)
        for side in ("start", "end")
    )
    return Mutant(path, raw["mutatorName"], Location(start, end), raw.get("replacement") or "")


def result_of(mutant: Mutant, raw: Raw) -> Result:
    """What StrykerJS says of the mutant."""
    return Result(
        mutant,
        Status(raw["status"]),
        duration=raw.get("duration"),
        covered_by=_tests(raw.get("coveredBy")),
        killed_by=_tests(raw.get("killedBy")),
        static=raw.get("static"),
        status_reason=raw.get("statusReason") or None,
        tests_completed=raw.get("testsCompleted"),
    )


def _tests(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _outermost(mutants: Iterable[Mutant]) -> tuple[Location, ...]:
    """Their locations, without those that lie within another one."""
    kept: list[Location] = []
    for place in sorted({mutant.location for mutant in mutants}, key=_outer_first):
        if not kept or not kept[-1].contains(place):
            kept.append(place)
    return tuple(kept)


def _outer_first(place: Location) -> tuple[Position, int, int]:
    return place.start, -place.end.line, -place.end.column


def escaped(path: str) -> str:
    """A pattern that matches `path`, for what StrykerJS takes are patterns.

    A backslash can't escape there (it is a separator), and a brace in brackets is still a brace: `?` stands for it.
    """
    return MAGIC.sub(lambda magic: "?" if magic[0] in "?{" else f"[{magic[0]}]", path)

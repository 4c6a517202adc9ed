"""An adapter whose results cost nothing, so that the front end is what is measured.

Its settings, in the table `instant` of the bridge's configuration, are `mutants`, how many there are, and `pause_ms`,
the time that each result takes; with 0 they come as fast as they are asked for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from typing import ClassVar, Self

import payload

from msp_bridge.adapter import Finding, Location, Mutant, Position, Project, Result, Scope, Status


class Instant:
    """As many mutants as the settings say, all killed."""

    name: ClassVar[str] = "instant"
    markers: ClassVar[tuple[str, ...]] = ()
    sources: ClassVar[tuple[str, ...]] = ()

    def __init__(self, project: Project) -> None:
        self._mutants = int(project.settings["mutants"])
        self._pause = float(project.settings.get("pause_ms", 0)) / 1000

    @classmethod
    def detect(cls, project: Project) -> Self | None:
        """Where the settings ask for it."""
        return cls(project) if "mutants" in project.settings else None

    @classmethod
    def absent(cls, project: Project) -> Finding:
        """Only the benchmarks have it."""
        return Finding(False, cls.name, "no mutants set")

    def claims(self, path: str) -> bool:
        """What `payload` names."""
        return path.startswith("shop/")

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        """All of them."""
        for number in range(self._mutants):
            path = payload.path_of(number)
            if scope.covers(path):
                line = payload.line_of(number)
                location = Location(Position(line, 5), Position(line, 14))
                yield Mutant(path, payload.MUTATOR, location, payload.REPLACEMENT, payload.DESCRIPTION)

    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        """Each as soon as it is asked for, or after its pause."""
        for mutant in mutants:
            if self._pause:
                await asyncio.sleep(self._pause)
            yield Result(
                mutant,
                Status.KILLED,
                payload.DURATION,
                payload.COVERED_BY,
                payload.KILLED_BY,
                static=False,
                status_reason=payload.reason(time.monotonic_ns()),
                tests_completed=payload.TESTS,
            )

    async def diagnose(self) -> AsyncGenerator[Finding, None]:
        """Nothing can be wrong."""
        yield Finding(True, self.name, f"{self._mutants} mutants")

    async def aclose(self) -> None:
        """Nothing runs."""

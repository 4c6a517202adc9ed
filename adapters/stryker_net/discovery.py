"""Discovery: every mutant of the project, from a run that tests none or from the tool's server, kept while it lasts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from msp_bridge.adapter import Location, Mutant, Position, Project

from . import patterns, served
from .base import Base
from .capability import Capability
from .claim import Claim
from .copy import PrivateCopy
from .plan import Plan
from .run import Run
from .warm import Warm

log = logging.getLogger(__name__)

VERSION = 2  # of what is kept on disk


@frozen
class Found:
    """Every mutant, by file. Their handles are for the tool's own server, if they were `served` by that."""

    files: Mapping[str, tuple[Mutant, ...]] = field(factory=dict)
    served: bool = False
    content: str = ""  # of the copy that they were found in


class Discovery:
    """It has a copy of its own, so that it answers while tests run. One at a time: who comes later finds it done."""

    def __init__(self, project: Project) -> None:
        self._claim = Claim(project, "discovery")
        self._capability = Capability(project)
        self._warm = Warm()
        self._turn = asyncio.Lock()
        self._key = ""
        self._found = Found()

    async def mutants(self, plan: Plan) -> Found:
        """Every mutant, by file, sorted. Raises `ToolError` and `ConfigurationError`."""
        async with self._turn:
            copy = await self._claim.copy()
            if self._key == _key(copy, plan, self._found.served) and await asyncio.to_thread(copy.is_current):
                return self._found
            await asyncio.to_thread(copy.prepare)
            serves = await self._capability.serves(plan, copy)
            key = _key(copy, plan, serves)
            if key != self._key:
                kept = await asyncio.to_thread(_load, copy.home / "mutants.json", key)
                if kept is None:
                    kept = await self._discover(copy, plan, serves)
                    await asyncio.to_thread(_save, copy.home / "mutants.json", key, kept)
                self._key, self._found = key, Found(kept, serves, copy.content)
            return self._found

    async def aclose(self) -> None:
        """End the server, and let others have the copy."""
        async with self._turn:
            await self._warm.aclose()
            await self._claim.aclose()

    async def _discover(self, copy: PrivateCopy, plan: Plan, serves: bool) -> Mapping[str, tuple[Mutant, ...]]:
        found: dict[str, dict[Mutant, None]] = {}
        for base in plan.bases:
            plan.check(base)
            listed = await (self._ask(copy, plan, base) if serves else self._run(copy, plan, base))
            for mutant in listed:
                found.setdefault(mutant.path, {}).setdefault(mutant)  # two test projects may share one under test
        return {path: tuple(mutants) for path, mutants in sorted(found.items())}

    async def _ask(self, copy: PrivateCopy, plan: Plan, base: Base) -> list[Mutant]:
        async with self._warm.server(copy, base.directory, plan.server(base, copy)) as server:
            answer = await server.discover()
        return await served.mutants(answer, copy.path, base.directory)

    async def _run(self, copy: PrivateCopy, plan: Plan, base: Base) -> list[Mutant]:
        output = await asyncio.to_thread(copy.output)
        command = plan.command(base, copy, output, patterns.discovering(plan.configuration(base)), live=False)
        async with Run.of(command, copy, base.directory, output) as run:
            report = await run.report()
        return [mutant for mutant, _ in await report.mutants(base.directory)]


def _key(copy: PrivateCopy, plan: Plan, serves: bool) -> str:
    """What the mutants depend on."""
    return f"{VERSION} {serves} {copy.content} {plan.key}"


def _load(file: Path, key: str) -> Mapping[str, tuple[Mutant, ...]] | None:
    try:
        kept = json.loads(file.read_bytes())
        if kept["key"] != key:
            return None
        return {path: tuple(_mutant(path, row) for row in rows) for path, rows in kept["files"].items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.debug("no mutants are kept in %s: %r", file, error)
        return None


def _save(file: Path, key: str, found: Mapping[str, tuple[Mutant, ...]]) -> None:
    rows = {path: [_row(mutant) for mutant in mutants] for path, mutants in found.items()}
    fresh = file.with_suffix(".new")
    with contextlib.suppress(OSError):  # then it is found out again the next time
        fresh.write_text(json.dumps({"key": key, "files": rows}), encoding="ascii")
        fresh.replace(file)


def _row(mutant: Mutant) -> list[Any]:
    start, end = mutant.location.start, mutant.location.end
    place = [start.line, start.column, end.line, end.column]
    return [mutant.mutator, place, mutant.replacement, mutant.description, mutant.handle]


def _mutant(path: str, row: list[Any]) -> Mutant:
    mutator, (line, column, last_line, last_column), replacement, description, handle = row
    location = Location(Position(line, column), Position(last_line, last_column))
    return Mutant(path, mutator, location, replacement, description, handle)

"""Listing: which mutants are shown; ResultsOnDisk: where they are read; Retesting: how they are tested again.

One test runs at a time (`Retesting`). What one program tests is one kept run, which grows.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

from attrs import define, evolve, field, frozen

from msp_bridge.concurrency import cancel_all
from msp_bridge.errors import BaselineError, BridgeError, CommandLineError, SeveralErrors
from msp_bridge.isolation.left_out import ACCEPTED
from msp_bridge.last_results import KeptRun, KnownResults
from msp_bridge.model import Mutant, Result, Status
from msp_bridge.notices import PhaseReport, Told, UnusableFile
from msp_bridge.phases import batches
from msp_bridge.reports.kept import LastResult, last_results
from msp_bridge.reports.results import Score, by_file, worst_first
from msp_bridge.reports.standard import report
from msp_bridge.reports.terminal import Sources
from msp_bridge.workspace.selection import Selection
from msp_bridge.workspace.workspace import Workspace

MISSED = frozenset(status for status in Status if status.undetected)
RANK = {status: (not status.undetected, at) for at, status in enumerate(Status)}  # what the tests miss comes first
Look = tuple[object, ...]
log = logging.getLogger(__name__)

MAX_NAMED = 10  # failing tests


def status_of(last: LastResult) -> Status:
    """The status; cheaper than `last.result`, which is made anew each time."""
    return last.entry.result.status


@frozen
class Filter:
    """Which mutants are shown: of these statuses (None: of each), and with `text` somewhere; case doesn't count."""

    statuses: frozenset[Status] | None = MISSED
    text: str = ""

    @property
    def name(self) -> str:
        """The statuses in words."""
        if self.statuses is None:
            return "all"
        if self.statuses == MISSED:
            return "missed"
        return ", ".join(status.value for status in Status if status in self.statuses)


@frozen
class FileResults:
    """A file with the score of all its mutants, and the mutants that are shown."""

    path: str
    score: Score
    shown: tuple[LastResult, ...]


@frozen
class Listing:
    """The last results of a project, or of a part of it.

    What is tested again keeps its place, and is still shown, whatever its status is now: mutants are chosen and ordered
    by the statuses that were `seen` at first, by id. So no row goes away from under the user's cursor.
    """

    results: Sequence[LastResult]
    seen: Mapping[str, Status] = field(factory=dict)

    @cached_property
    def score(self) -> Score:
        """The score of all."""
        return Score.of(last.entry.result for last in self.results)

    def followed_by(self, results: Sequence[LastResult]) -> Listing:
        """Newer results, in the order of these."""
        return Listing(results, {**{last.mutant.id: status_of(last) for last in self.results}, **self.seen})

    def with_results(self, results: Mapping[str, LastResult]) -> Listing:
        """The same with some newer results, by id."""
        return self.followed_by(list({**{last.mutant.id: last for last in self.results}, **results}.values()))

    def files(self, filter: Filter) -> list[FileResults]:
        """The files in which most is missed first; of each, what `filter` takes."""
        found = (
            FileResults(path, score, tuple(last for last, text in mutants if self._takes(filter, last, text)))
            for path, score, mutants in self._ordered
        )
        return [file for file in found if file.shown]

    @cached_property
    def _ordered(self) -> list[tuple[str, Score, list[tuple[LastResult, str]]]]:
        """Each file with its mutants in their order, and what is searched first in each of them."""
        mutants: dict[str, list[tuple[LastResult, str]]] = {}
        for last in sorted(self.results, key=self._order):
            text = f"{last.mutant.path}\n{last.mutant.mutator}\n{last.mutant.id}\n{last.entry.diff_text}".casefold()
            mutants.setdefault(last.mutant.path, []).append((last, text))
        scores = by_file(last.entry.result for last in self.results)
        order = worst_first(evolve(last.entry.result, status=self._seen(last)) for last in self.results)
        return [(path, scores[path], mutants[path]) for path, _ in order]

    def _seen(self, last: LastResult) -> Status:
        return self.seen.get(last.mutant.id) or status_of(last)

    def _order(self, last: LastResult) -> tuple[object, ...]:
        mutant = last.mutant
        return RANK[self._seen(last)], mutant.location.start, mutant.mutator, mutant.replacement

    def _takes(self, filter: Filter, last: LastResult, text: str) -> bool:
        if filter.statuses is not None and filter.statuses.isdisjoint((status_of(last), self._seen(last))):
            return False
        wanted, result = filter.text.casefold(), last.entry.result
        if wanted in text:
            return True
        return any(wanted in test.casefold() for test in (*(result.killed_by or ()), *(result.covered_by or ())))


@define(eq=False)
class ResultsOnDisk:
    """The last results of the project at `root`, of these paths and of this mutator."""

    root: Path
    paths: Sequence[str] = ()
    mutator: str | None = None
    _sources: tuple[Path, ...] = ()
    _seen: Look | None = None

    def load(self) -> list[LastResult]:
        """Read them. Raises ConfigurationError."""
        known, self._seen = KnownResults(self.root), self._look()
        self._sources = tuple(self.root / path for path in known.report["files"])
        self._seen = self._look()  # before the files are read: what comes later is seen by the next look
        return known.wanted(self.paths, mutator=self.mutator)

    def fresh(self, results: Sequence[Result]) -> list[LastResult]:
        """Results that have just come, as `load` would have them. Raises ConfigurationError."""
        judged = KnownResults(self.root).accepted.judged_report(report(self.root, results))
        return last_results(judged, Sources(self.root).of)

    def changed(self) -> bool:
        """Whether `load` could find other results than the last time."""
        return self._look() != self._seen

    def accept(self, last: LastResult, reason: str) -> None:
        """Accept a survivor. Raises ConfigurationError."""
        if not KnownResults(self.root).accept([last], reason):
            raise CommandLineError("it is accepted already")

    def _look(self) -> Look:
        runs = KnownResults(self.root).kept.directory
        return tuple(_state(file) for file in (runs, self.root / ACCEPTED, *self._sources))


def _state(file: Path) -> Look:
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


class Watcher(Protocol):
    """Shows a test while it runs."""

    def show_phase(self, phase: PhaseReport) -> None:
        """Show what the tool is busy with."""

    def show_results(self, results: Sequence[Result]) -> None:
        """Show results as they come."""

    def show_end(self, problem: str) -> None:
        """Show that the test has ended; with an error, if `problem` is not empty. The results are kept."""


@define(eq=False)
class Retesting:
    """The tests of one program. Use `aclose` at its end."""

    root: Path
    _open: Callable[[], Workspace]
    _workspace: Workspace | None = None
    _task: asyncio.Task[None] | None = None
    _kept: KeptRun = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Begin a run."""
        self._kept = KeptRun(self.root)

    @property
    def running(self) -> bool:
        """Whether a test runs."""
        return self._task is not None and not self._task.done()

    def start(self, selection: Selection, watcher: Watcher) -> None:
        """Begin to test `selection`, when none is being tested."""
        if not self.running:
            self._task = asyncio.create_task(self._run(selection, watcher), name="testing again")

    async def stop(self) -> None:
        """End the test that runs; returns when its processes have ended. What it has found is kept."""
        if self._task is not None:
            await cancel_all([self._task])

    async def aclose(self) -> None:
        """End the test that runs, and the tools' warm processes."""
        await self.stop()
        if self._workspace is not None:
            await self._workspace.aclose()

    async def _run(self, selection: Selection, watcher: Watcher) -> None:
        found: dict[Mutant, Result] = {}
        errors: list[BridgeError] = []
        try:
            await self._test(selection, watcher, found, errors)
        except BridgeError as error:
            errors += error.errors if isinstance(error, SeveralErrors) else [error]
        except Exception as error:
            log.debug("unexpected", exc_info=True)
            remedy = "this is a fault of the bridge or an adapter; please report it"
            errors.append(BridgeError(f"{type(error).__name__}: {error}", remedy))
        finally:
            try:
                self._kept.add(tuple(found.values()))
            except BridgeError as error:
                errors.append(error)
            self._task = None
            watcher.show_end("\n\n".join(map(_said, errors)))

    async def _test(
        self, selection: Selection, watcher: Watcher, found: dict[Mutant, Result], errors: list[BridgeError]
    ) -> None:
        if self._workspace is None:
            self._workspace = self._open()
        told = Told(watcher.show_phase)
        async with contextlib.aclosing(batches(self._workspace.test(selection, anew=True), told.tell)) as tested:
            async for batch in tested:
                found |= {result.mutant: result for result in batch}
                watcher.show_results(batch)
        errors += told.failures
        errors += (file.error for file in told.of(UnusableFile))


def _said(error: BridgeError) -> str:
    """The error; of tests that fail without a mutant also their names, and what the first one prints."""
    if not isinstance(error, BaselineError):
        return str(error)
    return "\n".join([str(error), *error.failing[:MAX_NAMED], error.first_failure]).strip()

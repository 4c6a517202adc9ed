"""Retesting: tests mutants again beside the program on the screen, with tools that stay warm, and keeps the results.

One test runs at a time. What one program tests is one kept run, which grows.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from attrs import define, field

from msp_bridge.concurrency import cancel_all
from msp_bridge.errors import BaselineError, BridgeError, SeveralErrors
from msp_bridge.last_results import KeptRun
from msp_bridge.model import Mutant, Result
from msp_bridge.notices import PhaseReport, Told, UnusableFile
from msp_bridge.phases import batches
from msp_bridge.workspace.selection import Selection
from msp_bridge.workspace.workspace import Workspace

log = logging.getLogger(__name__)

MAX_NAMED = 10  # failing tests


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

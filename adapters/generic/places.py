"""Places: where the runs of a tool happen, one at a time in each.

A tool that writes into the project runs in a copy, which `toolkit.Isolation` puts at the project's own path where it
can. The tool then knows the copy by the project's path: `RunPlace.seen`.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from msp_bridge.adapter import Project
from msp_bridge.concurrency import in_thread
from msp_bridge.toolkit import Isolation, Sandbox, SandboxPool, WarmSandbox

ENVIRONMENTS = ("node_modules", ".venv", "venv")


@frozen
class RunPlace:
    """Where one run happens."""

    root: Path  # of the project, or of its private copy
    directory: Path  # private, outside the project, and empty when the run begins
    seen: Path  # the root as the tool knows it
    isolation: Isolation | None = None  # of the copy
    warm: WarmSandbox[Sandbox, Any] | None = None  # which the copy belongs to

    @property
    def isolated(self) -> Isolation | None:
        """The isolation of the next run; None: it runs in the copy where it lies, or in the project."""
        return self.isolation if self.isolation is not None and self.isolation.is_on else None

    @property
    def outside(self) -> RunPlace:
        """The same place without isolation."""
        return evolve(self, seen=self.root, isolation=None)

    async def renew(self) -> None:
        """Undo what a run has written here."""
        await in_thread(_make_empty, self.directory)
        if self.warm is not None:
            await self.warm.refresh()


class Places:
    """Each belongs to one run at a time, whichever bridge runs it."""

    def __init__(self, project: Project, *, environments: bool = False) -> None:
        self._project = project
        claim = partial(Sandbox.claim, project.cache, project.root)
        if environments:
            claim = partial(claim, "whole", included=frozenset(ENVIRONMENTS))
        self._copies: SandboxPool[Sandbox, Any] = SandboxPool(claim)

    @contextlib.asynccontextmanager
    async def lease(self, isolation: Isolation | None) -> AsyncIterator[RunPlace]:
        """A place. With `isolation` it is a copy of the project as it is now; else the project itself.

        Raises `ToolError` for want of room.
        """
        async with self._copies.lease() as warm:
            directory = warm.sandbox.path.parent / "msp-bridge-report"
            root = self._project.root
            if isolation is None:
                place = RunPlace(root, directory, root)
            else:
                copy = warm.sandbox.path
                await isolation.probe()
                place = RunPlace(copy, directory, isolation.root if isolation.is_on else copy, isolation, warm)
            await place.renew()
            yield place

    async def aclose(self) -> None:
        """Let other bridges have them."""
        await self._copies.aclose()


def _make_empty(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True, exist_ok=True)

"""Places: private directories to run in, as many as there are runs at once, each kept for the next run."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

from attrs import frozen

from msp_bridge.adapter import Project
from msp_bridge.concurrency import in_thread
from msp_bridge.toolkit import Sandbox, SandboxPool


@frozen
class Place:
    """Where one run happens."""

    root: Path  # of the project, or of its private copy
    directory: Path  # private, outside the project, and empty when the run begins


class Places:
    """Each belongs to one run at a time, whichever bridge runs it."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._copies: SandboxPool[Sandbox, Any] = SandboxPool(partial(Sandbox.claim, project.cache, project.root))

    @contextlib.asynccontextmanager
    async def lease(self, *, copy: bool) -> AsyncIterator[Place]:
        """A place; with `copy`, one with a copy of the project as it is now. Raises `ToolError` for want of room."""
        async with self._copies.lease() as warm:
            directory = warm.sandbox.path.parent / "report"
            await in_thread(_make_empty, directory)
            if copy:
                await warm.refresh()
            yield Place(warm.sandbox.path if copy else self._project.root, directory)

    async def aclose(self) -> None:
        """Let other bridges have them."""
        await self._copies.aclose()


def _make_empty(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True, exist_ok=True)

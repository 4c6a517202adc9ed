"""Places: private directories to run in, as many as there are runs at once, each kept for the next run."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from attrs import frozen

from msp_bridge.adapter import Project
from msp_bridge.ended import ended
from msp_bridge.shadow import ShadowWorkspace


@frozen
class Place:
    """Where one run happens."""

    root: Path  # of the project, or of its private copy
    directory: Path  # private, outside the project, and empty when the run begins


class Places:
    """Each belongs to one run at a time, whichever bridge runs it."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._idle: list[ShadowWorkspace] = []

    @contextlib.asynccontextmanager
    async def taken(self, *, copy: bool) -> AsyncIterator[Place]:
        """A place; with `copy`, one with a copy of the project as it is now. Raises `ToolError` for want of room."""
        shadow = self._idle.pop() if self._idle else await self._claim()
        try:
            directory = shadow.path.parent / "report"
            await _in_thread(_make_empty, directory)
            if copy:
                await asyncio.to_thread(shadow.refresh)
            yield Place(shadow.path if copy else self._project.root, directory)
        finally:
            self._idle.append(shadow)

    async def aclose(self) -> None:
        """Let other bridges have them."""
        while self._idle:
            await asyncio.to_thread(self._idle.pop().close)

    async def _claim(self) -> ShadowWorkspace:
        claimed: list[ShadowWorkspace] = []

        def claim() -> None:
            claimed.append(ShadowWorkspace.claim(self._project.cache, self._project.root))

        try:
            await _in_thread(claim)
        except asyncio.CancelledError:
            self._idle += claimed
            raise
        return claimed[0]


async def _in_thread(function: Callable[..., None], *arguments: object) -> None:
    """Returns when it is done, also when cancelled: what a place is made of must not change under the next run."""
    task = asyncio.create_task(asyncio.to_thread(function, *arguments), name="preparing a place")
    await ended(task)
    task.result()


def _make_empty(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True, exist_ok=True)

"""Builds: directories for cargo's build results, kept so that a small request needn't build all dependencies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from msp_bridge.adapter import Project
from msp_bridge.ended import ended
from msp_bridge.shadow import ShadowWorkspace

MOST = 4 << 30  # bytes: a directory that has grown beyond is deleted


class Builds:
    """Each directory belongs to one run at a time, whichever bridge runs it.

    What cargo keeps of packages in cargo-mutants' copies is never taken for that of a later copy: the files there are
    written anew for each run, and so newer than what was built before. Dependencies stay as they are.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._idle: list[ShadowWorkspace] = []
        self.suit = True  # whether the project's tests pass with build results elsewhere than in `target`

    @contextlib.asynccontextmanager
    async def taken(self) -> AsyncIterator[Path]:
        """A directory; raises `ToolError` when all are in use, or none can be made."""
        slot = self._idle.pop() if self._idle else await self._claim()
        directory = slot.path.parent / "target"
        try:
            yield directory
            await _in_thread(_limit, directory)
        finally:
            self._idle.append(slot)

    async def aclose(self) -> None:
        """Let other bridges have them."""
        while self._idle:
            await asyncio.to_thread(self._idle.pop().close)

    async def _claim(self) -> ShadowWorkspace:
        claimed: list[ShadowWorkspace] = []

        def claim() -> None:
            claimed.append(ShadowWorkspace.claim(self._project.cache, self._project.root, "build"))

        try:
            await _in_thread(claim)
        except asyncio.CancelledError:
            self._idle += claimed
            raise
        return claimed[0]


async def _in_thread(function: Callable[..., None], *arguments: object) -> None:
    """Returns when it is done, also when cancelled: a directory must not change under the next run."""
    task = asyncio.create_task(asyncio.to_thread(function, *arguments), name="work on a directory for builds")
    await ended(task)
    task.result()


def _limit(directory: Path) -> None:
    sizes = (os.lstat(os.path.join(parent, name)).st_size for parent, _, names in os.walk(directory) for name in names)
    if sum(sizes) > MOST:
        shutil.rmtree(directory, ignore_errors=True)

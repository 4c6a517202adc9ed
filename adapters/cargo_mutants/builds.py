"""Builds: directories for cargo's build results, kept so that a small request needn't build all dependencies."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

from msp_bridge.adapter import Project
from msp_bridge.concurrency import in_thread
from msp_bridge.toolkit import Sandbox, SandboxPool

MOST = 4 << 30  # bytes: a directory that has grown beyond is deleted


class Builds:
    """Each directory belongs to one run at a time, whichever bridge runs it.

    What cargo keeps of packages in cargo-mutants' copies is never taken for that of a later copy: the files there are
    written anew for each run, and so newer than what was built before. Dependencies stay as they are.
    """

    def __init__(self, project: Project) -> None:
        # Nothing is copied: cargo-mutants does that itself.
        self._places: SandboxPool[Sandbox, Any] = SandboxPool(
            partial(Sandbox.claim, project.cache, project.root, "build")
        )
        self.suit = True  # whether the project's tests pass with build results elsewhere than in `target`

    @contextlib.asynccontextmanager
    async def lease(self) -> AsyncIterator[Path]:
        """A directory; raises `ToolError` when all are in use, or none can be made."""
        async with self._places.lease() as place:
            directory = place.sandbox.path.parent / "target"
            yield directory
            await in_thread(_limit, directory)

    async def aclose(self) -> None:
        """Let other bridges have them."""
        await self._places.aclose()


def _limit(directory: Path) -> None:
    sizes = (os.lstat(os.path.join(parent, name)).st_size for parent, _, names in os.walk(directory) for name in names)
    if sum(sizes) > MOST:
        shutil.rmtree(directory, ignore_errors=True)

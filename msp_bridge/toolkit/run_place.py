"""Places: where the runs of a command happen, one at a time in each.

A command that writes into the project runs in a copy, which `Isolation` puts at the project's own path where it can.
The command then knows the copy by the project's path: `RunPlace.seen`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from msp_bridge.concurrency import in_thread
from msp_bridge.processes import ProcessTree
from msp_bridge.toolkit.isolation import Around, Isolation, left_out, own_tmpdir
from msp_bridge.toolkit.pool import SandboxPool, WarmSandbox
from msp_bridge.toolkit.sandbox import Sandbox

Copy = WarmSandbox[Sandbox, Any]


@define(eq=False)
class RunPlace:
    """Where one run happens: in the project, or in a private copy of it, which is kept for later runs."""

    root: Path  # of the project, or of its private copy
    directory: Path  # private, outside the project, and empty when the place was renewed
    isolation: Isolation | None = None  # of the copy
    copy: Copy | None = None
    request: object = None  # for which it was renewed
    is_clean: bool = False  # since then all runs have ended by themselves
    _proven: tuple[object, Hashable] = (None, None)
    _left_out: Sequence[str] = field(default=(), init=False)

    @property
    def isolated(self) -> Isolation | None:
        """The isolation of the next run; None: it runs in the copy where it lies, or in the project."""
        return self.isolation if self.isolation is not None and self.isolation.is_on else None

    @property
    def seen(self) -> Path:
        """The root as the next run knows it."""
        return self.root if self.isolated is None else self.isolated.root

    @property
    def outside(self) -> RunPlace:
        """The same place without isolation."""
        return evolve(self, isolation=None)

    @property
    def proven(self) -> Hashable:
        """The last proof that was made in this copy (`CommandProof`); None once the copy was made anew."""
        identity, proof = self._proven
        return proof if self.copy is not None and identity == self.copy.sandbox.identity else None

    @proven.setter
    def proven(self, proof: Hashable) -> None:
        self._proven = (None if self.copy is None else self.copy.sandbox.identity, proof)

    async def renew(self) -> None:
        """Make the copy equal to the project as it is now, and undo what runs have written. Raises `ToolError`."""
        await in_thread(_make_empty, self.directory)
        if self.copy is not None:
            await self.copy.refresh()
        if self.isolation is not None:
            self._left_out = await in_thread(left_out, self.isolation.root, self.root)
        self.is_clean = True

    @contextlib.asynccontextmanager
    async def running(
        self, argv: Sequence[str], env: Mapping[str, str | None] | None = None
    ) -> AsyncIterator[ProcessTree]:
        """Run `argv` here, isolated or with temporary files of its own; it ends with the block."""
        isolation, changes = self.isolated, dict(env or {})
        async with contextlib.AsyncExitStack() as stack:
            if isolation is None:
                changes |= await stack.enter_async_context(own_tmpdir())
                # Python tests that reach the user's tree are refused when they have: they leave no bytecode there.
                changes.setdefault("PYTHONDONTWRITEBYTECODE", "1")
            else:
                around = Around(self._left_out)
                argv = await in_thread(isolation.command, self.root, argv, [self.directory], None, around)
            tree = ProcessTree.running(argv, cwd=self.root, env=changes, shell_status=isolation is not None)
            yield await stack.enter_async_context(tree)
            if isolation is not None:
                await in_thread(isolation.note, self.root.parent)


class RunPlaces:
    """The places of one project. Each belongs to one run at a time, whichever bridge runs it."""

    def __init__(self, root: Path, claim: Callable[[], Sandbox], *, max_idle: int | None = None) -> None:
        self._root = root
        self._copies: SandboxPool[Sandbox, Any] = SandboxPool(claim, max_idle=max_idle)

    @contextlib.asynccontextmanager
    async def lease(self, isolation: Isolation | None, request: object = None) -> AsyncIterator[RunPlace]:
        """A place. With `isolation` it is a copy of the project as it is now; else the project itself.

        A copy that was renewed for the same `request` is not renewed again. Raises `ToolError` for want of room.
        """
        async with self._copies.lease() as copy:
            directory = copy.sandbox.path.parent / "msp-bridge-report"
            if isolation is None:
                place = RunPlace(self._root, directory)
            else:
                await isolation.probe()
                place = copy.noted or RunPlace(copy.sandbox.path, directory, copy=copy)
                copy.noted, place.isolation = place, isolation
            if request is None or place.request is not request or not place.is_clean:
                await place.renew()
                place.request = request
            yield place

    async def aclose(self) -> None:
        """Let other bridges have the copies."""
        await self._copies.aclose()


def _make_empty(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory, exist_ok=True)

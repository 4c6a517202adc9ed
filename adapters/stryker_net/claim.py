"""Claim: a private copy that is taken when it is first needed, and given back at the end."""

from __future__ import annotations

import asyncio

from msp_bridge.adapter import Project

from .copy import PrivateCopy


class Claim:
    """One copy called `name`, however often it is asked for, and by whomever."""

    def __init__(self, project: Project, name: str) -> None:
        self._project, self._name = project, name
        self._claiming: asyncio.Task[PrivateCopy] | None = None

    async def copy(self) -> PrivateCopy:
        """The copy; raises `ToolError` when none can be had, and tries anew the next time."""
        if self._claiming is None or (self._claiming.done() and self._claiming.exception() is not None):
            claiming = asyncio.to_thread(PrivateCopy.claim, self._project, self._name)
            self._claiming = asyncio.create_task(claiming, name="claiming a private copy")
        return await asyncio.shield(self._claiming)  # who is cancelled meanwhile leaves it for the next

    async def aclose(self) -> None:
        """Let other processes have it."""
        if self._claiming is not None:
            await asyncio.wait([self._claiming])
            if self._claiming.exception() is None:
                await asyncio.to_thread(self._claiming.result().close)
            self._claiming = None

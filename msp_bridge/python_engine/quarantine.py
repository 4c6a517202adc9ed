"""Quarantine: who was there when a host ended is tested again without company, so that only the guilty mutant pays."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Quarantine:
    """Room for any number of mutants, or for one suspect alone.

    Suspects go first: those are the ones that were being tested when the host ended, so a newcomer waits for a few.
    """

    def __init__(self) -> None:
        self._present = self._suspects = 0  # suspects: waiting or present
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def place(self, *, suspect: bool) -> AsyncIterator[None]:
        """A block in which a mutant is tested, a suspect with nobody else."""
        self._suspects += suspect
        try:
            while self._present if suspect else self._suspects:
                await self._changed.wait()
            self._present += 1
            try:
                yield
            finally:
                self._present -= 1
        finally:
            self._suspects -= suspect
            self._changed.set()  # whoever waits looks again
            self._changed = asyncio.Event()

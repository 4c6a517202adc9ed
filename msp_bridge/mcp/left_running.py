"""Work that goes on after its call has ended: a discovery, and the first run of all tests.

Theory of operation
-------------------
The problem. The usual clients give up on a call after 60 s, whatever progress it reports. A large suite takes longer to
run without mutants. If the end of the call ended that run, too, each call would begin it anew, and none would ever see
a verdict.

The way out. The work of a call is a task of its own. When its call ends before it (a cancel, or the call's limit),
the work goes on while what it does is `worth_keeping`: until the mutants are listed, or the first mutant is tested.
The tool is warm then, and the next call goes on from there. Else the work is ended at once.

The bounds. At most `MAX_LEFT` works go on; one more ends the oldest. A call that tests waits for the ones that go on,
instead of doing the same beside them. `aclose` ends all.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from attrs import define, field

from msp_bridge.concurrency import cancel_all

log = logging.getLogger(__name__)

MAX_LEFT = 2


@define(eq=False)
class Work:
    """Says whether what a call has begun is worth keeping. A work that is `left` ends itself when it is no longer."""

    worth_keeping: bool = field(default=False, kw_only=True)
    left: bool = field(default=False, init=False)  # its call has ended


@define(eq=False)
class LeftRunning:
    """Keeps the works of one server whose calls have ended.

    Cancelling: `finished` returns when the work has ended, or goes on here.
    """

    _left: list[asyncio.Task[Any]] = field(factory=list)

    async def finished(self, work: Work, doing: Coroutine[Any, Any, None], max_seconds: float | None = None) -> bool:
        """Do the work, and return whether that took less than `max_seconds`. Raises what it raises."""
        task = asyncio.create_task(doing, name="work of a call")
        try:
            await asyncio.wait([task], timeout=max_seconds)
        except asyncio.CancelledError:
            await self._leave(work, task)
            raise
        if not task.done():
            await self._leave(work, task)
            return False
        task.result()
        return True

    async def others(self) -> None:
        """Wait for the works that go on, however they end."""
        if self._left:
            await asyncio.wait(list(self._left))

    async def aclose(self) -> None:
        """End all; returns when their processes have ended."""
        await cancel_all(list(self._left))

    async def _leave(self, work: Work, task: asyncio.Task[Any]) -> None:
        work.left = True
        if not work.worth_keeping:
            await cancel_all([task])
            return
        self._left.append(task)
        task.add_done_callback(self._ended)
        await cancel_all(self._left[:-MAX_LEFT])

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._left.remove(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.info("work that went on after its call failed: %s", error)  # the next call meets it, too

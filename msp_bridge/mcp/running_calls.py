"""RunningCalls: each call in a task of its own, which is cancelled once, and ends when its client is gone for good.

Theory of operation
-------------------
*The cancel.* The SDK cancels by the scopes of anyio: the task gets a CancelledError at every await until it has left
the scope. Our generators await while they end processes, and expect one. So a call runs in a task of its own, which is
cancelled once, and the SDK's task waits for its end, shielded. When a cancelled call is over, its processes are, too.

*The client that is gone.* On stdio the end of stdin ends the server. Over HTTP a session outlives its connections: a
client may lose one, and come back. So the calls of a session are cancelled when none of its requests has been open for
`GONE_S`. The session itself stays: it costs nothing, and clients do not expect to begin anew after a silence.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import anyio
from mcp import MCPError

from msp_bridge.concurrency import shielded
from msp_bridge.jsonrpc.connection import MAX_OPEN
from msp_bridge.jsonrpc.messages import ErrorCode

log = logging.getLogger(__name__)

GONE_S = 30.0  # after the last open request of a session

T = TypeVar("T")


class RunningCalls:
    """The calls of all clients of a server. `session` is that of a call over HTTP; None where a call is not of one.

    Cancelling: `finished` returns when the call has ended.
    """

    def __init__(self) -> None:
        self._sessions: dict[asyncio.Task[Any], str | None] = {}
        self._attending = Counter[str]()  # open requests of each session
        self._leaving: dict[str, asyncio.TimerHandle] = {}

    async def finished(self, session: str | None, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of `work`. Raises what it raises, and MCPError if there are too many, or it was ended."""
        if len(self._sessions) >= MAX_OPEN:
            work.close()
            raise MCPError(ErrorCode.REQUEST_FAILED, f"{MAX_OPEN} calls are running; wait for one, or cancel it")
        task = asyncio.create_task(work, name="call")
        self._sessions[task] = session
        self._watch(session)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await self._ended([task])
            raise
        finally:
            del self._sessions[task]
        if task.cancelled():
            raise MCPError(
                ErrorCode.REQUEST_CANCELLED, "the call was cancelled: its client was gone, or the server ends"
            )
        return task.result()

    @contextlib.contextmanager
    def attended(self, session: str) -> Iterator[None]:
        """Count a request of `session` as open while the block runs."""
        self._attending[session] += 1
        if (leaving := self._leaving.pop(session, None)) is not None:
            leaving.cancel()
        try:
            yield
        finally:
            self._attending[session] -= 1
            self._watch(session)

    async def aclose(self) -> None:
        """Cancel all; returns when their processes have ended."""
        for leaving in self._leaving.values():
            leaving.cancel()
        await self._ended([*self._sessions])

    def _watch(self, session: str | None) -> None:
        """Have the calls of `session` end later, unless one of its requests is open."""
        if session is None or self._attending[session] > 0:
            return
        del self._attending[session]
        if session in self._sessions.values() and session not in self._leaving:
            loop = asyncio.get_running_loop()
            self._leaving[session] = loop.call_later(GONE_S, self._end, session)

    def _end(self, session: str) -> None:
        del self._leaving[session]
        for task, of in self._sessions.items():
            if of == session:
                log.info("a client has been gone for %g s: its call is cancelled", GONE_S)
                _cancel(task)

    async def _ended(self, tasks: list[asyncio.Task[Any]]) -> None:
        for task in tasks:
            _cancel(task)
        if tasks:
            await shielded(asyncio.wait(tasks))


def _cancel(task: asyncio.Task[Any]) -> None:
    if not task.cancelling():
        task.cancel()

"""RunningCalls: each call in a task of its own, cancelled once; what goes on after a call, and how far a call is.

Theory of operation
-------------------
*The cancel.* The SDK cancels by the scopes of anyio: the task gets a CancelledError at every await until it has left
the scope. Our generators await while they end processes, and expect one. So a call runs in a task of its own, which is
cancelled once, and the SDK's task waits for its end, shielded. When a cancelled call is over, its processes are, too.

*The client that is gone.* On stdio the end of stdin ends the server. Over HTTP a session outlives its connections: a
client may lose one, and come back. So the calls of a session are cancelled when none of its requests has been open for
`GONE_S`. The session itself stays: it costs nothing, and clients do not expect to begin anew after a silence.

*Work that goes on after its call has ended.* The usual clients give up on a call after 60 s, whatever progress it
reports. A large suite takes longer to run without mutants. If the end of the call ended that run, too, each call would
begin it anew, and none would ever see a verdict. So the work of a call is a task of its own. When its call ends before
it (a cancel, or the call's limit), the work goes on while what it does is `worth_keeping`: until the mutants are
listed, or the first mutant is tested. The tool is warm then, and the next call goes on from there. Else the work is
ended at once. At most `MAX_LEFT` works go on; one more ends the oldest. A call that tests waits for the ones that go
on, instead of doing the same beside them. `aclose` ends all.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar

import anyio
from attrs import define, field
from mcp import MCPError

from msp_bridge.concurrency import at_most, cancel_all, meanwhile, shielded
from msp_bridge.jsonrpc.connection import MAX_OPEN
from msp_bridge.jsonrpc.messages import ErrorCode
from msp_bridge.notices import PhaseReport

log = logging.getLogger(__name__)

GONE_S = 30.0  # after the last open request of a session

T = TypeVar("T")
BEAT_S = 1.0  # between two reports of progress

Report = Callable[[float, float | None, str], Awaitable[None]]  # progress, total, message
MAX_LEFT = 2


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


class CallProgress:
    """Reports how far a call is, once a second, also while nothing is found: clients give up on silent calls.

    MCP wants each report to have a greater number than the one before. Between two results the number comes nearer and
    nearer to the next one.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._beats, self._last = 0, -1.0
        self._done, self.total = 0, 0
        self.message = "looking for mutants"

    @contextlib.asynccontextmanager
    async def reported(self) -> AsyncIterator[None]:
        """While the block runs, and at its end.

        A report that is on its way then is not cancelled: whether the client got it would not be known.
        """
        over = asyncio.Event()
        async with meanwhile(self._beat(over), "progress") as beating:
            yield
            over.set()
            await beating

    def step(self, message: str) -> None:
        """One more is done."""
        self._done, self._beats, self.message = self._done + 1, 0, message

    def show_phase(self, phase: PhaseReport) -> None:
        """Say what is done until the first result."""
        if not self._done:
            self.message = str(phase)

    async def _beat(self, over: asyncio.Event) -> None:
        is_last = False
        while not is_last:
            is_last = over.is_set()
            await self._send()
            self._beats += 1
            async with at_most(BEAT_S):
                await over.wait()

    async def _send(self) -> None:
        complete = self.total and self._done == self.total
        now = self._done if complete else self._done + 1 - 1 / (self._beats + 1)
        if now > self._last:
            self._last = now
            await self._report(now, self.total or None, self.message)


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

"""Sandboxes that are leased for one piece of work at a time, and the processes that stay warm beside them.

Theory of operation
-------------------
The problem. A tool needs a private copy of the project (`Sandbox`), and a process in it that is expensive to start.
Both are worth keeping for the next request. A request may be cancelled at any await: before the copy is claimed,
while a thread claims or updates it, while the process starts, in the middle of its work. Nothing may leak: no lock on
a copy, no process, no half-updated copy that counts as good.

The states. A sandbox is *idle* (in the pool, locked for this bridge), *leased* (in use by one `lease` block), or
*closed* (unlocked; another bridge may claim it). A warm process is absent, running, or closed.

The invariants.

- Whatever blocks runs in a thread that is waited for, also by a task that is cancelled: `asyncio.to_thread` alone
  would leave the thread running, with nobody to take the lock that it obtains. A claim that ends after the cancel
  becomes an idle sandbox.
- An update can be stopped between two files (`stop`), so that a cancel doesn't wait for the copy of a large tree. A
  stopped update has noted nothing, and the next one looks at every file again.
- A block that fails or is cancelled ends the process of its sandbox, because its state is unknown.
- A process stays in the directory in which it was started, even when that directory was deleted and made anew. So a
  warm process is replaced when the identity of its directory changes, and when `key` changes: whatever it has read
  for good.
- After `aclose` nothing is idle. What is still leased loses its process at once, and is closed when its block is
  left.
"""

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from threading import Event
from typing import Any, Generic, Protocol, TypeVar

from attrs import define, field

from msp_bridge.concurrency import in_thread, shielded, shields
from msp_bridge.toolkit.slot import make_empty


class SandboxLike(Protocol):
    """A `Sandbox`, or an adapter's own class around one or several. All methods block."""

    @property
    def identity(self) -> object:
        """Changes when the directory was made anew. Cheap."""

    def refresh(self, stop: Event | None = None) -> frozenset[str]:
        """Implement `Sandbox.refresh`."""

    def close(self) -> None:
        """Implement `Sandbox.close`."""


@define(eq=False)
class PrivateDirectory:
    """In place of a sandbox, for a process that needs no copy: `path`, which is deleted in the end."""

    path: Path = field(factory=lambda: Path(tempfile.mkdtemp(prefix="msp-bridge-")), init=False)
    identity: object = field(default=None, init=False)

    def refresh(self, _: Event | None = None) -> frozenset[str]:
        """Make it anew, for another process."""
        make_empty(self.path)
        return frozenset()

    def close(self) -> None:
        """Delete it."""
        shutil.rmtree(self.path, ignore_errors=True)


class Process(Protocol):
    """A process that can be kept warm: `JsonLinesProcess`, or an adapter's own class around a process."""

    @property
    def closed(self) -> bool:
        """Whether it has ended, or is of no use any more."""

    async def close(self) -> None:
        """End it. Idempotent."""


S = TypeVar("S", bound=SandboxLike)
P = TypeVar("P", bound=Process)


class WarmProcess(Generic[P]):
    """One process that is kept from one use to the next, in a directory that `identity` identifies.

    It suits a sandbox's directory, and the user's own tree for a process that only reads.
    """

    def __init__(self, identity: Callable[[], object]) -> None:
        self._identity = identity
        self._process: P | None = None
        self._started_for: tuple[object, object] = (None, None)
        self._turn = asyncio.Lock()

    @property
    def current(self) -> P | None:
        """The process, while it runs."""
        return None if self._process is None or self._process.closed else self._process

    async def get(self, start: Callable[[], Awaitable[P]], key: object = None) -> P:
        """The process; started by `start` when there is none, or when its directory or `key` is another one.

        `start` ends what it started when it fails or is cancelled. Its errors are raised here.
        """
        async with self._turn:
            wanted = (self._identity(), key)
            process = self.current
            if process is None or self._started_for != wanted:
                await self._end()
                self._process = process = await start()
                self._started_for = wanted
            return process

    def let_go(self, process: P) -> None:
        """Forget `process`, which the caller ends: `get` starts another one."""
        if self._process is process:
            self._process = None

    @shields
    async def close(self) -> None:
        """End the process; `get` may start another one. A cancel is raised when it has ended."""
        process, self._process = self._process, None  # first: `get` may be waiting for an answer of it
        if process is not None:
            await process.close()
        async with self._turn:  # one that was being started
            await self._end()

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await shielded(process.close())


class WarmSandbox(Generic[S, P]):
    """A sandbox and its process. The holder of the lease may use both; neither is up to date by itself."""

    def __init__(self, sandbox: S) -> None:
        self.sandbox = sandbox
        self.process: WarmProcess[P] = WarmProcess(lambda: sandbox.identity)
        self.noted: Any = None  # whatever its user wants to know of it at the next lease

    async def refresh(self) -> frozenset[str]:
        """Call `Sandbox.refresh` in a thread. A cancel stops it between two files."""
        stop = Event()
        return await in_thread(self.sandbox.refresh, stop, on_cancel=stop.set)

    @shields
    async def close(self) -> None:
        """End the process and give the sandbox back to the cache."""
        try:
            await self.process.close()
        finally:
            await in_thread(self.sandbox.close)


class SandboxPool(Generic[S, P]):
    """The sandboxes of one project in this bridge: as many as are leased at once, each kept for the next lease.

    Cancelling: safe at any await; see above.
    Resource handling: idle sandboxes stay claimed until `aclose`, at most `max_idle` of them.
    """

    def __init__(self, claim: Callable[[], S], *, max_idle: int | None = None) -> None:
        """`claim` claims another sandbox; it blocks, and raises `ToolError`: `partial(Sandbox.claim, home, source)`."""
        self._claim, self._max_idle = claim, max_idle
        self._idle: list[WarmSandbox[S, P]] = []
        self._leased: set[WarmSandbox[S, P]] = set()

    @contextlib.asynccontextmanager
    async def lease(self, prefer: Callable[[WarmSandbox[S, P]], Any] | None = None) -> AsyncIterator[WarmSandbox[S, P]]:
        """A sandbox that nobody else uses within the block: the one that was used last, of the idle ones.

        `prefer` gives a rank to an idle one: the highest is taken. Raises what `claim` raises.
        """
        warm = self._take(prefer) or await self._claimed()
        self._leased.add(warm)
        try:
            yield warm
        except BaseException:
            await warm.process.close()
            raise
        finally:
            self._leased.discard(warm)
            await self._give_back([warm])

    @shields
    async def aclose(self) -> None:
        """End all processes, and let other bridges have the sandboxes. A cancel is raised when that is done."""
        self._max_idle = 0
        try:
            await asyncio.gather(*(warm.process.close() for warm in self._leased))
        finally:
            await self._close_surplus(0)

    def _take(self, prefer: Callable[[WarmSandbox[S, P]], Any] | None) -> WarmSandbox[S, P] | None:
        if not self._idle:
            return None
        warm = self._idle[-1] if prefer is None else max(reversed(self._idle), key=prefer)
        self._idle.remove(warm)
        return warm

    async def _claimed(self) -> WarmSandbox[S, P]:
        claimed: list[S] = []
        try:
            await in_thread(lambda: claimed.append(self._claim()))
        except asyncio.CancelledError:
            await self._give_back([WarmSandbox(sandbox) for sandbox in claimed])
            raise
        return WarmSandbox(claimed[0])

    async def _give_back(self, warm: Sequence[WarmSandbox[S, P]]) -> None:
        self._idle += warm
        if self._max_idle is not None and len(self._idle) > self._max_idle:
            await shielded(self._close_surplus(self._max_idle))

    async def _close_surplus(self, keep: int) -> None:
        while len(self._idle) > keep:
            await self._idle.pop(0).close()

"""Work that must finish although its waiter is cancelled, streams taken whole or merged, and a lock to share."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Coroutine, Sequence
from typing import Any, ClassVar, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


async def shielded(work: Awaitable[T], on_cancel: Callable[[], None] | None = None) -> T:
    """Return the result of `work`, or raise its error. A cancel waits until it is done, and is raised then.

    This is the one way to finish in spite of a cancel; the functions below are uses of it. `on_cancel` is called at
    each cancel, to make the work end sooner.
    """
    task, cancelled = asyncio.ensure_future(work), None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
            if on_cancel is not None:
                on_cancel()
    if cancelled is None:
        return task.result()
    if not task.cancelled():
        task.exception()  # looked at, so that asyncio doesn't warn that nobody did
    raise cancelled


def shields(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Make each call of `function`, such as an `aclose`, finish in spite of a cancel (`shielded`)."""

    @functools.wraps(function)
    async def finish(*args: P.args, **kwargs: P.kwargs) -> T:
        return await shielded(function(*args, **kwargs))

    return finish


class LazyParts:
    """A class that makes its `parts` when they are asked for, as cached properties, and closes them."""

    parts: ClassVar[tuple[str, ...]] = ()  # their names; they are closed in this order

    @shields
    async def aclose(self) -> None:
        """Close every part that anybody has asked for. A cancel is raised when that is done."""
        async with contextlib.AsyncExitStack() as stack:
            for name in reversed(self.parts):
                if name in vars(self):
                    stack.push_async_callback(getattr(self, name).aclose)


async def in_thread(function: Callable[..., T], *arguments: object, on_cancel: Callable[[], None] | None = None) -> T:
    """Run `function`, which blocks, in a thread. A cancel waits until it is done, so that nobody begins meanwhile.

    `on_cancel` is called at a cancel, to make the function end sooner.
    """
    return await shielded(asyncio.to_thread(function, *arguments), on_cancel)


@contextlib.asynccontextmanager
async def at_most(seconds: float | None) -> AsyncIterator[None]:
    """Leave the block when it has taken that long, without an error; None is no limit."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            yield


async def cancel_all(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel `tasks`; returns when all are done, however they ended. A cancel of our own is held back until then."""
    for task in tasks:
        task.cancel()
    if tasks:
        await shielded(asyncio.gather(*tasks, return_exceptions=True))


@contextlib.asynccontextmanager
async def meanwhile(work: Coroutine[Any, Any, T], name: str) -> AsyncIterator[asyncio.Task[T]]:
    """Do `work` in a task called `name` while the block runs. The task has ended when the block is left."""
    task = asyncio.create_task(work, name=name)
    try:
        yield task
    finally:
        await cancel_all([task])


async def all_of(source: AsyncGenerator[T, None]) -> list[T]:
    """The items of `source`. It has ended then, also after a cancel or an error."""
    async with contextlib.aclosing(source):
        return [item async for item in source]


async def merge_streams(sources: Sequence[AsyncGenerator[T, None]]) -> AsyncGenerator[T, None]:
    """The items of all `sources` as they come.

    Back-pressure: of each source one item is taken ahead, and the next when that one has been taken.
    Cancelling: closing this closes all sources, and waits for them.
    Errors: the first one is raised; the other sources are closed.
    """
    waiting: dict[asyncio.Task[T], AsyncGenerator[T, None]] = {}

    def take(source: AsyncGenerator[T, None]) -> None:
        waiting[asyncio.ensure_future(anext(source))] = source

    try:
        for source in sources:
            take(source)
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                source = waiting.pop(task)
                try:
                    item = task.result()
                except StopAsyncIteration:
                    continue
                yield item
                take(source)
    finally:
        try:
            await cancel_all(list(waiting))
        finally:  # also when that was cancelled meanwhile
            await shielded(asyncio.gather(*(source.aclose() for source in sources), return_exceptions=True))


class SharedLock:
    """Any number of tasks may share it, or one has it alone. Tasks that want it alone have it as they come.

    A task that waits to share it goes after all of them, so none has to wait for newcomers that share it.
    Cancelling: a task that is cancelled while it waits leaves no trace.
    """

    def __init__(self) -> None:
        self._sharing = 0
        self._alone: list[object] = []  # a place of each task that has it alone or wants to, the first first
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """Hold the lock beside others."""
        await self._until(lambda: not self._alone)
        self._sharing += 1
        try:
            yield
        finally:
            self._sharing -= 1
            self._wake()

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Hold the lock alone."""
        place = object()
        self._alone.append(place)
        try:
            await self._until(lambda: self._alone[0] is place and not self._sharing)
            yield
        finally:
            self._alone.remove(place)
            self._wake()

    async def _until(self, free: Callable[[], bool]) -> None:
        while not free():
            await self._changed.wait()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

"""Waiting for what must be finished even when the one who waits is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def ended(task: asyncio.Future[T]) -> None:
    """Returns when `task` is done, however it ended. A cancel is held back until then, and then raised."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio doesn't warn that nobody did
        raise cancelled


async def in_thread(function: Callable[..., T], *arguments: object) -> T:
    """What `function`, which blocks, returns. A cancel waits until it is done, so that nobody begins meanwhile."""
    task = asyncio.create_task(asyncio.to_thread(function, *arguments), name="work in a thread")
    await ended(task)
    return task.result()


async def carried_out(work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns, in any case: a cancel meanwhile comes too late, and is dropped."""
    task, waiting = asyncio.create_task(work), asyncio.current_task()
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            if waiting is not None:
                waiting.uncancel()
    return task.result()


async def cancel_all(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel `tasks`; returns when all are done, however they ended. A cancel of our own is held back until then."""
    for task in tasks:
        task.cancel()
    if tasks:
        await ended(asyncio.gather(*tasks, return_exceptions=True))

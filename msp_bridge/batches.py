"""Batches: whatever is ready goes out together."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import TypeVar

from msp_bridge.ended import ended

T = TypeVar("T")


async def batches(source: AsyncGenerator[T, None], limit: int) -> AsyncGenerator[list[T], None]:
    """The items of `source` in lists: all that have arrived since the previous list was taken, at most `limit`.

    Back-pressure: while `limit` items wait, `source` is not asked for more.
    Cancelling: closing this closes `source`, and waits for it.
    """
    ready: list[T] = []
    arrived, room = asyncio.Event(), asyncio.Event()

    async def gather() -> None:
        async with contextlib.aclosing(source):
            async for item in source:
                ready.append(item)
                arrived.set()
                if len(ready) >= limit:
                    room.clear()
                    await room.wait()

    gathering = asyncio.create_task(gather(), name="gathering results")
    gathering.add_done_callback(lambda _: arrived.set())
    try:
        while ready or not gathering.done():
            await arrived.wait()
            arrived.clear()
            batch = ready.copy()
            ready.clear()
            room.set()
            if batch:
                yield batch
        gathering.result()
    finally:
        gathering.cancel()
        await ended(gathering)

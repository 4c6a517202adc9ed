"""Several async generators as one: whichever has something next goes next."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import TypeVar

from msp_bridge.ended import cancel_all, ended

T = TypeVar("T")


async def side_by_side(sources: Sequence[AsyncGenerator[T, None]]) -> AsyncGenerator[T, None]:
    """The items of all `sources` as they come.

    Back-pressure: each source is asked for one item ahead, and for the next when that has been taken.
    Cancelling: closing this closes all sources, and waits for them.
    Errors: the first one is raised; the other sources are closed.
    """
    asked: dict[asyncio.Task[T], AsyncGenerator[T, None]] = {}

    def ask(source: AsyncGenerator[T, None]) -> None:
        asked[asyncio.ensure_future(_next(source))] = source

    try:
        for source in sources:
            ask(source)
        while asked:
            done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                source = asked.pop(task)
                try:
                    item = task.result()
                except StopAsyncIteration:
                    continue
                yield item
                ask(source)
    finally:
        try:
            await cancel_all(list(asked))
        finally:  # also when that was cancelled meanwhile
            await ended(asyncio.gather(*(source.aclose() for source in sources), return_exceptions=True))


async def _next(source: AsyncGenerator[T, None]) -> T:
    return await anext(source)

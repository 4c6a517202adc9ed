"""Batches: what is ready goes out together, nothing is lost or reordered, and closing closes the source first."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msp_bridge.notices import Told
from msp_bridge.phases import batches

TOLD = Told()  # no source here has notices


class Source:
    """Numbers, as many as are released."""

    def __init__(self, last: int) -> None:
        self.last, self.asked, self.closed = last, 0, False
        self.released = asyncio.Semaphore(0)

    async def numbers(self) -> AsyncGenerator[int, None]:
        try:
            for number in range(self.last):
                self.asked += 1
                await self.released.acquire()
                yield number
        finally:
            await asyncio.sleep(0)
            self.closed = True

    def release(self, count: int) -> None:
        for _ in range(count):
            self.released.release()


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def test_all_that_is_ready_comes_in_one_batch() -> None:
    source = Source(10)
    source.release(1)
    async with contextlib.aclosing(batches(source.numbers(), TOLD.tell, limit=100)) as ready:
        assert await anext(ready) == [0]
        source.release(9)
        await settle()
        assert await anext(ready) == list(range(1, 10))
        with pytest.raises(StopAsyncIteration):
            await anext(ready)
    assert source.closed


async def test_a_single_item_does_not_wait_for_others() -> None:
    source = Source(3)
    async with contextlib.aclosing(batches(source.numbers(), TOLD.tell, limit=100)) as ready:
        for number in range(3):
            source.release(1)
            assert await anext(ready) == [number]


async def test_the_source_is_not_asked_for_more_than_the_limit_ahead() -> None:
    source = Source(100)
    source.release(100)
    async with contextlib.aclosing(batches(source.numbers(), TOLD.tell, limit=4)) as ready:
        assert await anext(ready) == [0, 1, 2, 3]
        await settle()
        assert source.asked == 8
        assert await anext(ready) == [4, 5, 6, 7]


@given(st.integers(0, 30), st.integers(1, 5), st.lists(st.integers(1, 7), max_size=10))
def test_nothing_is_lost_or_reordered(last: int, limit: int, releases: list[int]) -> None:
    async def run() -> None:
        source, seen = Source(last), []

        async def release() -> None:
            for count in releases:
                source.release(count)
                await asyncio.sleep(0)
            source.release(last)

        releasing = asyncio.create_task(release())
        async with contextlib.aclosing(batches(source.numbers(), TOLD.tell, limit=limit)) as ready:
            async for batch in ready:
                assert 0 < len(batch) <= limit
                seen += batch
        await releasing
        assert seen == list(range(last))
        assert source.closed

    asyncio.run(run())


async def test_closing_waits_until_the_source_has_cleaned_up() -> None:
    source = Source(10)
    source.release(1)
    ready = batches(source.numbers(), TOLD.tell, limit=4)
    await anext(ready)
    await ready.aclose()
    assert source.closed


async def test_a_cancel_waits_until_the_source_has_cleaned_up() -> None:
    cleaning, may_end, ended = asyncio.Event(), asyncio.Event(), False

    async def numbers() -> AsyncGenerator[int, None]:
        nonlocal ended
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await may_end.wait()
            ended = True

    async def consume() -> None:
        async with contextlib.aclosing(batches(numbers(), TOLD.tell, limit=4)) as ready:
            async for _ in ready:
                pass

    consuming = asyncio.create_task(consume())
    await settle()
    consuming.cancel()
    await cleaning.wait()
    consuming.cancel()
    await settle()
    assert not consuming.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await consuming
    assert ended


@pytest.mark.parametrize("by", ["a cancel", "a timeout"])
async def test_what_has_arrived_before_a_cancel_goes_out_first(by: str) -> None:
    async def numbers() -> AsyncGenerator[int, None]:
        if by == "a timeout":
            timeout.reschedule(0)
        yield 1
        yield 2
        if by == "a cancel":
            consuming.cancel()
        await asyncio.Event().wait()

    async def consume() -> None:
        nonlocal timeout
        async with asyncio.timeout(None) as timeout, contextlib.aclosing(batches(numbers(), TOLD.tell)) as ready:
            async for batch in ready:
                seen.extend(batch)
                await asyncio.sleep(0)
                seen.append(0)  # the cancel is raised at the next wait

    timeout, seen = asyncio.timeout(None), list[int]()
    consuming = asyncio.create_task(consume())
    with pytest.raises(TimeoutError if by == "a timeout" else asyncio.CancelledError):
        await consuming
    assert seen == [1, 2]


async def test_an_error_of_the_source_comes_after_what_it_gave_before() -> None:
    async def numbers() -> AsyncGenerator[int, None]:
        yield 1
        yield 2
        raise LookupError("broken")

    async with contextlib.aclosing(batches(numbers(), TOLD.tell, limit=100)) as ready:
        assert await anext(ready) == [1, 2]
        with pytest.raises(LookupError, match="broken"):
            await anext(ready)


async def test_an_empty_source_gives_no_batch() -> None:
    async with contextlib.aclosing(batches(Source(0).numbers(), TOLD.tell, limit=4)) as ready:
        assert [batch async for batch in ready] == []


async def test_closing_before_the_first_batch_starts_nothing() -> None:
    source = Source(3)
    await batches(source.numbers(), TOLD.tell, limit=4).aclose()
    assert source.asked == 0

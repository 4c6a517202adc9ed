"""merge_streams: several generators as one."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import pytest

from msp_bridge.concurrency import merge_streams


async def test_whoever_has_something_goes_next() -> None:
    gates = {name: asyncio.Event() for name in "ab"}

    async def source(name: str) -> AsyncGenerator[str, None]:
        await gates[name].wait()
        for number in range(2):
            yield f"{name}{number}"

    async with contextlib.aclosing(merge_streams([source("a"), source("b")])) as merged:
        gates["b"].set()
        assert [await anext(merged), await anext(merged)] == ["b0", "b1"]
        gates["a"].set()
        assert [item async for item in merged] == ["a0", "a1"]


async def test_each_source_is_read_one_item_ahead_of_what_is_taken() -> None:
    read: list[str] = []

    async def source(name: str) -> AsyncGenerator[str, None]:
        for number in range(10):
            read.append(f"{name}{number}")
            yield name

    async with contextlib.aclosing(merge_streams([source("a"), source("b")])) as merged:
        await anext(merged)
        for _ in range(5):
            await asyncio.sleep(0)
        assert sorted(read) == ["a0", "b0"]


async def test_closing_closes_all_and_waits_for_them() -> None:
    closed: list[str] = []

    async def source(name: str) -> AsyncGenerator[str, None]:
        try:
            yield name
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            closed.append(name)

    async with contextlib.aclosing(merge_streams([source("a"), source("b")])) as merged:
        await anext(merged)
    assert sorted(closed) == ["a", "b"]


async def test_an_error_of_one_is_raised_and_the_others_are_closed() -> None:
    closed: list[str] = []

    async def failing() -> AsyncGenerator[str, None]:
        await asyncio.sleep(0)
        raise LookupError("lost")
        yield ""

    async def waiting() -> AsyncGenerator[str, None]:
        try:
            await asyncio.Event().wait()
            yield ""
        finally:
            closed.append("waiting")

    async with contextlib.aclosing(merge_streams([failing(), waiting()])) as merged:
        with pytest.raises(LookupError):
            await anext(merged)
    assert closed == ["waiting"]


async def test_a_cancel_while_one_ends_leaves_no_other_open() -> None:
    closed: list[str] = []
    ending, may_end = asyncio.Event(), asyncio.Event()

    async def paused() -> AsyncGenerator[str, None]:
        try:
            yield "taken"
            yield "never taken"
        finally:
            closed.append("paused")

    async def slow_to_end() -> AsyncGenerator[str, None]:
        try:
            await asyncio.Event().wait()
            yield ""
        finally:
            ending.set()
            await may_end.wait()
            closed.append("slow to end")

    async def one_is_enough() -> None:
        async with contextlib.aclosing(merge_streams([paused(), slow_to_end()])) as merged:
            await anext(merged)

    task = asyncio.create_task(one_is_enough())
    await ending.wait()
    task.cancel()
    may_end.set()
    await asyncio.wait([task])
    assert task.cancelled()
    assert sorted(closed) == ["paused", "slow to end"]


async def test_none_at_all_is_at_its_end() -> None:
    async with contextlib.aclosing(merge_streams([])) as merged:
        assert [item async for item in merged] == []

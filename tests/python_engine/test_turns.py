"""Where mutants are tested one at a time, a newer request waits for one mutant of an older one, not for all."""

from __future__ import annotations

import asyncio

from msp_bridge.python_engine.turns import Turns


async def test_the_newest_request_goes_first_and_a_cancelled_one_is_passed_over() -> None:
    turns, order = Turns(), list[str]()
    started, go = asyncio.Event(), asyncio.Event()

    async def one(request: int, name: str) -> None:
        async with turns.turn(request):
            started.set()
            if name == "first":
                await go.wait()
            order.append(name)
            await asyncio.sleep(0)

    first = asyncio.create_task(one(0, "first"))
    await started.wait()
    tasks = [asyncio.create_task(one(*each)) for each in ((0, "second"), (0, "third"), (1, "newer"), (2, "cancelled"))]
    await asyncio.sleep(0)
    tasks[-1].cancel()
    await asyncio.wait([tasks[-1]])
    go.set()
    await asyncio.gather(first, *tasks[:-1])
    assert order == ["first", "newer", "second", "third"]


async def test_a_turn_that_comes_with_a_cancel_is_given_to_the_next() -> None:
    turns = Turns()

    async def one() -> None:
        async with turns.turn(0):
            await asyncio.sleep(0)

    async with turns.turn(0):
        cancelled, other = asyncio.create_task(one()), asyncio.create_task(one())
        await asyncio.sleep(0)
    cancelled.cancel()
    async with asyncio.timeout(5):
        await other

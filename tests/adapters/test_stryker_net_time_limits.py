"""Time limits of test hosts: when a second run is needed to believe them."""

import asyncio
import inspect
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msp_bridge.adapters.stryker_net.hosts import OutOfTime, ThreadTimes, within

from msp_bridge.processes import ProcessTree

LIMIT_S = 0.2


def computing(share: float) -> Callable[[], ThreadTimes]:
    """A thread that gets a share of a processor, beside one that only waits."""
    begun = time.monotonic()
    return lambda: {(1, 1): 0.0, (2, 2): share * (time.monotonic() - begun)}


async def ended(share: float) -> bool:
    with pytest.raises(OutOfTime) as late:
        await within(LIMIT_S, asyncio.sleep(60), computing(share))
    return late.value.computed


async def test_what_computes_all_the_time_is_out_of_time_for_certain() -> None:
    assert await ended(1.0)
    assert await ended(0.9)


async def test_what_waits_or_gets_no_processor_is_to_be_tested_again() -> None:
    assert not await ended(0.0)
    assert not await ended(0.3)


async def test_what_ends_in_time_is_returned_and_its_errors_are_raised() -> None:
    async def failing() -> None:
        raise ValueError("the console has ended")

    assert await within(60, asyncio.sleep(0, "done"), computing(1.0)) == "done"
    with pytest.raises(ValueError, match="the console has ended"):
        await within(60, failing(), computing(1.0))


async def test_what_is_cancelled_at_once_has_ended() -> None:
    run = asyncio.sleep(60)
    waiting = asyncio.create_task(within(60, run, computing(0.0)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert inspect.getcoroutinestate(run) == inspect.CORO_CLOSED


async def test_what_ends_while_it_gets_the_rest_of_its_time_is_returned() -> None:
    ends, limit_s = asyncio.Event(), 2.0

    def looked() -> ThreadTimes:
        if time.monotonic() > begun + limit_s:
            loop.call_soon_threadsafe(ends.set)
        return {(2, 2): 0.7 * (time.monotonic() - begun)}

    begun, loop = time.monotonic(), asyncio.get_running_loop()
    assert await within(limit_s, ends.wait(), looked)


async def test_the_times_are_those_of_the_threads_of_a_tool() -> None:
    program = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\nwhile True: pass"
    async with ProcessTree.running([sys.executable, "-c", program], cwd=Path.cwd()) as tree:
        while max(tree.thread_times().values(), default=0.0) < 0.2:
            await asyncio.sleep(0.05)
        assert sum(seconds < 0.2 for seconds in tree.thread_times().values()) >= 1
    assert tree.thread_times() == {}

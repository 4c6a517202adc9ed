"""JobScheduler: the newest request goes first, within the budget, and none waits for ever."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator

import pytest

from msp_bridge.toolkit import JobScheduler


class Jobs:
    """Jobs that end when the test says so."""

    def __init__(self) -> None:
        self.running: dict[str, asyncio.Event] = {}
        self.started: list[str] = []
        self.cancelled: list[str] = []

    async def __call__(self, name: str) -> str:
        self.started.append(name)
        self.running[name] = asyncio.Event()
        try:
            await self.running[name].wait()
        except asyncio.CancelledError:
            self.cancelled.append(name)
            raise
        finally:
            del self.running[name]
        return name

    async def end(self, name: str) -> None:
        self.running[name].set()
        await settled()


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def gather(results: AsyncGenerator[str, None]) -> list[str]:
    async with contextlib.aclosing(results):
        return [result async for result in results]


async def test_no_more_jobs_run_than_the_budget_allows() -> None:
    scheduler, most, active = JobScheduler(lambda: 3), 0, 0

    async def job(number: int) -> int:
        nonlocal most, active
        active += 1
        most = max(most, active)
        await asyncio.sleep(0)
        active -= 1
        return number

    results = [result async for result in scheduler.run(range(50), job)]
    assert sorted(results) == list(range(50))
    assert most == 3


async def test_a_newer_request_goes_first_and_never_waits_for_its_first_job() -> None:
    scheduler, jobs = JobScheduler(lambda: 2), Jobs()
    older = asyncio.create_task(gather(scheduler.run(["a1", "a2", "a3", "a4"], jobs)))
    await settled()
    assert sorted(jobs.running) == ["a1", "a2"]
    newer = asyncio.create_task(gather(scheduler.run(["b1", "b2", "b3"], jobs)))
    await settled()
    assert sorted(jobs.running) == ["a1", "a2", "b1"]
    await jobs.end("a1")
    assert sorted(jobs.running) == ["a2", "b1"]  # one beyond the budget had begun
    await jobs.end("a2")
    assert sorted(jobs.running) == ["a3", "b1", "b2"]  # the older one had none, and may start one
    await jobs.end("b1")
    assert sorted(jobs.running) == ["a3", "b2"]
    await jobs.end("b2")
    assert sorted(jobs.running) == ["a3", "b3"]
    for name in ("b3", "a3", "a4"):
        await jobs.end(name)
    assert (await newer, await older) == (["b1", "b2", "b3"], ["a1", "a2", "a3", "a4"])


async def test_the_budget_is_read_anew_for_each_job() -> None:
    budget, jobs = 1, Jobs()
    scheduler = JobScheduler(lambda: budget)
    running = asyncio.create_task(gather(scheduler.run(["1", "2", "3", "4"], jobs)))
    await settled()
    assert list(jobs.running) == ["1"]
    budget = 3
    await jobs.end("1")
    assert list(jobs.running) == ["2", "3", "4"]
    for name in ("2", "3", "4"):
        await jobs.end(name)
    assert await running == ["1", "2", "3", "4"]


async def test_a_job_starts_only_while_a_result_is_awaited() -> None:
    scheduler, jobs = JobScheduler(lambda: 1), Jobs()
    async with contextlib.aclosing(scheduler.run(["1", "2"], jobs)) as results:
        first = asyncio.ensure_future(anext(results))
        await settled()
        await jobs.end("1")
        assert await first == "1"
        await settled()
        assert jobs.started == ["1"]


async def test_closing_cancels_the_jobs_that_run() -> None:
    scheduler, jobs = JobScheduler(lambda: 2), Jobs()
    results = scheduler.run(["1", "2", "3"], jobs)
    first = asyncio.ensure_future(anext(results))
    await settled()
    await jobs.end("1")
    await first
    await results.aclose()
    assert jobs.cancelled == ["2"]
    assert jobs.running == {}
    other = asyncio.create_task(gather(scheduler.run(["4", "5"], jobs)))
    await settled()
    assert list(jobs.running) == ["4", "5"]  # the budget is whole again
    await jobs.end("4")
    await jobs.end("5")
    await other


async def test_a_failure_is_raised_and_ends_the_other_jobs() -> None:
    scheduler, jobs = JobScheduler(lambda: 2), Jobs()

    async def job(name: str) -> str:
        if name == "bad":
            raise LookupError
        return await jobs(name)

    with pytest.raises(LookupError):
        await gather(scheduler.run(["1", "bad", "2"], job))
    assert jobs.cancelled == ["1"]


async def test_requests_that_come_and_go_get_each_result_once() -> None:
    scheduler = JobScheduler(lambda: 3)

    async def job(number: int) -> int:
        await asyncio.sleep(number % 5 / 1000)
        return number

    async def request(numbers: range) -> Counter[int]:
        async with contextlib.aclosing(scheduler.run(numbers, job)) as results:
            return Counter([result async for result in results])

    ranges = [range(start, start + 40) for start in range(0, 400, 40)]
    for numbers, found in zip(ranges, await asyncio.gather(*map(request, ranges)), strict=True):
        assert found == Counter(numbers)

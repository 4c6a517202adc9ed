"""Cleaning up is waited for, however often the one who waits is cancelled; a lock is shared, or held alone."""

import asyncio
import threading

import pytest

from msp_bridge.concurrency import SharedLock, cancel_all, in_thread, shielded, shields


async def fail() -> None:
    raise LookupError


async def test_without_a_cancel_it_ends_as_the_work_does() -> None:
    assert await shielded(asyncio.sleep(0, "done")) == "done"
    with pytest.raises(LookupError):
        await shielded(fail())


async def test_a_cancel_is_held_back_until_the_task_is_done() -> None:
    may_end = asyncio.Event()
    task = asyncio.create_task(may_end.wait())
    waiting = asyncio.create_task(shielded(task))
    for _ in range(3):
        await asyncio.sleep(0)
        waiting.cancel()
    await asyncio.sleep(0)
    assert not waiting.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert task.result() is True


async def test_a_call_that_shields_finishes_in_spite_of_a_cancel() -> None:
    may_end, ended = asyncio.Event(), list[str]()

    @shields
    async def close(name: str) -> None:
        await may_end.wait()
        ended.append(name)

    closing = asyncio.create_task(close("it"))
    await asyncio.sleep(0)
    closing.cancel()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert ended == ["it"]


async def test_cancelling_all_waits_for_their_clean_up() -> None:
    cleaned: list[int] = []

    async def work(number: int) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)
            cleaned.append(number)

    tasks = {asyncio.create_task(work(number)) for number in range(3)}
    await asyncio.sleep(0)
    await cancel_all(tasks)
    assert sorted(cleaned) == [0, 1, 2]
    assert all(task.cancelled() for task in tasks)
    await cancel_all([])


async def test_what_a_thread_does_is_finished_also_when_it_is_cancelled() -> None:
    begun, may_end, done = threading.Event(), threading.Event(), []

    def work(name: str) -> str:
        begun.set()
        may_end.wait(60)
        done.append(name)
        return name

    task = asyncio.create_task(in_thread(work, "it"))
    await asyncio.to_thread(begun.wait, 60)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["it"]
    assert await in_thread(work, "again") == "again"


async def test_who_wants_the_lock_alone_goes_before_those_that_share_it() -> None:
    lock, order = SharedLock(), list[str]()

    async def alone() -> None:
        async with lock.alone():
            order.append("alone")

    async def shared() -> None:
        async with lock.shared():
            order.append("shared")

    async with lock.shared():
        async with lock.shared():
            order.append("two")
        tasks = [asyncio.create_task(alone())]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(shared()))
        cancelled = asyncio.create_task(alone())
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        assert order == ["two"]
    await asyncio.gather(*tasks)
    assert order == ["two", "alone", "shared"]


async def test_all_that_want_the_lock_alone_have_it_one_after_another_before_newcomers() -> None:
    lock, present, order = SharedLock(), set[str](), list[str]()

    async def enter(name: str, *, alone: bool) -> None:
        async with lock.alone() if alone else lock.shared():
            present.add(name)
            order.append("".join(sorted(present)))
            await asyncio.sleep(0)
            present.discard(name)

    first = [asyncio.create_task(enter(name, alone=False)) for name in "ab"]
    await asyncio.sleep(0)
    rest = [asyncio.create_task(enter(name, alone=True)) for name in "cd"]
    await asyncio.sleep(0)
    await asyncio.gather(*first, *rest, enter("e", alone=False))
    assert order == ["a", "ab", "c", "d", "e"]


async def test_the_lock_goes_to_the_task_that_waits_for_it_alone_and_not_back_to_the_one_that_left_it() -> None:
    lock, order = SharedLock(), list[str]()

    async def twice(name: str) -> None:
        for _ in range(2):
            async with lock.alone():
                order.append(name)
                await asyncio.sleep(0)

    await asyncio.gather(twice("a"), twice("b"))
    assert order == ["a", "b", "a", "b"]

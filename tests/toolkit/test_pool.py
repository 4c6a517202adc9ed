"""SandboxPool: a sandbox belongs to one lease at a time, and no cancel loses one, nor a process beside it."""

import asyncio
import contextlib
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest
from support.cancelling import cancelled_everywhere

from msp_bridge.toolkit import JobScheduler, JsonLinesProcess, Sandbox, SandboxPool, sync
from msp_bridge.toolkit.json_lines import MARK

Pool = SandboxPool[Sandbox, "Clock"]


class Clock:
    """A process that is kept warm."""

    started: list[Self]

    def __init__(self) -> None:
        self.closed = False
        Clock.started.append(self)

    async def close(self) -> None:
        await asyncio.sleep(0.01)
        self.closed = True


async def start() -> Clock:
    await asyncio.sleep(0)
    return Clock()


@pytest.fixture(autouse=True)
def no_clocks() -> None:
    Clock.started = []


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    for name in ("a.py", "b.py", "c.py"):
        (root / name).write_text(f"name = {name!r}\n")
    return root


@pytest.fixture
async def pool(source: Path, tmp_path: Path) -> AsyncIterator[Pool]:
    pool: Pool = SandboxPool(partial(Sandbox.claim, tmp_path / "cache", source))
    async with contextlib.aclosing(pool):
        yield pool


def is_free(tmp_path: Path, source: Path) -> bool:
    """Whether another bridge could have the first sandbox."""
    claimed = Sandbox.claim(tmp_path / "cache", source)
    claimed.close()
    return claimed.path.parent.name == "copy-0"


async def test_a_sandbox_belongs_to_one_lease_and_is_used_again(pool: Pool, source: Path, tmp_path: Path) -> None:
    async with pool.lease() as one, pool.lease() as other:
        assert one.sandbox.path != other.sandbox.path
    async with pool.lease() as again:
        assert again in (one, other)
    with pytest.raises(LookupError):
        async with pool.lease() as failed:
            raise LookupError
    async with pool.lease() as again:
        assert again is failed
    assert not is_free(tmp_path, source)
    await pool.aclose()
    assert is_free(tmp_path, source)


async def test_only_some_idle_sandboxes_are_kept(source: Path, tmp_path: Path) -> None:
    pool: Pool = SandboxPool(partial(Sandbox.claim, tmp_path / "cache", source), max_idle=1)
    async with pool.lease() as one:
        await one.process.get(start)
        async with pool.lease() as other:
            await other.process.get(start)
    assert [clock.closed for clock in Clock.started] == [False, True]
    async with pool.lease() as kept:
        assert kept is one
    await pool.aclose()
    assert all(clock.closed for clock in Clock.started)


async def test_the_preferred_sandbox_is_leased(pool: Pool) -> None:
    async with pool.lease() as one, pool.lease() as other:
        pass
    async with pool.lease(lambda warm: warm is other) as leased:
        assert leased is other
    async with pool.lease(lambda warm: warm is one) as leased:
        assert leased is one


async def test_a_process_is_kept_for_the_next_lease(pool: Pool) -> None:
    async with pool.lease() as warm:
        clock = await warm.process.get(start)
    async with pool.lease() as warm:
        assert await warm.process.get(start) is warm.process.current is clock


async def test_a_process_that_has_ended_is_started_again(pool: Pool) -> None:
    async with pool.lease() as warm:
        clock = await warm.process.get(start)
        await clock.close()
        assert warm.process.current is None
        assert await warm.process.get(start) is not clock


async def test_a_process_is_replaced_when_what_it_has_read_changes(pool: Pool) -> None:
    async with pool.lease() as warm:
        first = await warm.process.get(start, "configuration")
        assert await warm.process.get(start, "configuration") is first
        second = await warm.process.get(start, "another")
        assert (first.closed, second.closed) == (True, False)


async def test_a_process_is_replaced_when_its_directory_is_made_anew(pool: Pool) -> None:
    async with pool.lease() as warm:
        await warm.refresh()
        first = await warm.process.get(start)
        warm.sandbox.path.rename(warm.sandbox.path.with_name("elsewhere"))
        await warm.refresh()
        second = await warm.process.get(start)
        assert (first.closed, second.closed) == (True, False)


async def test_two_that_want_a_process_at_once_get_the_same_one(pool: Pool) -> None:
    async with pool.lease() as warm:
        one, other = await asyncio.gather(warm.process.get(start), warm.process.get(start))
    assert one is other
    assert len(Clock.started) == 1


async def test_a_failure_ends_the_process(pool: Pool) -> None:
    with contextlib.suppress(LookupError):
        async with pool.lease() as warm:
            clock = await warm.process.get(start)
            raise LookupError
    assert clock.closed


async def test_closing_the_pool_ends_what_is_leased(pool: Pool, source: Path, tmp_path: Path) -> None:
    async with pool.lease() as warm:
        clock = await warm.process.get(start)
        await pool.aclose()
        assert clock.closed
        assert not is_free(tmp_path, source)
    assert is_free(tmp_path, source)


async def test_a_failed_claim_is_tried_again(source: Path, tmp_path: Path) -> None:
    claims = 0

    def claim() -> Sandbox:
        nonlocal claims
        claims += 1
        if claims == 1:
            raise LookupError
        return Sandbox.claim(tmp_path / "cache", source)

    pool: Pool = SandboxPool(claim)
    with pytest.raises(LookupError):
        async with pool.lease():
            pass
    async with pool.lease():
        pass
    await pool.aclose()
    assert is_free(tmp_path, source)


async def test_a_cancel_stops_a_refresh_between_two_files(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    copied, begun, may_end, clone = [], threading.Event(), threading.Event(), sync.clone

    def slowly(file: str, target: str) -> str:
        copied.append(file)
        begun.set()
        may_end.wait(60)
        return clone(file, target)

    monkeypatch.setattr("msp_bridge.toolkit.sync.clone", slowly)
    async with pool.lease() as warm:
        refreshing = asyncio.create_task(warm.refresh())
        await asyncio.to_thread(begun.wait, 60)
        refreshing.cancel()
        await asyncio.sleep(0)
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await refreshing
        assert len(copied) == 1
        assert len(await warm.refresh()) == 3


# A cancel at any await leaves no lock, no process and no temporary directory.


ECHO = f"""
import json, os, sys
os.write(1, {MARK!r} + b'\\n{{"id": 0}}\\n')
for line in sys.stdin:
    os.write(1, line.encode())
"""
EchoPool = SandboxPool[Sandbox, JsonLinesProcess]


@pytest.mark.parametrize("options", [{}, {"max_idle": 0}], ids=str)
async def test_a_lease_with_a_warm_process_is_cancelled_at_each_await(
    options: dict[str, Any], source: Path, tmp_path: Path
) -> None:
    async def work() -> None:
        pool: EchoPool = SandboxPool(partial(Sandbox.claim, tmp_path / "cache", source), **options)
        async with aclosing(pool), pool.lease() as warm:
            await warm.refresh()
            start = partial(JsonLinesProcess.start, [sys.executable, "-c", ECHO], name="echo", cwd=warm.sandbox.path)
            process = await warm.process.get(start)
            assert (await process.ask({"a": 1}))["a"] == 1

    assert await cancelled_everywhere(work, tmp_path / "cache") >= 6


async def test_jobs_in_sandboxes_are_cancelled_at_each_await(source: Path, tmp_path: Path) -> None:
    async def work() -> None:
        pool: Pool = SandboxPool(partial(Sandbox.claim, tmp_path / "cache", source))

        async def job(number: int) -> int:
            async with pool.lease() as warm:
                await warm.refresh()
                return number

        results = JobScheduler(lambda: 2).run(range(4), job)
        async with aclosing(pool), aclosing(results):
            assert sorted([result async for result in results]) == [0, 1, 2, 3]

    assert await cancelled_everywhere(work, tmp_path / "cache") >= 3

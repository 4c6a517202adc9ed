"""A cancel at any await of what the toolkit does leaves no lock, no process and no temporary directory."""

import sys
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.cancelling import cancelled_everywhere

from msp_bridge.toolkit import JobScheduler, JsonLinesProcess, Sandbox, SandboxPool
from msp_bridge.toolkit.json_lines import MARK

ECHO = f"""
import json, os, sys
os.write(1, {MARK!r} + b'\\n{{"id": 0}}\\n')
for line in sys.stdin:
    os.write(1, line.encode())
"""
Pool = SandboxPool[Sandbox, JsonLinesProcess]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.py").write_text("a = 1\n")
    return root


@pytest.mark.parametrize("options", [{}, {"max_idle": 0}], ids=str)
async def test_a_lease_with_a_warm_process(options: dict[str, Any], source: Path, tmp_path: Path) -> None:
    async def work() -> None:
        pool: Pool = SandboxPool(partial(Sandbox.claim, tmp_path / "cache", source), **options)
        async with aclosing(pool), pool.lease() as warm:
            await warm.refresh()
            start = partial(JsonLinesProcess.start, [sys.executable, "-c", ECHO], name="echo", cwd=warm.sandbox.path)
            process = await warm.process.get(start)
            assert (await process.ask({"a": 1}))["a"] == 1

    assert await cancelled_everywhere(work, tmp_path / "cache") >= 6


async def test_jobs_in_sandboxes(source: Path, tmp_path: Path) -> None:
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

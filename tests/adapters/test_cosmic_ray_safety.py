"""Safety: cancelled or killed at any moment, nothing stays behind and no byte of the user's tree changes."""

import asyncio
import contextlib
import os
import random
import signal
from pathlib import Path

import psutil
import pytest
from support.adapters import discovered, results_of
from support.cancelling import cancelled
from support.cosmic_ray_trees import adapter_on, plain
from support.projects import copied
from support.servers import until
from support.strays import below

from msp_bridge.adapter import Result, Status
from msp_bridge.testing import TreeState

TESTS = """import pathlib, subprocess, sys, time
import m
marker = pathlib.Path(sys.argv[1])
if m.x != 1:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    with marker.open("a") as file:
        file.write("started\\n")
    time.sleep(600)
"""


def endless(lasting: Path) -> tuple[Path, Path]:
    """A project whose mutants never end, and the file that shows that one has begun."""
    marker = lasting / "marker"
    command = f"python tests.py {marker}"
    return plain(lasting / "project", "x = 1\n", TESTS, timeout=300, command=command), marker


async def begun(marker: Path, testing: asyncio.Future[object]) -> None:
    """Wait until the tests of a mutant run, which `testing` awaits."""
    await until(lambda: marker.exists() or testing.done())
    assert marker.exists(), testing


async def test_closing_a_request_ends_its_tests_and_leaves_the_next_one_fit(lasting: Path) -> None:
    root, marker = endless(lasting)
    tree = TreeState.of(root)
    async with adapter_on(root, edited=True) as adapter:
        mutants = await discovered(adapter)
        for _ in range(2):
            marker.unlink(missing_ok=True)
            running = adapter.test(mutants)
            waiting = asyncio.ensure_future(anext(running))
            await begun(marker, waiting)
            await cancelled(waiting)
            await running.aclose()
            assert not [command for command in below(os.getpid()).values() if "time.sleep" in str(command)]
            assert tree.differences(TreeState.of(root)) == []
        (root / "tests.py").write_text("import m; assert m.x == 1\n")
        assert {result.status for result in await results_of(adapter, mutants)} == {Status.KILLED}


async def test_a_timeout_ends_the_tests_and_all_that_they_started(lasting: Path) -> None:
    root, _ = endless(lasting)
    text = (root / "cosmic-ray.toml").read_text()
    (root / "cosmic-ray.toml").write_text(text.replace("timeout = 300", "timeout = 2"))
    async with adapter_on(root) as adapter:
        mutants = (await discovered(adapter))[:1]
        (result,) = await results_of(adapter, mutants)
    assert result.status is Status.TIMEOUT


async def test_tests_that_something_kills_are_run_once_more(lasting: Path) -> None:
    root, marker = endless(lasting)
    async with adapter_on(root) as adapter:
        mutants = (await discovered(adapter))[:1]
        running = asyncio.create_task(results_of(adapter, mutants))
        for _ in range(2):
            await begun(marker, running)
            killed = [process for process in psutil.Process().children(recursive=True) if is_target(process)]
            marker.unlink()
            for process in killed:
                process.kill()
        (result,) = await running
    assert result.status_reason == "the tests were killed from outside, twice (for want of memory?)"


@pytest.mark.parametrize("seed", range(2))
async def test_sigkill_of_tests_changes_no_status(lasting: Path, seed: int) -> None:
    root = copied("cr_src", lasting)
    chance = random.Random(seed)
    async with adapter_on(root, jobs=2) as adapter:
        mutants = await discovered(adapter)
        async with contextlib.aclosing(adapter.test(mutants)) as running:
            killing = asyncio.create_task(kill_at_random(chance))
            # a remark may come, too: killed tests do not say which of them killed a mutant
            results = [result async for result in running if isinstance(result, Result)]
            await cancelled(killing)
    assert len(results) == len(mutants)
    assert {result.status for result in results} <= {Status.KILLED, Status.RUNTIME_ERROR}


async def kill_at_random(chance: random.Random) -> None:
    for _ in range(3):
        await asyncio.sleep(chance.uniform(0.3, 1.2))
        ours = [process for process in psutil.Process().children(recursive=True) if is_target(process)]
        if ours:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(ours).pid, signal.SIGKILL)


def is_target(process: psutil.Process) -> bool:
    """Whether it is a process of the tests, and nothing that waits for them."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return any(str(word).endswith(("tests.py", "test_core.py")) for word in process.cmdline()[1:2])
    return False

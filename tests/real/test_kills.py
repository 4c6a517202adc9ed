"""SIGKILL at random moments, for the bridge, its tool, and the tests in turn: the tree stays as it is, and nothing is left.

Six kills by default; `MSP_BRIDGE_KILLS=50` makes it fifty for each adapter.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import sys
from pathlib import Path

import psutil
import pytest
from support.msp_client import Client, ReaderWriter, Refused
from support.servers import Server, launched, mutants_of

from msp_bridge.testing import RunningProcesses, TreeState

ROOT = Path(__file__).parents[2]
PROJECTS = {
    "mutmut": ROOT / "examples/shop",
    "cosmic-ray": ROOT / "tests/projects/cr_src",
    "stryker-js": ROOT / "tests/projects/js_mocha",
}
MODULES = ROOT / "tests/npm/core9/node_modules"
KILLS = int(os.environ.get("MSP_BRIDGE_KILLS", "6"))
VICTIMS = ("bridge", "tool", "tests")
SOON = 0.4  # s; the latest moment after the first result


def victim_of(kind: str, server: Server, chance: random.Random) -> psutil.Process:
    """The process to kill: the server, a process that a supervisor has started, or one that such a process has started."""
    bridge = psutil.Process(server.process.pid)
    if kind == "bridge":
        return bridge
    supervisors = [supervisor for guard in bridge.children() for supervisor in guard.children()]
    tools = [tool for supervisor in supervisors for tool in supervisor.children()]
    below = [process for tool in tools for process in tool.children(recursive=True)]
    return chance.choice(below if kind == "tests" and below else tools)


async def killed(kind: str, chance: random.Random, server: Server, client: Client) -> None:
    """Start a whole run, and kill while it goes."""
    running = await client.ask("mutationTest", {})
    await client.some_progress()
    await asyncio.sleep(chance.uniform(0, SOON))
    with contextlib.suppress(psutil.NoSuchProcess, IndexError):  # it ended of its own accord a moment ago
        victim_of(kind, server, chance).kill()
    if kind == "bridge":
        await server.exited()
        return
    with contextlib.suppress(Refused):  # a clear error is an answer, too
        await client.result(running)
    reported = [mutant["id"] for _, mutant in client.take_results()]
    assert len(reported) == len(set(reported))
    found = mutants_of(await client.request("discover", {}))
    path, mutant = found[0]
    assert await client.request("mutationTest", {"mutants": {path: {"mutants": [mutant]}}}) == {"files": {}}
    assert [tested["id"] for _, tested in client.take_results()] == [mutant["id"]]


@pytest.mark.parametrize("adapter", PROJECTS)
async def test_a_kill_at_any_moment_changes_no_byte_and_leaves_no_process(adapter: str, tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("node_modules")
    root = Path(shutil.copytree(PROJECTS[adapter], tmp_path / "project", ignore=ignored))
    if adapter == "stryker-js":
        assert MODULES.is_dir(), f"{MODULES} is missing: `make test` installs it"
        (root / "node_modules").symlink_to(MODULES)  # a link is not followed: what is installed doesn't count
    tree = TreeState.of(root)
    seed = int(os.environ.get("MSP_BRIDGE_SEED") or random.randrange(2**32))
    print(f"MSP_BRIDGE_SEED={seed}")  # pytest shows it when the test fails
    chance = random.Random(seed)
    running = RunningProcesses()
    for number in range(KILLS):
        kind = VICTIMS[number % len(VICTIMS)]
        async with launched(root, "serve", "stdio", "--", "--adapter", adapter, "--python", sys.executable) as server:
            assert server.process.stdin is not None
            assert server.process.stdout is not None
            client = Client(ReaderWriter(server.process.stdout, server.process.stdin))
            watching = asyncio.create_task(asyncio.to_thread(running.look))
            await killed(kind, chance, server, client)
            await watching
            running.look()
            server.process.stdin.close()
            code = await server.exited()
            assert code == (-9 if kind == "bridge" else 0), server.said
        assert await running.settled(0) == []
        assert tree.differences(TreeState.of(root)) == []

"""A bridge that is killed, of which nothing may be left."""

import asyncio
import contextlib
import fcntl
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from msp_bridge.adapter import Adapter, Project
from msp_bridge.testing import RunningProcesses, TreeState

PROGRAM = """
import asyncio, json, sys
from importlib import import_module
from pathlib import Path
from msp_bridge.adapter import Mutant, Project, Result, Scope

async def main(module: str, name: str, root: str, cache: str, settings: str, jobs: str) -> None:
    about = {"settings": json.loads(settings), "python": Path(sys.executable), "jobs": int(jobs)}
    adapter = getattr(import_module(module), name)(Project(Path(root), Path(cache), **about))
    while True:
        async for item in adapter.test([item async for item in adapter.discover(Scope()) if isinstance(item, Mutant)]):
            if isinstance(item, Result):
                print(item.status.value, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


class BridgeProgram:
    """The process of a program that tests the mutants of a project and prints each status."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    async def line(self) -> str:
        """The next one that it prints."""
        assert self._process.stdout is not None
        line = await asyncio.to_thread(self._process.stdout.readline)
        assert line, "the bridge ended"
        return line.decode().strip()


@contextlib.asynccontextmanager
async def killed_bridge(adapter: type[Adapter], project: Project) -> AsyncIterator[BridgeProgram]:
    """A program on the project, killed when the block ends: no process and no change is left."""
    before, running = TreeState.of(project.root), RunningProcesses()
    about = (project.root, project.cache, json.dumps(dict(project.settings)), str(project.jobs))
    argv = [sys.executable, "-c", PROGRAM, adapter.__module__, adapter.__name__, *about]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE)
    try:
        yield BridgeProgram(process)
        running.look()
    finally:
        process.kill()
        process.communicate()
    assert await running.settled(0) == []
    assert before.differences(TreeState.of(project.root)) == []


async def unlocked(lock: Path) -> None:
    """Wait until the file has no lock: a process that was forked when its bridge was killed may not have closed it yet."""
    with lock.open() as file:
        async with asyncio.timeout(60):
            while True:
                with contextlib.suppress(BlockingIOError):
                    return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                await asyncio.sleep(0.02)

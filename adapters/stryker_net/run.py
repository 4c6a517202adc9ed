"""Run: one run of Stryker.NET, and what its end means."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from attrs import frozen

from msp_bridge.adapter import ToolError
from msp_bridge.concurrency import cancel_all, wait_shielded
from msp_bridge.processes import ProcessTree

from .assumptions import (
    BELOW_THRESHOLD,
    ENVIRONMENT,
    GLOBAL_TOOLS,
    INSTALL,
    REPORTS,
    RESTORE,
    SAYS_ABSENT,
    SAYS_RESTORE,
    SAYS_WHY_BELOW,
    SUCCESS,
)
from .copy import PrivateCopy
from .report import Report

TAIL = 64 * 1024  # bytes of its output that are remembered
SHOWN = 600  # characters of them in an error
BY_HAND = "run `dotnet stryker` by hand to see all that it says"
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f]")
TELLING = (  # the most telling first
    re.compile(r"\b(ERR|FTL)\]|exception:|\berror [A-Z]+\d+|No test project|Could not"),
    re.compile(r"\berror\b|\bfail(ed|ure)\b|exception|WRN\]", re.IGNORECASE),
    re.compile(""),
)


@frozen(eq=False)
class Run:
    """One that is running. Its output is read all the time, so that it never waits for us."""

    root: Path  # of the copy
    output: Path
    _tree: ProcessTree
    _tail: bytearray
    _ending: asyncio.Task[int]

    @classmethod
    @contextlib.asynccontextmanager
    async def of(cls, command: Sequence[str], copy: PrivateCopy, directory: str, output: Path) -> AsyncIterator[Run]:
        """Runs `command` in `directory` of the copy; on leaving, no process is left, and no assembly is mutated."""
        try:
            async with ProcessTree.running(command, cwd=copy.path / directory, env=environment(copy)) as tree:
                tail = bytearray()
                reading = asyncio.create_task(_read(tree, tail), name="output of Stryker.NET")
                ending = asyncio.create_task(_end_of(tree, reading), name="end of Stryker.NET")
                try:
                    yield cls(copy.path, output, tree, tail, ending)
                finally:
                    await cancel_all([ending, reading])
        finally:
            await wait_shielded(asyncio.create_task(asyncio.to_thread(copy.restore), name="putting assemblies back"))

    @property
    def over(self) -> bool:
        """Whether it has ended by itself."""
        return self._ending.done()

    async def wait(self, seconds: float) -> None:
        """Until it ends by itself, or `seconds` have passed."""
        await asyncio.wait([self._ending], timeout=seconds)

    async def report(self) -> Report:
        """Its report, once it has ended. Raises `ToolError`, with what it said, when there is none."""
        code = await asyncio.shield(self._ending)
        files = sorted((self.output / REPORTS).glob("*.json"))
        if code not in (SUCCESS, BELOW_THRESHOLD) or not files:
            raise ToolError(self._failure(code))
        return await asyncio.to_thread(Report.read, files[0], self.root)

    def _failure(self, code: int) -> str:
        said = bytes(self._tail).decode("utf-8", "replace") + "\n" + self._tree.errors
        if any(words in said for words in SAYS_RESTORE):
            return f"the local tools of this project are not restored: run `{RESTORE}` in it"
        if any(words in said for words in SAYS_ABSENT):
            return f"`dotnet stryker` is not to be found: run `{INSTALL}`"
        told = excerpt(said, self.root)
        if code < 0:
            name = signal.Signals(-code).name if -code in signal.valid_signals() else str(-code)
            return f"Stryker.NET was killed ({name}) before it had a report, perhaps for want of memory: {told}"
        if code == SUCCESS:
            return f"Stryker.NET ended without a report: {told}; {BY_HAND}"
        return f"Stryker.NET failed (exit code {code}): {told}; {BY_HAND}"


def environment(copy: PrivateCopy) -> dict[str, str]:
    """What Stryker.NET is to find in its environment when it works in `copy`."""
    path = os.pathsep.join([str(copy.shims), os.environ.get("PATH", ""), str(Path.home() / GLOBAL_TOOLS)])
    return {**ENVIRONMENT, "PATH": path}


async def _read(tree: ProcessTree, tail: bytearray) -> None:
    while data := await tree.read():
        tail += data
        del tail[:-TAIL]


async def _end_of(tree: ProcessTree, reading: asyncio.Task[None]) -> int:
    code = await tree.exited()
    await asyncio.wait([reading])
    return code


def excerpt(said: str, root: Path) -> str:
    """The lines that tell what went wrong, with paths below `root` relative to it."""
    said = COLOURS.sub("", said).replace(f"{root}{os.sep}", "")
    lines = list(dict.fromkeys(line.strip() for line in said.partition(SAYS_WHY_BELOW)[2].splitlines()))
    told = [line for line in lines if line and not line.startswith(("at ", "[/]"))][:4]
    if not told:
        lines = list(dict.fromkeys(line.strip() for line in said.splitlines() if line.strip()))
        told = next(filter(None, ([line for line in lines if kind.search(line)] for kind in TELLING)), ["no word"])[-4:]
    joined = " | ".join(told)
    return joined if len(joined) <= SHOWN else f"{joined[:SHOWN]}…"

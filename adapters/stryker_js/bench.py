"""Bench: one private copy and the StrykerJS that works in it, one request at a time."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import AsyncIterator, Collection, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from attrs import frozen

from msp_bridge.adapter import BridgeError, Project, ToolError
from msp_bridge.concurrency import in_thread, wait_shielded
from msp_bridge.reading import content

from .command_line import CommandLine
from .configuration import config_file
from .copy import Copy
from .installation import Installation
from .launch import Launch
from .mutants import Chosen
from .node import Node
from .server import Server
from .settings import Settings

log = logging.getLogger(__name__)

IDLE = 2  # warm benches that wait for the next request
SCHEMA = re.compile(rb'"\$schema"\s*:\s*"[^"]*"')
LEADS_ON = re.compile(rb"""["'`]\.\.?/""")  # the configuration may have read other files of the project


@frozen
class Toolchain:
    """What runs."""

    node: Node
    installation: Installation


class Bench:
    """Nobody else uses it between `prepare` and `reset` or the end of what was asked."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._claim: asyncio.Task[Copy] | None = None
        self._tool: Server | CommandLine | None = None
        self._read: object = None  # what the tool has read for good

    @property
    def copy(self) -> Copy:
        """After `prepare`."""
        assert self._claim is not None
        return self._claim.result()

    async def prepare(self, toolchain: Toolchain) -> None:
        """Bring the copy up to date; raises ToolError when there's no room for it, or Node couldn't name it."""
        _check_name(self._project.root)
        if self._claim is None:  # when it is cancelled, the copy is claimed all the same, and found here the next time
            claiming = asyncio.to_thread(Copy.claim, self._project)
            self._claim = asyncio.create_task(claiming, name="claiming a private copy")
        await asyncio.wait([self._claim])
        if self._claim.exception() is not None:
            claim, self._claim = self._claim, None
            claim.result()
        if self.has_open_run() and not await in_thread(self.copy.is_current):
            await self._make_ready()
        if not self.has_open_run():  # else its tests may be writing there
            await in_thread(self.copy.clear)
            await in_thread(self.copy.refresh)
        warm = Settings.of(self._project).warm
        self._launch = Launch(toolchain.node, toolchain.installation, self.copy.places, self._config(), warm)
        if self._read != (read := self._reads()):
            await self.reset()
            self._read = read

    async def tool(self, chosen: Chosen | None = None, jobs: int = 1) -> Server | CommandLine:
        """StrykerJS, started if it isn't, and ready to test what is chosen, or to discover; raises BridgeError."""
        await self._make_ready(chosen, jobs)
        if self._tool is None or self._tool.ended:
            await self.reset()
            serves = self._launch.installation.serves
            self._tool = await Server.start(self._launch) if serves else CommandLine(self._launch)
        return self._tool

    def has_open_run(self, paths: Collection[str] = ()) -> bool:
        """Whether a run waits that can test mutants of all these files."""
        return self._tool is not None and self._tool.has_open_run(paths) and not self._tool.ended

    async def reset(self) -> None:
        """End whatever runs."""
        tool, self._tool = self._tool, None
        if tool is not None:
            await tool.end()

    async def clear(self) -> None:
        """Delete what runs have left that have ended."""
        claimed = self._claim is not None and self._claim.done() and self._claim.exception() is None
        if claimed and not self.has_open_run():
            await in_thread(self.copy.clear)

    async def aclose(self) -> None:
        """End whatever runs, and let others have the copy."""
        await self.reset()
        if self._claim is not None:
            await asyncio.wait([self._claim])
            if self._claim.exception() is None:
                try:
                    await self.clear()
                finally:
                    await asyncio.to_thread(self.copy.close)

    async def _make_ready(self, chosen: Chosen | None = None, jobs: int = 1) -> None:
        if self._tool is None or self._tool.ended:
            return
        try:
            await self._tool.make_ready(chosen, jobs)
        except BridgeError:  # its results are known: what is wrong with its end is no matter of the next request
            log.warning("StrykerJS is started anew", exc_info=True)
            await self.reset()

    def _config(self) -> Path | None:
        file = config_file(self._project)
        if file is None or not file.is_relative_to(self._project.root):
            return file
        return self.copy.path / file.relative_to(self._project.root)

    def _reads(self) -> object:
        config = b"" if self._launch.config is None else SCHEMA.sub(b"", _content(self._launch.config))
        package = _content(self.copy.path / "package.json")
        digest = self.copy.digest if LEADS_ON.search(config) else None
        return self._launch, config, package, digest, self.copy.installed, self.copy.identity


class Benches:
    """As many as requests are alive at once; a few stay warm."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._idle: list[Bench] = []
        self._busy: set[Bench] = set()

    @asynccontextmanager
    async def lease(self, toolchain: Toolchain, paths: Collection[str] | None = None) -> AsyncIterator[Bench]:
        """A prepared one; best where a run is open that can test mutants of all the files `paths`.

        After a failure or a cancel nothing of it runs when the block is left.
        """
        bench = self._take(paths)
        self._busy.add(bench)
        try:
            await bench.prepare(toolchain)
            yield bench
        except BaseException:
            await bench.reset()
            raise
        finally:
            try:
                await bench.clear()
            finally:
                self._busy.discard(bench)
                self._idle.append(bench)
                if len(self._idle) > IDLE:
                    await _finished(self._idle.pop(0).aclose())

    def _take(self, paths: Collection[str] | None) -> Bench:
        """The one that was used last, of those that are equally good."""
        if not self._idle:
            return Bench(self._project)
        bench = max(reversed(self._idle), key=lambda bench: paths is not None and bench.has_open_run(paths))
        self._idle.remove(bench)
        return bench

    async def aclose(self) -> None:
        """End all of them."""
        for bench in [*self._idle, *self._busy]:
            await bench.aclose()
        self._idle.clear()


async def _finished(work: Coroutine[Any, Any, None]) -> None:
    """A cancel waits until all of it is done."""
    working = asyncio.create_task(work, name="work on a private copy")
    await wait_shielded(working)
    working.result()


def _check_name(root: Path) -> None:
    try:
        os.fspath(root).encode()
    except UnicodeEncodeError:
        raise ToolError(f"Node.js can't work in {root}, whose name is no UTF-8 text: rename the directory") from None


def _content(file: Path) -> bytes:
    try:
        return content(file)
    except OSError:
        return b""

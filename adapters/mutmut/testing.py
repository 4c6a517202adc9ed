"""Testing: mutants in, results out, over one warm host that is kept up to date with the user's files."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

from msp_bridge.adapter import Mutant, Project, Result, Status, ToolError
from msp_bridge.concurrency import cancel_all

from .bytecode import forgotten
from .channel import ChannelClosed
from .copy import PrivateCopy
from .discovery import Discovery
from .host import Interrupted, WarmHost
from .quarantine import Quarantine

log = logging.getLogger(__name__)

LOOK_AGAIN = 0.5  # seconds during a run after which the user may have saved a file
LIVES = 2  # hosts that one mutant may cost, the last one when it is tested alone


class Testing:
    """Owns the private copy and the host.

    Back-pressure: a mutant is started only while the next result of its `test` is awaited. At most `jobs` run at once,
    whoever asked for them; but a request that has none running may always start one, so that a newer one doesn't wait
    for the endless loop of an older one's mutant.
    """

    __test__ = False  # pytest would take it for a test

    def __init__(
        self,
        discovery: Discovery,
        project: Project,
        python: Path,
        config_file: str | None,
        env: Mapping[str, str | None],
    ) -> None:
        self._discovery, self._project, self._python = discovery, project, python
        self._config_file, self._env = config_file, env
        self._active = 0  # mutants that are being tested
        self._quarantine = Quarantine()
        self._lock = asyncio.Lock()  # held while the copy, or which host there is, changes
        self._copy: PrivateCopy | None = None
        self._host: WarmHost | None = None
        self._prepared = False
        self._stands_in: tuple[int, int] | None = None  # the directory that the host is in
        self._looked = 0.0
        self._epoch = 0  # how often the copy was refreshed

    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        """See `Adapter.test`."""
        self._looked = 0.0
        waiting = deque(mutants)
        running: set[asyncio.Task[Result | None]] = set()
        try:
            while waiting or running:
                while waiting and (not running or self._active < self._project.jobs):
                    running.add(self._begin(waiting.popleft()))
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in [task for task in running if task.done()]:
                    running.discard(task)
                    if (result := task.result()) is not None:
                        yield result
        finally:
            await cancel_all(running)

    async def aclose(self) -> None:
        """End the host and give the copy back."""
        async with self._lock:
            await self._end_host()
            if self._copy is not None:
                self._copy.close()
                self._copy = None

    async def prepare(self) -> WarmHost:
        """A host that knows the files as they are. Raises ToolError."""
        self._looked = 0.0
        return await self._ready()

    def _begin(self, mutant: Mutant) -> asyncio.Task[Result | None]:
        self._active += 1
        task = asyncio.create_task(self._one(mutant), name=f"mutant {mutant.handle}")
        task.add_done_callback(self._finished)  # and not a `finally`: a task may be cancelled before its first step
        return task

    def _finished(self, _: asyncio.Task[Result | None]) -> None:
        self._active -= 1

    async def _one(self, mutant: Mutant) -> Result | None:
        """The result; None when the mutant no longer exists."""
        lost = ""
        for life in range(LIVES):
            try:
                async with self._quarantine.place(suspect=life > 0):
                    return await self._judged(mutant)
            except ChannelClosed as error:
                lost = str(error)
        return Result(mutant, Status.RUNTIME_ERROR, status_reason=lost)

    async def _judged(self, mutant: Mutant) -> Result | None:
        """As `_one`; raises ChannelClosed when the host ends."""
        unknown = ""
        while (found := await self._discovery.find(mutant)) is not None:
            current, digest = found
            host, epoch = await self._ready(), self._epoch
            try:
                result = await host.test(current, digest)
            except Interrupted:
                continue
            if epoch != self._epoch:
                continue  # the copy changed under its feet
            if result is not None or unknown == digest:
                return result  # None: a host that has just looked doesn't know the file, so mutmut no longer mutates it
            unknown, self._looked = digest, 0.0
        return None

    async def _ready(self) -> WarmHost:
        async with self._lock:
            if self._copy is None:
                self._copy = await asyncio.to_thread(PrivateCopy.claim, self._project.cache, self._project.root)
            host = self._host
            if host is not None and host.alive and self._prepared:
                if time.monotonic() - self._looked < LOOK_AGAIN:
                    return host
                if await asyncio.to_thread(self._copy.is_current):
                    self._looked = time.monotonic()
                    return host
                await host.interrupt()  # before a file moves under the feet of a test
            try:
                return await self._prepare(self._copy)
            except ToolError as error:
                damaged = await asyncio.to_thread(forgotten, self._env, error)
                if not damaged and not isinstance(error, ChannelClosed):
                    raise
                log.warning("trying once more: %s", error)
            try:
                return await self._prepare(self._copy)
            except ChannelClosed as error:  # twice, and before any mutant was tested: no mutant is to blame
                raise ToolError(str(error)) from error

    async def _prepare(self, copy: PrivateCopy) -> WarmHost:
        looked = time.monotonic()
        self._epoch += 1
        changed = await asyncio.to_thread(copy.refresh)
        host = self._host
        if host is not None and (not host.alive or self._stands_in != copy.identity):
            await self._end_host()
            host = None
        if host is not None and self._prepared and not changed:
            self._looked = looked
            return host
        self._prepared = False
        try:
            if host is None:
                self._stands_in = copy.identity
                self._host = host = await self._start(copy)
            await host.prepare(changed, copy.content)
        except BaseException as error:  # cancelled, perhaps in the middle of a run of the whole suite
            await self._end_host()
            root = self._project.root
            if isinstance(error, ToolError) and not root.is_dir():  # whatever it says, this is why
                raise ToolError(f"{root} is gone: open the project where it is now") from error
            raise
        self._prepared, self._looked = True, looked
        return host

    async def _start(self, copy: PrivateCopy) -> WarmHost:
        options = {
            "root": str(self._project.root),
            "home": str(copy.home),
            "config_file": self._config_file,
            "jobs": max(1, self._project.jobs),
        }
        return await WarmHost.start(self._python, options, copy=copy.path, env=self._env)

    async def _end_host(self) -> None:
        host, self._host, self._prepared = self._host, None, False
        if host is not None:
            await host.end()

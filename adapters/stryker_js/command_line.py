"""CommandLine: `stryker run` of versions before 9.3, told by a plugin of ours to speak as the later ones do."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Sequence
from typing import Any

from msp_bridge.jsonrpc.client import MessageReader

from .conversation import Conversation
from .launch import CONFIGURATION, TOOL, Launch, Wanted
from .mutants import MAGIC, Chosen, Found, Raw, Target, Tested, escaped, mutant_of

QUIET: dict[str, Any] = {"reporters": ["msp-bridge"]}
ONLY_FIND: dict[str, Any] = {
    **QUIET,
    "testRunner": "msp-bridge-no-tests",
    "coverageAnalysis": "off",
    "ignoreStatic": False,  # it needs coverage
    "checkers": [],
    "buildCommand": None,
}


class CommandLine:
    """StrykerJS 6.4 to 9.2. Nothing stays warm: each request is a process, which has ended when the request has."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch

    @property
    def ended(self) -> bool:
        """A process that ends is nothing unusual here."""
        return False

    def has_open_run(self, _: Collection[str] = ()) -> bool:
        """Nor does a run stay open."""
        return False

    async def make_ready(self, chosen: Chosen | None, jobs: int) -> None:
        """It always is."""

    async def discover(self, paths: Sequence[str] | None, left_out: Sequence[str]) -> list[Found]:
        """Every mutant of these files, or of all but those left out. Raises BridgeError."""
        self._launch.want(Wanted(left_out=left_out, files=paths, options=ONLY_FIND, plugin=True))
        async with self._running(MSP_BRIDGE_DISCOVER="1") as conversation:
            async with contextlib.aclosing(_told(conversation, "msp-bridge/plan")) as plans:
                async for plan in plans:  # the first says all
                    return [Found.of(self._path(raw), raw, base=0) for raw in plan["mutants"]]
        return []

    async def test(self, chosen: Chosen, jobs: int) -> AsyncGenerator[Tested, None]:
        """The result of each chosen mutant, and perhaps of others, as soon as it is known. Raises BridgeError."""
        mutate = [pattern for target in chosen.targets for pattern in _patterns(target)]
        self._launch.want(Wanted(jobs, mutate=mutate, only=chosen.only, options=QUIET, plugin=True))
        async with self._running() as conversation:
            async with contextlib.aclosing(_told(conversation, "msp-bridge/tested")) as results:
                async for raw in results:
                    yield mutant_of(self._path(raw), raw, base=0), conversation.understood(raw)
                    await conversation.lease(raw)

    async def end(self) -> None:
        """Nothing runs between two requests."""

    @contextlib.asynccontextmanager
    async def _running(self, **env: str) -> AsyncIterator[Conversation]:
        tree = await self._launch.start("run", CONFIGURATION, "--logLevel", "warn", env=env)
        try:
            yield Conversation(tree, MessageReader(tree, TOOL), self._launch.places)
        finally:
            await tree.end()

    def _path(self, raw: Raw) -> str:
        return os.path.relpath(raw["fileName"], self._launch.places.copy).replace(os.sep, "/")


async def _told(conversation: Conversation, method: str) -> AsyncGenerator[Raw, None]:
    """What comes under this name until StrykerJS ends; raises BridgeError when it fails."""
    async with contextlib.aclosing(conversation.reader.all()) as messages:
        async for message in messages:
            if not conversation.takes(message) and message.get("method") == method:
                yield message["params"]
    if await conversation.tree.exited() != 0:
        raise await conversation.failed("")


def _pattern(path: str) -> str:
    return escaped(f"./{path}" if path.startswith("!") else path)  # a `!` at the start would leave it out


def _patterns(target: Target) -> Iterator[str]:
    """Lines are 1-based, columns 0-based; a range can't be combined with a pattern that has to be escaped."""
    if target.locations is None or MAGIC.search(target.path):
        yield _pattern(target.path)
        return
    for place in target.locations:
        start, end = place.start, place.end
        yield f"{_pattern(target.path)}:{start.line}:{start.column - 1}-{end.line}:{end.column - 1}"

"""Server: `dotnet stryker serve stdio` in a private copy, asked for one thing at a time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Self

from msp_bridge.adapter import ToolError
from msp_bridge.jsonrpc.client import ErrorResponse, JsonRpcClient
from msp_bridge.jsonrpc.messages import Message
from msp_bridge.processes import ProcessTree

from .assumptions import PROTOCOL, TESTED_MORE
from .copy import PrivateCopy
from .report import Entry
from .run import BY_HAND, environment, excerpt

log = logging.getLogger(__name__)

PATIENCE = 60.0  # s for its answer to `configure`, which builds nothing
TOOL = "Stryker.NET's server"


class Server:
    """After a failure, and a cancel that isn't answered: `end`."""

    def __init__(self, copy: PrivateCopy, tree: ProcessTree) -> None:
        self._root, self._tree = copy.path, tree
        self._client = JsonRpcClient(tree, TOOL)

    @classmethod
    async def start(cls, copy: PrivateCopy, directory: str, command: Sequence[str]) -> Self:
        """`command` in `directory` of the copy, configured by its options. Raises `ToolError`."""
        tree = await ProcessTree.start(command, cwd=copy.path / directory, env=environment(copy), stdin=True)
        server = cls(copy, tree)
        try:
            async with asyncio.timeout(PATIENCE):
                answer = await server._ask("configure", {})
        except BaseException as error:
            await server.end()
            if isinstance(error, TimeoutError):
                raise server.failed(f"it did not answer within {PATIENCE:.0f} s") from None
            raise
        version = answer.get("version") if isinstance(answer, dict) else None
        if not str(version).startswith(PROTOCOL):
            log.warning("%s speaks version %s of the protocol, not %sx", TOOL, version, PROTOCOL)
        return server

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._tree.returncode is not None

    async def discover(self) -> Any:
        """The answer that lists every mutant. Raises `ToolError`."""
        return await self._ask("discover", {})

    async def test(self, request: dict[str, Any]) -> AsyncGenerator[Entry, None]:
        """What it tells of mutants, as it does. Raises `ToolError`."""
        async with contextlib.aclosing(self._conversation("mutationTest", request)) as messages:
            async for message in messages:
                told = message.get("params") if message.get("method") == TESTED_MORE else message.get("result")
                for entry in self._entries(told):
                    yield entry

    async def cancel(self, seconds: float) -> bool:
        """Have it give up what nobody awaits any more. Whether it did in that time."""
        return await self._client.cancel(seconds)

    async def end(self) -> None:
        """End every process; idempotent."""
        await self._tree.end()

    def failed(self, why: str) -> ToolError:
        """With what its log tells."""
        log_said = self._tree.errors
        told = f" ({excerpt(log_said, self._root)})" if log_said.strip() else ""
        return ToolError(
            f"{TOOL} failed: {excerpt(why, self._root)}{told}; {BY_HAND}, or set `serve = false` for stryker-net"
        )

    async def _ask(self, method: str, params: dict[str, Any]) -> Any:
        try:
            return await self._client.request(method, params)
        except ErrorResponse as error:
            raise self.failed(str(error)) from None

    async def _conversation(self, method: str, params: dict[str, Any]) -> AsyncGenerator[Message, None]:
        try:
            async with contextlib.aclosing(self._client.stream(method, params)) as messages:
                async for message in messages:
                    yield message
        except ErrorResponse as error:
            raise self.failed(str(error)) from None

    def _entries(self, told: Any) -> list[Entry]:
        if told is None:
            return []
        try:
            entries = [entry for file in told["files"].values() for entry in file["mutants"]]
        except (AttributeError, KeyError, TypeError):
            entries = [None]
        if not all(isinstance(entry, dict) and "id" in entry for entry in entries):
            raise self.failed("it told results in an unknown shape")
        return entries

"""Server: a warm `stryker serve stdio`, asked for one thing at a time."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from msp_bridge.model import Location
from msp_bridge.processes import ProcessTree
from msp_bridge.upstream import Message, Refused, UpstreamServer

from .conversation import Conversation
from .launch import CONFIGURATION, TOOL, Launch, Wanted
from .mutants import Chosen, Found, Target, Tested, escaped, mutant_of


class Server:
    """StrykerJS 9.3 and later. After a failure or a cancel: `end`."""

    def __init__(self, launch: Launch, tree: ProcessTree) -> None:
        self._launch, self._tree = launch, tree
        self._upstream = UpstreamServer(tree, TOOL)
        self._conversation = Conversation(tree, self._upstream.frames, launch.places)

    @classmethod
    async def start(cls, launch: Launch) -> Server:
        """Start it, and have it read our configuration; raises ToolError."""
        server = cls(launch, await launch.start("serve", "stdio"))
        try:
            await server._ask("configure", {"configFilePath": str(CONFIGURATION)})
        except BaseException:
            await server.end()
            raise
        return server

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._tree.returncode is not None

    async def discover(self, paths: Sequence[str] | None, left_out: Sequence[str]) -> list[Found]:
        """Every mutant of these files, or of all but those left out. Raises BridgeError."""
        self._launch.want(Wanted(left_out=left_out))
        params = {} if paths is None else {"files": [{"path": escaped(path)} for path in paths]}
        files = (await self._ask("discover", params))["files"]
        return [Found.of(path, raw) for path, file in files.items() for raw in file["mutants"]]

    async def test(self, chosen: Chosen, jobs: int) -> AsyncGenerator[Tested, None]:
        """The result of each chosen mutant, and perhaps of others, as soon as it is known. Raises BridgeError."""
        self._launch.want(Wanted(concurrency=jobs, only=chosen.only))
        files = [file for target in chosen.targets for file in _files(target)]
        async with contextlib.aclosing(self._conversation_about("mutationTest", {"files": files})) as messages:
            async for message in messages:
                if message.get("method") == "reportMutationTestProgress":
                    for path, file in message["params"]["files"].items():
                        for raw in file["mutants"]:
                            yield mutant_of(path, raw), self._conversation.understood(raw)
                            await self._conversation.taken(raw)

    async def end(self) -> None:
        """End every process; idempotent."""
        await self._tree.end()

    async def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._conversation.begin()
        try:
            return await self._upstream.ask(method, params)
        except Refused as refused:
            raise await self._conversation.failed(str(refused)) from None

    async def _conversation_about(self, method: str, params: dict[str, Any]) -> AsyncGenerator[Message, None]:
        """All that comes until the answer, which is the last. Raises BridgeError."""
        self._conversation.begin()
        try:
            async with contextlib.aclosing(self._upstream.conversation(method, params)) as messages:
                async for message in messages:
                    if not self._conversation.takes(message):
                        yield message
        except Refused as refused:
            raise await self._conversation.failed(str(refused)) from None


def _files(target: Target) -> list[dict[str, Any]]:
    path = escaped(target.path)
    if target.locations is None:
        return [{"path": path}]
    return [{"path": path, "range": _range(location)} for location in target.locations]


def _range(location: Location) -> dict[str, dict[str, int]]:
    return {
        "start": {"line": location.start.line, "column": location.start.column},
        "end": {"line": location.end.line, "column": location.end.column},
    }

"""Server: a warm `stryker serve stdio`, asked for one thing at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Collection, Sequence
from typing import Any

from attrs import evolve, frozen

from msp_bridge.adapter import ToolError
from msp_bridge.jsonrpc.client import ErrorResponse, JsonRpcClient
from msp_bridge.jsonrpc.messages import Message
from msp_bridge.processes import ProcessTree

from .conversation import AGAIN, OVER, Conversation
from .launch import CONFIGURATION, TOOL, Launch, Wanted
from .mutants import Chosen, Found, Tested, escaped, mutant_of

GREETING = 60.0  # s; it takes one
PATIENCE = 20.0  # s; it takes a tenth of one
ENOUGH = 5000  # mutants of one run: StrykerJS keeps something of each until the run ends


@frozen
class OpenRun:
    """A run that has given all its results and waits for more to test, its processes started and its first run done."""

    paths: frozenset[str]  # whose mutants it can test
    workers: int
    tested: int = 0

    def suits(self, chosen: Chosen, jobs: int) -> bool:
        """Whether it can test these as well as a new one."""
        return self.tested < ENOUGH and jobs <= self.workers and self.paths.issuperset(chosen.paths)


class Server:
    """StrykerJS 9.3 and later. After a failure or a cancel: `end`.

    After each run it is ready to test other mutants of the same files without starting anything anew, until something
    else is asked for, or the launch's `warm` seconds are over. The files mustn't change meanwhile. Before each request:
    `make_ready`.
    """

    def __init__(self, launch: Launch, tree: ProcessTree) -> None:
        self._launch, self._tree = launch, tree
        self._client = JsonRpcClient(tree, TOOL)
        self._conversation = Conversation(tree, self._client.reader, launch.places)
        self._run: OpenRun | None = None  # which waits
        self._resumed: OpenRun | None = None  # which tests what comes next

    @classmethod
    async def start(cls, launch: Launch) -> Server:
        """Start it, and have it read our configuration; raises ToolError."""
        server = cls(launch, await launch.start("serve", "stdio"))
        try:
            async with asyncio.timeout(GREETING):
                await server._ask("configure", {"configFilePath": str(CONFIGURATION)})
        except TimeoutError:
            await server.end()
            tail = "run `npx stryker serve stdio` to see what it does"
            raise ToolError(f"StrykerJS didn't answer within {GREETING:g} s of its start: {tail}") from None
        except BaseException:
            await server.end()
            raise
        return server

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._tree.returncode is not None

    def has_open_run(self, paths: Collection[str] = ()) -> bool:
        """Whether processes of the last run may be there still, to test mutants of all these files."""
        return self._run is not None and self._run.paths.issuperset(paths)

    async def discover(self, paths: Sequence[str] | None, left_out: Sequence[str]) -> list[Found]:
        """Every mutant of these files, or of all but those left out. Raises BridgeError."""
        self._launch.want(Wanted(left_out=left_out))
        params = {} if paths is None else {"files": [{"path": escaped(path)} for path in paths]}
        files = (await self._ask("discover", params))["files"]
        return [Found.of(path, raw) for path, file in files.items() for raw in file["mutants"]]

    async def test(self, chosen: Chosen, jobs: int) -> AsyncGenerator[Tested, None]:
        """The result of each chosen mutant, and perhaps of others, as soon as it is known. Raises BridgeError."""
        run, self._resumed = self._resumed or await self._begun(chosen, jobs), None
        async with contextlib.aclosing(self._rest()) as messages:
            async for message in messages:
                if message.get("method") == "reportMutationTestProgress":
                    for path, file in message["params"]["files"].items():
                        for raw in file["mutants"]:
                            yield mutant_of(path, raw), self._conversation.understood(raw)
                            await self._conversation.lease(raw)
                elif message.get("method") == "msp-bridge/waiting":
                    self._run = evolve(run, tested=run.tested + len(chosen.mutants))
                    return

    async def make_ready(self, chosen: Chosen | None, jobs: int) -> None:
        """Have the open run go on with what is chosen, if it suits; else it ends. Raises BridgeError."""
        run, self._run = self._run, None
        if run is None:
            return
        try:
            async with asyncio.timeout(PATIENCE):
                if chosen is not None and run.suits(chosen, jobs):
                    await self._resume(run, chosen, jobs)
                else:
                    await self._tree.write(OVER)
                    async with contextlib.aclosing(self._rest()) as messages:
                        async for _ in messages:
                            pass
        except TimeoutError:
            raise ToolError(f"StrykerJS's last run didn't end within {PATIENCE:g} s") from None

    async def end(self) -> None:
        """End every process; idempotent."""
        await self._tree.end()

    async def _begun(self, chosen: Chosen, jobs: int) -> OpenRun:
        """A new run of all that is in the files, limited to what is chosen."""
        self._launch.want(Wanted(concurrency=jobs, only=chosen.only, warm=self._launch.warm))
        self._conversation.begin()
        await self._client.send("mutationTest", {"files": [{"path": escaped(path)} for path in chosen.paths]})
        return OpenRun(frozenset(chosen.paths), jobs)

    async def _resume(self, run: OpenRun, chosen: Chosen, jobs: int) -> None:
        """Unless it had ended a moment ago."""
        self._launch.want(Wanted(concurrency=jobs, only=chosen.mutants, warm=self._launch.warm))
        self._conversation.resume()
        await self._tree.write(AGAIN)
        async with contextlib.aclosing(self._rest()) as messages:
            async for message in messages:
                if message.get("method") == "msp-bridge/resumed":
                    self._resumed = run
                    return

    async def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._conversation.begin()
        try:
            return await self._client.request(method, params)
        except ErrorResponse as error:
            raise await self._conversation.failed(str(error)) from None

    async def _rest(self) -> AsyncGenerator[Message, None]:
        """What comes until the answer, which is the last. Raises BridgeError."""
        try:
            async with contextlib.aclosing(self._client.until_response()) as messages:
                async for message in messages:
                    if not self._conversation.takes(message):
                        yield message
        except ErrorResponse as error:
            raise await self._conversation.failed(str(error)) from None

"""Servers for the fault injection: a real one over stdio, on a project that nobody but the test itself may change."""

import contextlib
import sys
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import psutil
from attrs import frozen

from msp_bridge.testing import RunningProcesses
from support.kits import MARK, Kit
from support.msp_client import Client
from support.servers import Server, launched, mutants_of
from support.strays import with_argument

SENTENCE = 2500  # characters; the tail of a tool's own words may be in it
TRACEBACK = "Traceback (most recent call last)"  # pytest says "Traceback:" of a test that can't be imported


@frozen
class Served:
    """A server on a project, and its client."""

    kit: Kit
    root: Path
    server: Server
    client: Client

    async def mutants(self) -> dict[str, dict[str, Any]]:
        """The mutant of each function of the kit's source, by the function's name."""
        return self.kit.chosen(self.root, mutants_of(await self.client.request("discover")))

    async def results(self, mutants: Iterable[dict[str, Any]], path: str | None = None) -> list[dict[str, Any]]:
        """The results of these mutants of the kit's source, or of `path`."""
        chosen = {path or self.kit.source: {"mutants": list(mutants)}}
        assert await self.client.request("mutationTest", {"mutants": chosen}) == {"files": {}}
        return [result for _, result in self.client.take_results()]

    async def statuses(self, *harms: str) -> dict[str, str]:
        """The status of the mutant of each of `harms`, or of all functions; each is reported once."""
        mutants = await self.mutants()
        asked = {harm: mutants[harm] for harm in harms or mutants}
        results = await self.results(asked.values())
        status = {result["id"]: result["status"] for result in results}
        assert len(status) == len(results) == len(asked)
        return {harm: status[mutant["id"]] for harm, mutant in asked.items()}

    async def refusal(self, method: str, params: Any = None) -> str:
        """The one clear sentence with which the server answers."""
        answer = await self.client.answer(await self.client.ask(method, params))
        assert "error" in answer, f"{method} was not refused: {answer} {self.client.take_results()}"
        message: str = answer["error"]["message"]
        assert answer["error"]["code"] == -32803, message  # and not -32603, a fault of ours
        assert len(message) < SENTENCE
        assert "Traceback" not in message
        assert "Error(" not in message
        return message

    def processes(self) -> list[psutil.Process]:
        """What the server has running."""
        return psutil.Process(self.server.process.pid).children(recursive=True)


@contextlib.asynccontextmanager
async def served(
    kit: Kit, root: Path, *options: str, python: str | Path = sys.executable, alone: bool = True, **streams: Any
) -> AsyncIterator[Served]:
    """A server on the kit's project at `root`. It ends in order, without a traceback, and if `alone` nothing is left."""
    running = RunningProcesses()
    arguments = ["serve", "stdio", "--", "--adapter", kit.adapter, "--python", str(python), *options]
    async with launched(root, *arguments, forked="preexec_fn" not in streams, **streams) as server:
        client = Client(server.stdio())
        try:
            yield Served(kit, root, server, client)
        except BaseException:
            print("\n".join(server.said), file=sys.stderr)
            raise
        running.look()
        await client.wire.aclose()
        assert await server.exited() == 0, server.said
    if alone:
        assert await running.settled(0) == []
        assert with_argument(MARK) == {}, "a harm has left something running"
    assert TRACEBACK not in "\n".join(server.said), server.said

"""Each protocol as a client speaks it, for tests of what holds in all of them."""

import abc
import asyncio
import contextlib
import re
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from attrs import define, field

from msp_bridge.dialects.dialect import load
from msp_bridge.mcp.server import AgentServer
from msp_bridge.server import serve_client
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.open_workspaces import OpenWorkspaces
from support.memory_stream import ROOM, MemoryStream
from support.msp_client import LONG, Client, Wire, framed
from support.servers import ScriptedProject, mutants_of

Report = tuple[Any, str]  # what identifies the request, as far as the dialect does, and the mutant's id


class Talker(Client):
    """A client that keeps every notification with its method, and counts no method as wrong."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self.notified: list[tuple[str, Any]] = []

    def _keep(self, message: dict[str, Any]) -> None:
        if "method" in message and "id" not in message:
            self.notified.append((message["method"], message.get("params")))
        else:
            super()._keep(message)

    async def notification(self, method: str) -> Any:
        """The params of the next notification of `method` that nobody has taken; others are dropped."""
        while True:
            while self.notified:
                name, params = self.notified.pop(0)
                if name == method:
                    return params
            self._keep(await self.receive())


@define(eq=False)
class Speech(abc.ABC):
    """What is said in one dialect. `number` is the request's own: it becomes its token where there are tokens."""

    root: Path = field(factory=Path)  # of the project, for dialects that name files by their URIs

    name: ClassVar[str]
    cancelled: ClassVar[int | None] = -32800  # the code that a cancelled request is answered with; None: by nothing
    repeated: ClassVar[int | None] = None  # the code for a second request of the same kind at the same time

    def serving(self, stream: MemoryStream, workspaces: OpenWorkspaces) -> Coroutine[Any, Any, object]:
        """The server of one client."""
        return serve_client(stream, workspaces, load(self.name))

    def wire(self, stream: MemoryStream) -> Wire:
        """The client's end, with messages framed as `Client` has them."""
        return stream

    async def cancel(self, client: Talker, id: int) -> None:
        """The notification that cancels a request."""
        await client.cancel(id)

    @abc.abstractmethod
    async def greet(self, client: Talker) -> None:
        """What comes before all requests."""

    @abc.abstractmethod
    def testing(self, number: int, path: str | None) -> tuple[str, Any]:
        """The request that tests a file, or everything."""

    @abc.abstractmethod
    def discovering(self, number: int) -> tuple[str, Any]:
        """The request that discovers everything."""

    @abc.abstractmethod
    def tested(self, notified: list[tuple[str, Any]]) -> Counter[Report]:
        """The mutants whose final results are in these notifications."""

    def key(self, number: int) -> Any:
        """What identifies the request in its results; None where nothing does."""
        return number

    def reports(self, number: int, mutants: Iterable[str]) -> Counter[Report]:
        """What `tested` finds when each of these mutants has been reported once for the request."""
        return Counter((self.key(number), mutant) for mutant in mutants)


class Msp(Speech):
    """Nothing identifies the requests."""

    name = "msp"

    async def greet(self, client: Talker) -> None:
        await client.request("configure", {})

    def testing(self, number: int, path: str | None) -> tuple[str, Any]:
        return "mutationTest", {} if path is None else {"files": [{"path": path}]}

    def discovering(self, number: int) -> tuple[str, Any]:
        return "discover", {}

    def tested(self, notified: list[tuple[str, Any]]) -> Counter[Report]:
        assert {method for method, _ in notified} <= {"reportMutationTestProgress"}
        return Counter((None, mutant["id"]) for _, params in notified for _, mutant in mutants_of(params))

    def key(self, number: int) -> Any:
        return None


class MspAlpha(Speech):
    """Tokens identify the requests."""

    name = "msp-alpha"
    cancelled = -32000

    async def greet(self, client: Talker) -> None:
        await client.request("initialize", {"clientInfo": {"version": "0.0.1"}})

    def testing(self, number: int, path: str | None) -> tuple[str, Any]:
        globs = {} if path is None else {"globPatterns": [path]}
        return "mutate", {"partialResultToken": number, **globs}

    def discovering(self, number: int) -> tuple[str, Any]:
        return "instrument", {"partialResultToken": number}

    def tested(self, notified: list[tuple[str, Any]]) -> Counter[Report]:
        values = [params for method, params in notified if method == "progress"]
        found = [(params["token"], mutant) for params in values for mutant in params["value"]]
        return Counter((token, mutant["id"]) for token, mutant in found if mutant["status"] != "Pending")


class TestRunner(Speech):
    """Nothing identifies the requests: statuses are those of nodes."""

    __test__ = False  # pytest would take it for a test
    name = "test-runner"
    repeated = -32001

    async def greet(self, client: Talker) -> None:
        await client.request("testrunner/start", {})

    def testing(self, number: int, path: str | None) -> tuple[str, Any]:
        return "testrunner/run", {"id": "solution" if path is None else f"file:{path}"}

    def discovering(self, number: int) -> tuple[str, Any]:
        return "testrunner/invalidate", {"id": "solution"}

    def tested(self, notified: list[tuple[str, Any]]) -> Counter[Report]:
        changes = [params for method, params in notified if method == "updateStatus"]
        ended = [change["id"] for change in changes if change["status"] in ("Passed", "Failed")]
        return Counter((None, id) for id in ended if id.isdigit())

    def key(self, number: int) -> Any:
        return None


class Mtp(Speech):
    """Run ids identify the requests."""

    name = "mtp"

    async def greet(self, client: Talker) -> None:
        await client.request("initialize", {"processId": 1, "clientInfo": {"name": "test", "version": "1.0.0"}})

    def testing(self, number: int, path: str | None) -> tuple[str, Any]:
        nodes = {} if path is None else {"tests": [{"uid": f"file:{path}", "location.file": path}]}
        return "testing/runTests", {"runId": self.key(number), **nodes}

    def discovering(self, number: int) -> tuple[str, Any]:
        return "testing/discoverTests", {"runId": self.key(number)}

    def tested(self, notified: list[tuple[str, Any]]) -> Counter[Report]:
        updates = [params for method, params in notified if method == "testing/testUpdates/tests"]
        changes = [(params["runId"], change["node"]) for params in updates for change in params["changes"] or ()]
        return Counter((run, node["uid"]) for run, node in changes if node["execution-state"] in ("passed", "failed"))

    def key(self, number: int) -> Any:
        return str(uuid.UUID(int=number))


class Lsp(Speech):
    """Tokens of progress identify the requests. Diagnostics say what is known: how many were tested is in the progress."""

    name = "lsp"

    async def greet(self, client: Talker) -> None:
        await client.request("initialize", {"processId": None, "rootUri": self.root.as_uri(), "capabilities": {}})
        await client.send({"method": "initialized", "params": {}})

    def testing(self, number: int, path: str | None) -> tuple[str, Any]:
        command = "msp-bridge.testProject" if path is None else "msp-bridge.test"
        argument = {"uri": (self.root / (path or "a.py")).as_uri()}
        return "workspace/executeCommand", {"command": command, "arguments": [argument], "workDoneToken": number}

    def discovering(self, number: int) -> tuple[str, Any]:
        return "textDocument/codeLens", {"textDocument": {"uri": (self.root / "a.py").as_uri()}}

    def tested(self, notified: list[tuple[str, Any]]) -> Counter[Report]:
        for method, params in notified:
            if method == "textDocument/publishDiagnostics":
                shown = [str(diagnostic) for diagnostic in params["diagnostics"]]
                assert len(shown) == len(set(shown)), f"shown twice: {shown}"
        progress = [params for method, params in notified if method == "$/progress"]
        ends = [(each["token"], each["value"]["message"]) for each in progress if each["value"]["kind"] == "end"]
        counted = ((token, re.match(r"(\d+) mutants?: ", message)) for token, message in ends)
        return Counter({(token, "mutants"): int(count[1]) for token, count in counted if count is not None})

    def reports(self, number: int, mutants: Iterable[str]) -> Counter[Report]:
        return Counter((number, "mutants") for _ in mutants)


class Lines:
    """A wire on which each message is a line of JSON, for clients that frame them by Content-Length."""

    def __init__(self, wire: Wire) -> None:
        self._wire, self._rest = wire, b""

    async def read(self) -> bytes:
        lines: list[bytes] = []
        while not lines:
            if not (data := await self._wire.read()):
                return b""
            *lines, self._rest = (self._rest + data).split(b"\n")
        return b"".join(map(framed, lines))

    async def write(self, data: bytes) -> None:
        """`data` are whole messages."""
        await self._wire.write(re.sub(rb"(?s)Content-Length: \d+\r\n\r\n", b"\n", data) + b"\n")

    async def aclose(self) -> None:
        await self._wire.aclose()


class Mcp(Speech):
    """Tokens of progress identify the requests: the last report of each says how many were tested."""

    name = "mcp"
    cancelled = None

    def serving(self, stream: MemoryStream, workspaces: OpenWorkspaces) -> Coroutine[Any, Any, object]:
        return AgentServer(self.root, workspaces).serve(stream)

    def wire(self, stream: MemoryStream) -> Wire:
        return Lines(stream)

    async def cancel(self, client: Talker, id: int) -> None:
        await client.send({"method": "notifications/cancelled", "params": {"requestId": id}})

    async def greet(self, client: Talker) -> None:
        about = {"name": "test", "version": "1"}
        await client.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about})
        await client.send({"method": "notifications/initialized"})

    def testing(self, number: int, path: str | None) -> tuple[str, Any]:
        arguments = {} if path is None else {"paths": [path]}
        return "tools/call", {"name": "test_mutants", "arguments": arguments, "_meta": {"progressToken": number}}

    def discovering(self, number: int) -> tuple[str, Any]:
        return "tools/call", {"name": "list_mutants", "_meta": {"progressToken": number}}

    def tested(self, notified: list[tuple[str, Any]]) -> Counter[Report]:
        progress = [params for method, params in notified if method == "notifications/progress"]
        steps = (
            (each["progressToken"], re.match(r"(\d+) of \d+ mutants tested", each["message"])) for each in progress
        )
        return Counter({(token, "mutants"): int(step[1]) for token, step in steps if step is not None})

    def reports(self, number: int, mutants: Iterable[str]) -> Counter[Report]:
        return Counter((number, "mutants") for _ in mutants)


DIALECTS: list[type[Speech]] = [Msp, MspAlpha, TestRunner, Mtp, Lsp]
SPEECHES: list[type[Speech]] = [*DIALECTS, Mcp]
every_dialect = pytest.mark.parametrize("speech", [speech() for speech in DIALECTS], ids=lambda speech: speech.name)
every_protocol = pytest.mark.parametrize("speech", [speech() for speech in SPEECHES], ids=lambda speech: speech.name)


@contextlib.asynccontextmanager
async def spoken_to(speech: Speech, workspaces: OpenWorkspaces, room: int = ROOM) -> AsyncIterator[Talker]:
    """A client of a server in this process that speaks the protocol, and has not greeted yet."""
    ours, theirs = MemoryStream.pair(room)
    serving = asyncio.create_task(speech.serving(ours, workspaces))
    try:
        yield Talker(speech.wire(theirs))
    finally:
        await theirs.vanish()
        async with asyncio.timeout(LONG):
            await serving


@contextlib.asynccontextmanager
async def opened(project: ScriptedProject, **options: Any) -> AsyncIterator[OpenWorkspaces]:
    """The workspaces of a server on the project; `options` are those of its configuration."""
    workspaces = OpenWorkspaces(project.root, Configuration(adapters=("scripted",), jobs=2, **options))
    async with contextlib.aclosing(workspaces):
        yield workspaces


@contextlib.asynccontextmanager
async def greeted(speech: Speech, project: ScriptedProject, **options: Any) -> AsyncIterator[Talker]:
    """A client of a server on the project, after its handshake."""
    speech.root = project.root
    async with opened(project, **options) as workspaces, spoken_to(speech, workspaces) as client:
        await speech.greet(client)
        yield client


def agent_on(project: ScriptedProject, **options: Any) -> contextlib.AbstractAsyncContextManager[Talker]:
    """An agent on the project, which has greeted; it uses no SDK."""
    return greeted(Mcp(), project, **options)


async def called(agent: Talker, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answers."""
    result = await agent.request("tools/call", {"name": tool, "arguments": arguments})
    assert not result.get("isError"), result["content"]
    answer: dict[str, Any] = result["structuredContent"]
    return answer


async def miscalled(agent: Talker, tool: str, **arguments: Any) -> str:
    """What a tool says of a call that is wrong."""
    result = await agent.request("tools/call", {"name": tool, "arguments": arguments})
    assert result["isError"]
    text: str = result["content"][0]["text"]
    return text

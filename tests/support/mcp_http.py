"""`serve mcp --port` in this process, so that a test can shorten its time limits, and its clients: the SDK's own, and plain HTTP."""

import asyncio
import contextlib
import itertools
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
from attrs import frozen
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from msp_bridge.jsonrpc.trace import Trace
from msp_bridge.mcp.http_requests import HttpGate
from msp_bridge.mcp.http_server import serve_http
from msp_bridge.mcp.server import AgentServer
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.open_workspaces import OpenWorkspaces
from support.msp_client import LONG
from support.servers import ScriptedProject
from support.socket_servers import TOKEN, listening, the_token

BEARER = {"Authorization": f"Bearer {TOKEN}"}
HEADERS = {**BEARER, "Accept": "application/json, text/event-stream"}
MODERN = "2026-07-28"
IDS = itertools.count(1)
ABOUT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "plain", "version": "1"}}


@frozen
class HttpServer:
    """Where it listens."""

    port: int
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/mcp"

    @contextlib.asynccontextmanager
    async def agent(self, mode: str = "legacy", **options: Any) -> AsyncIterator[Client]:
        """The SDK's client; `legacy` begins with `initialize`, as until 2025-11-25, and `auto` with `server/discover`."""
        async with httpx2.AsyncClient(headers=BEARER, timeout=LONG, **options) as http, asyncio.timeout(LONG):
            async with Client(streamable_http_client(self.url, http_client=http), mode=mode) as client:
                yield client

    @contextlib.asynccontextmanager
    async def plain(self, **options: Any) -> AsyncIterator[httpx2.AsyncClient]:
        """A client that knows nothing of MCP. It sends the token."""
        options = {"headers": HEADERS, "timeout": LONG, "base_url": self.url} | options
        async with httpx2.AsyncClient(**options) as client:
            yield client


@contextlib.asynccontextmanager
async def http_server(
    project: ScriptedProject, directory: Path, tls: ssl.SSLContext | None = None, trace: Trace | None = None
) -> AsyncIterator[HttpServer]:
    """Ends in order."""
    workspaces = OpenWorkspaces(project.root, Configuration(adapters=("scripted",), jobs=2))
    agent, gate = AgentServer(project.root, workspaces), HttpGate(the_token(directory), "127.0.0.1")
    async with listening(lambda at: serve_http(agent, workspaces, at, gate, tls, trace)) as (port, _):
        yield HttpServer(port, "https" if tls else "http")


def message(method: str, id: int | None = None, **params: Any) -> dict[str, Any]:
    """A request, or a notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params} | ({} if id is None else {"id": id})


def calling(tool: str) -> dict[str, Any]:
    """A request that calls a tool, with an id of its own."""
    return message("tools/call", next(IDS), name=tool, arguments={})


def calling_alone(tool: str) -> dict[str, Any]:
    """The same without a session, since version 2026-07-28: arguments of `httpx2`."""
    about = {"protocolVersion": MODERN, "clientCapabilities": {}}
    call = calling(tool)
    call["params"]["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in about.items()}
    return {"json": call, "headers": {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": tool}}


async def hanging(client: httpx2.AsyncClient, mode: str) -> None:
    """Call `test_mutants`, and wait until the server is gone."""
    with contextlib.suppress(httpx2.HTTPError):
        if mode == "auto":
            await client.post("", **calling_alone("test_mutants"))
        else:
            await client.post("", json=calling("test_mutants"), headers=await session_of(client))


async def session_of(client: httpx2.AsyncClient) -> dict[str, str]:
    """Begin a session; the header that names it."""
    answer = await client.post("", json=message("initialize", next(IDS), **ABOUT))
    assert answer.status_code == 200, answer.text
    session = {"Mcp-Session-Id": answer.headers["mcp-session-id"]}
    assert (await client.post("", json=message("notifications/initialized"), headers=session)).status_code == 202
    return session


async def structured(client: httpx2.AsyncClient, session: dict[str, str], tool: str) -> dict[str, Any]:
    """What a tool answers."""
    answer = await client.post("", json=calling(tool), headers=session)
    (data,) = (line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: "))
    result: dict[str, Any] = json.loads(data)["result"]["structuredContent"]
    return result

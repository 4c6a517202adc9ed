"""`serve mcp --port`: which requests get to MCP, and how much of a server a client may use up."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.mcp_http import ABOUT, BEARER, HEADERS, HttpServer, calling, http_server, message, session_of, structured
from support.msp_client import LONG
from support.servers import ScriptedProject, launched
from support.socket_servers import TOKEN, the_token, token_file

from msp_bridge.access.credentials import redact_token
from msp_bridge.jsonrpc.trace import Trace
from msp_bridge.mcp import http_requests
from msp_bridge.mcp import http_server as module
from msp_bridge.mcp.http_requests import HttpGate
from msp_bridge.mcp.server import MAX_MESSAGE

PING = message("ping", 1)
INITIALIZE = message("initialize", 1, **ABOUT)
WRONG = "f" * len(TOKEN)


async def bytes_of(server: HttpServer, sent: bytes) -> bytes:
    """All that a connection is answered until the server closes it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(sent)
        async with asyncio.timeout(LONG):
            return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("headers", "path", "status", "why"),
    [
        ({}, "/mcp", 401, "send the header `Authorization: Bearer TOKEN`"),
        ({"Authorization": f"Basic {TOKEN}"}, "/mcp", 401, "send the header"),
        ({"Authorization": f"Bearer {WRONG}"}, "/mcp", 401, "this is not the server's token"),
        ({**BEARER, "Origin": "http://localhost:8000"}, "/mcp", 403, "web pages are not served"),
        ({**BEARER, "Origin": "null"}, "/mcp", 403, "web pages are not served"),
        ({**BEARER, "Host": "evil.example:80"}, "/mcp", 421, "connect to 127.0.0.1"),
        ({**BEARER, "Host": "127.0.0.1.evil.example"}, "/mcp", 421, "connect to 127.0.0.1"),
        (BEARER, "/", 404, "MCP is served at /mcp"),
    ],
)
async def test_what_is_not_for_mcp_is_refused_with_the_reason(
    headers: dict[str, str], path: str, status: int, why: str, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_requests, "WRONG_TOKEN_DELAY_S", 0)
    async with httpx2.AsyncClient(timeout=LONG) as client:
        for method in ("POST", "GET", "DELETE", "OPTIONS"):
            answer = await client.request(method, server.url.replace("/mcp", path), headers=headers, content=b"{}")
            assert (answer.status_code, answer.headers["connection"]) == (status, "close")
            assert why in answer.text
            assert TOKEN not in answer.text


@pytest.mark.parametrize(
    ("method", "headers", "content", "status", "remedy"),
    [
        ("POST", {}, json.dumps(PING), 400, "send `initialize`, and its Mcp-Session-Id"),
        ("POST", {"Mcp-Session-Id": "0"}, json.dumps(PING), 404, "send `initialize` for a new session"),
        ("POST", {"Content-Type": "text/plain"}, json.dumps(PING), 400, "send `Content-Type: application/json`"),
        ("POST", {"Accept": "application/json"}, json.dumps(INITIALIZE), 406, "application/json, text/event-stream`"),
        ("POST", {}, "{", 400, "send one message of JSON-RPC 2.0"),
        ("PUT", {}, "", 405, "POST messages"),
    ],
)
async def test_an_error_of_the_sdk_says_what_to_do(
    method: str, headers: dict[str, str], content: str, status: int, remedy: str, server: HttpServer
) -> None:
    async with server.plain(headers={**HEADERS, "Content-Type": "application/json", **headers}) as client:
        answer = await client.request(method, server.url, content=content)
    assert (answer.status_code, remedy in answer.text) == (status, True), answer.text


async def test_behind_a_tunnel_the_host_may_have_another_port(server: HttpServer) -> None:
    for host in ("localhost:7", "127.0.0.1", "127.0.0.1:5680", "[::1]:5680", "[::1]", "LocalHost:80"):
        async with server.plain(headers={**HEADERS, "Host": host}) as client:
            await session_of(client)


async def test_a_server_for_other_machines_may_have_any_name(tmp_path: Path) -> None:
    headers = [(b"host", b"devbox.example:5680"), (b"authorization", f"Bearer {TOKEN}".encode())]
    await HttpGate(the_token(tmp_path), None).check({"headers": headers, "path": "/mcp"})


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_that_is_too_long_is_refused(chunked: bool, server: HttpServer) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(MAX_MESSAGE // 4096 + 1):
            yield b" " * 4096

    content: Any = parts() if chunked else b" " * (MAX_MESSAGE + 1)
    async with server.plain() as client:
        answer = await client.post("", content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code == 413
        assert f"{MAX_MESSAGE} bytes at most" in answer.text
        await session_of(client)


async def test_a_body_without_an_end_is_not_read_for_ever(server: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_requests, "MAX_READ", MAX_MESSAGE + 1)
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    chunk = f"{MAX_MESSAGE + 2:x}\r\n".encode() + b" " * (MAX_MESSAGE + 2)
    assert (await bytes_of(server, head.encode() + chunk)).startswith(b"HTTP/1.1 413 ")


async def test_a_body_that_does_not_come_is_not_waited_for(server: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_requests, "MESSAGE_TIMEOUT_S", 0.01)
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 10\r\n\r\n"
    assert (await bytes_of(server, head.encode())).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("sent", [b"", b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"], ids=["nothing", "half a head"])
async def test_a_connection_without_the_token_is_closed(
    sent: bytes, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AUTHENTICATION_TIMEOUT_S", 0.01)
    with contextlib.suppress(ConnectionError):
        assert await bytes_of(server, sent) == b""


async def test_a_head_that_is_too_long_is_refused(server: HttpServer) -> None:
    with contextlib.suppress(ConnectionError):  # of what it has not read
        answer = await bytes_of(server, b"GET /mcp HTTP/1.1\r\nX: " + b"x" * module.MAX_HEAD)
        assert answer.startswith(b"HTTP/1.1 400 ")


async def test_one_connection_too_many_is_refused_until_another_ends(
    project: ScriptedProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_CONNECTIONS", 1)
    async with http_server(project, tmp_path) as server:
        async with server.plain() as one, server.plain() as other:
            await session_of(one)
            refused = await other.post("", json=PING)
            assert refused.status_code == 503
            assert "1 clients are connected already" in refused.text
        async with asyncio.timeout(LONG), server.plain() as another:
            while (await another.post("", json=PING)).status_code == 503:
                await asyncio.sleep(0)


async def test_one_session_too_many_is_refused_until_another_ends(
    project: ScriptedProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_SESSIONS", 1)
    async with http_server(project, tmp_path) as server, server.plain() as client:
        session = await session_of(client)
        with pytest.raises(AssertionError, match="Too many open sessions"):
            await session_of(client)
        assert (await client.delete("", headers=session)).status_code == 200
        await session_of(client)


@pytest.mark.parametrize("content", [b"no json", b"[]", b'{"jsonrpc": "2.0", "id": 1}', b"[" * 100_000])
async def test_what_is_no_message_is_answered_and_the_session_goes_on(content: bytes, server: HttpServer) -> None:
    async with server.plain() as client:
        session = await session_of(client)
        answer = await client.post("", content=content, headers={**session, "Content-Type": "application/json"})
        assert answer.status_code == 400
        assert "error" in answer.json()
        assert len(answer.content) < 4096
        assert (await structured(client, session, "survivors"))["tested"] == 0


async def test_over_http_the_trace_has_every_message_and_no_token(project: ScriptedProject, tmp_path: Path) -> None:
    project.write("a.py", "1")
    file = tmp_path / "trace.jsonl"
    trace = Trace(file, redact_token)
    async with http_server(project, tmp_path, trace=trace) as server, server.plain() as client:
        await structured(client, await session_of(client), "survivors")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    sent = [line["message"] for line in lines if line.get("direction") == "in"]
    assert [each["method"] for each in sent] == ["initialize", "notifications/initialized", "tools/call"]
    answers = [line["message"]["id"] for line in lines if line.get("direction") == "out"]
    assert answers == [each["id"] for each in sent if "id" in each]
    assert TOKEN not in file.read_text()


async def test_agents_over_http_need_a_token_and_the_token_is_in_no_log(
    project: ScriptedProject, tmp_path: Path
) -> None:
    listening = ("serve", "mcp", "--port", "0", "--adapter", "scripted")
    async with launched(project.root, *listening, forked=True) as server:
        assert await server.exited() == 2
    assert "needs a token when it listens: add --token-file FILE, or set MSP_BRIDGE_TOKEN" in " ".join(server.said)
    options = ("--token-file", str(token_file(tmp_path)), "--log-level", "debug")
    async with launched(project.root, *listening, *options, forked=True) as server:
        _, port = await server.address()
        async with HttpServer(port).plain() as client:
            await structured(client, await session_of(client), "survivors")
            assert (
                await client.post("", json=calling("survivors"), headers={"Authorization": WRONG})
            ).status_code == 401
        await server.terminated()
    assert TOKEN not in "\n".join(server.said)

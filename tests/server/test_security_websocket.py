"""`serve websocket`: the same server as on a socket, one message a frame; its client is that of the package websockets."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.msp_client import LONG, Client, framed
from support.servers import DIGIT, LOOK, ScriptedProject, launched
from support.socket_servers import TOKEN, SocketServer, socket_server, the_token, tls_of_both
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from msp_bridge.access import gate
from msp_bridge.jsonrpc import streams
from msp_bridge.jsonrpc.framing import FrameDecoder
from msp_bridge.jsonrpc.websocket import WebSocketFraming

MANY = 3000
PING, PONG = b"\x89\x00", b"\x8a\x80\x00\x00\x00\x00"  # a client's frames are masked


class Frames:
    """A Wire for the tests' own client, whose messages have a Content-Length."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self._decoder = FrameDecoder()

    async def read(self) -> bytes:
        try:
            message = await self.connection.recv()
        except ConnectionClosed:
            return b""
        assert isinstance(message, str), "one message a text frame"
        return framed(message.encode())

    async def write(self, data: bytes) -> None:
        for body in self._decoder.feed(data):
            await self.connection.send(body.decode())

    async def aclose(self) -> None:
        await self.connection.close()


@contextlib.asynccontextmanager
async def connected(port: int, tls: ssl.SSLContext | None = None, **options: Any) -> AsyncIterator[Client]:
    address = f"{'wss' if tls else 'ws'}://127.0.0.1:{port}/"
    async with connect(address, ssl=tls, max_size=None, compression="deflate", **options) as connection:
        yield Client(Frames(connection))


@contextlib.asynccontextmanager
async def server_of(project: ScriptedProject, **options: Any) -> AsyncIterator[SocketServer]:
    async with socket_server(project, framing=WebSocketFraming, **options) as server:
        yield server


async def test_a_session_over_websocket(project: ScriptedProject) -> None:
    project.write("a.py", "1")
    options = ("serve", "websocket", "--port", "0", "--adapter", "scripted")
    async with launched(project.root, *options, stdin=asyncio.subprocess.DEVNULL) as server:
        _, port = await server.address()
        async with connected(port) as client:
            assert await client.request("configure") == {"version": "0.4.0"}
            assert await client.request("mutationTest") == {"files": {}}
            assert [mutant["status"] for _, mutant in client.take_results()] == ["Killed"]
            server.process.terminate()
            assert await client.ended() == b""
            assert client.wire.connection.close_code == 1001  # type: ignore[attr-defined]
        assert await server.exited() == 0, server.said


async def test_over_websocket_a_token_and_tls_are_wanted_first(project: ScriptedProject, tmp_path: Path) -> None:
    project.write("a.py", "1")
    tls, client_tls = tls_of_both(tmp_path)
    async with server_of(project, token=the_token(tmp_path), tls=tls) as server:
        async with connected(server.port, client_tls) as unauthenticated:
            code, message = await unauthenticated.refused("configure")
            assert (code, "needs a token" in message) == (-32000, True)
            assert await unauthenticated.ended() == b""
            assert unauthenticated.wire.connection.close_code == 1008  # type: ignore[attr-defined]
        async with connected(server.port, client_tls) as client:
            assert await client.request("authenticate", {"token": TOKEN}) == {}
            await client.request("mutationTest")
            assert len(client.take_results()) == 1


async def test_no_message_is_long_before_the_token_has_come(project: ScriptedProject, tmp_path: Path) -> None:
    async with server_of(project, token=the_token(tmp_path)) as server, connected(server.port) as unauthenticated:
        await unauthenticated.ask("authenticate", {"token": "x" * gate.AUTHENTICATION_LIMITS.body})
        assert await unauthenticated.ended() == b""
        assert unauthenticated.wire.connection.close_code == 1009  # type: ignore[attr-defined]


async def test_a_web_page_is_refused(project: ScriptedProject) -> None:
    async with server_of(project) as server:
        with pytest.raises(InvalidStatus) as refused:
            async with connected(server.port, origin="https://example.org"):
                pass
        assert refused.value.response.status_code == 403


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (framed({"jsonrpc": "2.0", "id": 1, "method": "configure"}), b""),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 426 Upgrade Required\r\n"),
    ],
    ids=["a message", "a browser"],
)
async def test_what_is_no_websocket_is_refused(
    sent: bytes, answer: bytes, project: ScriptedProject, caplog: pytest.LogCaptureFixture
) -> None:
    async with server_of(project) as server:
        client = await server.connect()
        await client.send(sent)
        assert (await client.ended())[: len(answer)] == answer
    assert any("no handshake of its framing" in record.message for record in caplog.records)


async def test_a_handshake_that_does_not_come_ends_the_connection(
    project: ScriptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "HANDSHAKE_TIMEOUT_S", 0.01)
    async with server_of(project) as server:
        client = await server.connect()
        assert await client.ended() == b""


async def test_over_websocket_there_are_not_too_many_clients(
    project: ScriptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "MAX_CLIENTS", 1)
    async with server_of(project) as server, connected(server.port) as first:
        await first.request("configure")
        async with connected(server.port) as second:
            answer = await second.receive()
            assert "1 clients are connected already" in answer["error"]["message"]
            assert await second.ended() == b""
        await first.request("configure")


async def test_a_message_may_come_in_fragments_and_with_pings_in_between(project: ScriptedProject) -> None:
    async with server_of(project) as server, connected(server.port) as client:
        connection: ClientConnection = client.wire.connection  # type: ignore[attr-defined]
        message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "configure"})

        async def parts() -> AsyncIterator[str]:
            for at in range(0, len(message), 7):
                yield message[at : at + 7]
                await (await connection.ping())

        await connection.send(parts())
        assert (await client.answer(1))["result"] == {"version": "0.4.0"}


@pytest.mark.parametrize("parts", [[b'{"id": "\xff"}'], [b'{"id": "\xe2\x82', b'"}']], ids=["whole", "fragments"])
async def test_a_text_that_is_not_utf_8_ends_the_connection(parts: list[bytes], project: ScriptedProject) -> None:
    async with server_of(project) as server, connected(server.port) as client:
        connection: ClientConnection = client.wire.connection  # type: ignore[attr-defined]
        await connection.send(parts if len(parts) > 1 else parts[0], text=True)
        assert await client.ended() == b""
        assert connection.close_code == 1007


async def test_a_letter_may_be_cut_in_two_by_fragments(project: ScriptedProject) -> None:
    async with server_of(project) as server, connected(server.port) as client:
        message = '{"jsonrpc": "2.0", "id": "€", "method": "configure"}'.encode()
        cut = message.index("€".encode()) + 1
        await client.wire.connection.send([message[:cut], message[cut:]], text=True)  # type: ignore[attr-defined]
        assert (await client.answer("€"))["result"] == {"version": "0.4.0"}
        server.serving.cancel()
        assert await client.ended() == b""
        assert client.wire.connection.close_code == 1001  # type: ignore[attr-defined]


async def test_a_peer_that_answers_no_ping_is_gone(
    project: ScriptedProject, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(streams, "PROBE_S", 0.5)
    async with server_of(project) as server:
        peer = await server.connect()
        handshake = (
            b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        await peer.send(handshake)
        received = b""
        while not received.endswith(PING):
            received += await peer.wire.read()
        await peer.send(PONG)  # as long as it answers, it is asked again
        assert await peer.wire.read() == PING
        await peer.ended()
    assert any("hasn't answered a ping" in record.message for record in caplog.records)


async def test_over_websocket_a_client_that_reads_nothing_stops_its_tool(project: ScriptedProject) -> None:
    project.write("many.py", "1\n" * MANY)
    project.script({**DIGIT, "details": {"status_reason": "x" * 5000}}, tool="flood", lines=True)
    async with server_of(project) as server:
        async with connected(server.port, max_queue=1) as client:
            await client.ask("mutationTest")
            begun = [-1]
            while len(begun) < 5 or len(set(begun[-4:])) > 1:  # looking too early only weakens the test
                await asyncio.sleep(10 * LOOK)
                begun.append(sum(line.startswith("started") for line in project.log))
            assert begun[-1] < MANY
            client.wire.connection.transport.abort()  # type: ignore[attr-defined]
        async with asyncio.timeout(LONG):
            while project.alive():
                await asyncio.sleep(LOOK)

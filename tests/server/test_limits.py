"""What one client, or many, can take from a server has a limit, and an error says which."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.msp_client import Client, ReaderWriter, Refused, framed
from support.servers import ScriptedProject, Server, on_socket, on_stdio, over_memory, until
from support.socket_servers import TOKEN, SocketServer, socket_server, the_token

from msp_bridge.access import gate
from msp_bridge.jsonrpc.framing import MAX_BODY, MAX_HEADER
from msp_bridge.jsonrpc.streams import KEEPALIVE, SocketStream

VERSION = {"version": "0.4.0"}


@pytest.mark.parametrize("token", [False, True], ids=["without a token", "with a token"])
async def test_one_client_too_many_is_rejected_until_another_leaves(
    token: bool, project: ScriptedProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gate, "MAX_CLIENTS", 2)
    async with socket_server(project, token=the_token(tmp_path) if token else None) as server:
        comes = server.authenticated if token else server.connect
        clients = [await comes() for _ in range(2)]
        for client in clients:
            assert await client.request("configure") == VERSION
        refused = await comes()
        answer = await refused.receive()
        assert answer == {
            "jsonrpc": "2.0",
            "id": None,
            "error": {
                "code": -32000,
                "message": "2 clients are connected already; close one of them, or start another server; "
                "closing the connection",
            },
        }
        assert await refused.ended() == b""
        assert await clients[1].request("configure") == VERSION
        await clients[0].wire.aclose()
        assert await clients[0].ended() == b""
        again = await comes()
        assert await again.request("configure") == VERSION


async def burst(server: SocketServer, count: int, message: bytes) -> list[Client]:
    """Clients that have all connected, and sent `message`, before the server could accept one of them."""
    sockets = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(count)]
    for each in sockets:
        each.sendall(message)
    return [Client(await server.connections.open(sock=each)) for each in sockets]


async def test_each_connection_of_a_burst_is_served_or_gets_the_reason(project: ScriptedProject) -> None:
    configure = framed({"jsonrpc": "2.0", "id": 1, "method": "configure"})
    async with socket_server(project) as server:
        answers = [await client.receive() for client in await burst(server, gate.MAX_CLIENTS + 8, configure)]
    assert [answer["result"] for answer in answers if "result" in answer] == [VERSION] * gate.MAX_CLIENTS
    assert [answer["error"]["code"] for answer in answers if "error" in answer] == [-32000] * 8


async def test_a_burst_of_clients_with_the_token_is_served(project: ScriptedProject, tmp_path: Path) -> None:
    messages = [{"id": 1, "method": "authenticate", "params": {"token": TOKEN}}, {"id": 2, "method": "configure"}]
    both = b"".join(framed({"jsonrpc": "2.0", **message}) for message in messages)
    async with socket_server(project, token=the_token(tmp_path)) as server:
        for client in await burst(server, gate.MAX_CLIENTS, both):
            assert (await client.answer(1))["result"] == {}
            assert (await client.answer(2))["result"] == VERSION


@pytest.mark.parametrize("channel", ["stdio", "tcp"])
async def test_a_client_that_sends_and_never_reads_costs_no_memory(channel: str, project: ScriptedProject) -> None:
    flood = b"".join(framed(b'{"jsonrpc":"2.0","id":%d,"method":"x"}' % number) for number in range(250_000))
    async with (on_stdio if channel == "stdio" else on_socket)(project) as (client, server):
        assert await client.request("configure") == VERSION
        process = psutil.Process(server.process.pid)
        before = process.memory_info().rss
        wire = client.wire if channel == "stdio" else await narrow_connection(server)
        assert isinstance(wire, ReaderWriter)
        sending = asyncio.create_task(wire.write(flood))
        unsent = -1
        while unsent != (unsent := wire.unsent):
            await asyncio.sleep(2)
        assert process.memory_info().rss - before < 50 * 1024**2
        assert not sending.done(), "the server reads no further"
        if channel == "tcp":
            assert await client.request("configure") == VERSION
        await server.terminated()
        sending.cancel()
        await asyncio.wait([sending])
        if channel == "tcp":
            wire.abort()


async def test_a_large_message_holds_up_no_other_client(project: ScriptedProject) -> None:
    project.write("a.py", "1")
    files = [{"path": f"some/where/module_{number}.py"} for number in range(15_000)]
    async with socket_server(project) as server:
        client, other = await server.connect(), await server.connect()
        large = await client.ask("discover", {"files": [*files, {"path": "a.py"}]})
        answered = asyncio.create_task(client.result(large))
        for _ in range(5):
            assert await other.request("configure") == VERSION
            assert not answered.done(), "it takes fifty times as long"
        assert list((await answered)["files"]) == ["a.py"]


@pytest.mark.parametrize("fault", [{}, 0], ids=str)
async def test_sigterm_ends_a_server_that_was_sent_many_faults_and_they_take_no_memory(
    project: ScriptedProject, fault: Any
) -> None:
    async with on_socket(project) as (client, server):
        assert await client.request("configure") == VERSION
        process = psutil.Process(server.process.pid)
        before = process.memory_info().rss
        with pytest.raises(Refused):
            await client.request("discover", {"files": [fault] * 200_000})
        assert process.memory_info().rss - before < 50 * 1024**2
        await server.terminated()


async def narrow_connection(server: Server) -> ReaderWriter:
    """A connection for which the operating system keeps little of what the client doesn't read."""
    host, port = await server.address()
    narrow = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    narrow.connect((host, port))
    return await server.connections.open(sock=narrow, limit=4096)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"x" * (MAX_HEADER + 5), f"the header is longer than {MAX_HEADER} bytes"),
        (b"Content-Length: %d\r\n\r\n" % (MAX_BODY + 1), f"is over the limit of {MAX_BODY}"),
        (b"Content-Length: " + b"9" * 4000 + b"\r\n\r\n", f"is over the limit of {MAX_BODY}"),
        (
            framed({"id": 1, "method": "discover", "params": {"unread": [[]] * 600_000}}),
            "a message has more than 1000000 strings, arrays, objects and",
        ),
    ],
    ids=["header", "length", "digits", "values"],
)
async def test_a_message_that_is_too_big_ends_its_own_connection_only(
    sent: bytes, expected: str, project: ScriptedProject
) -> None:
    async with socket_server(project) as server:
        client, other = await server.connect(), await server.connect()
        await client.send(sent)
        answer = await client.receive()
        assert answer["error"]["code"] == -32600
        assert expected in answer["error"]["message"]
        assert await client.ended() == b""
        assert await other.request("configure") == VERSION


@pytest.mark.parametrize("half", [b"Cont", b"Content-Length: 100\r\n\r\n", b'Content-Length: 100\r\n\r\n{"jsonrpc'])
async def test_a_message_that_is_never_finished_ends_its_connection(
    half: bytes, project: ScriptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "MESSAGE_TIMEOUT_S", 0.05)
    async with socket_server(project) as server:
        client = await server.connect()
        assert await client.request("configure") == VERSION
        await client.send(half)
        answer = await client.receive()
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)
        assert answer["error"]["message"].startswith("the rest of a message hasn't come for 0.05 s")
        assert await client.ended() == b""


@pytest.mark.parametrize("token", [False, True], ids=["without a token", "with a token"])
async def test_a_client_may_be_silent_before_its_first_message_and_after_it(
    token: bool, project: ScriptedProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("MESSAGE_TIMEOUT_S", "HANDSHAKE_TIMEOUT_S", "AUTHENTICATION_TIMEOUT_S"):
        monkeypatch.setattr(gate, name, 0.05)
    async with socket_server(project, token=the_token(tmp_path) if token else None) as server:
        client = await (server.authenticated() if token else server.connect())
        for _ in range(2):
            await asyncio.sleep(0.15)
            assert await client.request("configure") == VERSION


async def test_an_editor_on_stdio_may_stop_in_the_middle_of_a_message(
    project: ScriptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A debugger holds it, perhaps; there is nobody else to protect."""
    monkeypatch.setattr(gate, "MESSAGE_TIMEOUT_S", 0.01)
    message = framed({"jsonrpc": "2.0", "id": 1, "method": "configure"})
    async with over_memory(project) as client:
        await client.send(message[:40])
        await asyncio.sleep(0.1)
        await client.send(message[40:])
        assert (await client.answer(1))["result"] == VERSION


async def test_a_client_whose_machine_has_gone_is_noticed(project: ScriptedProject) -> None:
    ours, theirs = socket.create_server(("127.0.0.1", 0)), socket.socket()
    with ours, theirs:
        theirs.connect(ours.getsockname())
        accepted, _ = ours.accept()
        stream = await SocketStream.accepted(accepted, None, 1)
        try:
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            for name, value in KEEPALIVE.items():
                if hasattr(socket, name):
                    assert accepted.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) == value
        finally:
            await stream.aclose()
    assert KEEPALIVE["TCP_KEEPIDLE"] + KEEPALIVE["TCP_KEEPINTVL"] * KEEPALIVE["TCP_KEEPCNT"] <= 120


async def test_a_server_that_runs_out_of_descriptors_waits_for_some(
    project: ScriptedProject, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("msp_bridge.access.gate.RETRY_S", 0.01)
    async with socket_server(project) as server:
        loop = asyncio.get_running_loop()
        accept, full = loop.sock_accept, [True]

        async def accept_or_fail(listening: socket.socket) -> Any:
            if full[0]:
                raise OSError(24, "Too many open files")
            return await accept(listening)

        monkeypatch.setattr(loop, "sock_accept", accept_or_fail)
        first = await server.connect()  # taken by the call that was already waiting
        assert await first.request("configure") == VERSION
        second = await server.connect()
        await until(lambda: "can't accept a client ([Errno 24] Too many open files); trying again" in caplog.text)
        full[0] = False
        assert await second.request("configure") == VERSION

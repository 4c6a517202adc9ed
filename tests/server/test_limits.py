"""What one client, or many, can take from a server has a limit, and whoever meets it is told."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from support.msp_client import Refused, framed
from support.reception import reception, the_token
from support.servers import ScriptedProject, over_memory, until

from msp_bridge.access import crowd, door
from msp_bridge.jsonrpc import connection
from msp_bridge.jsonrpc.framing import MAX_BODY, MAX_HEADER
from msp_bridge.jsonrpc.streams import KEEPALIVE, SocketStream

VERSION = {"version": "0.4.0"}


async def test_a_client_too_many_is_told_and_has_a_place_when_another_leaves(
    project: ScriptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowd, "MAX_CLIENTS", 2)
    async with reception(project) as server:
        clients = [await server.connect() for _ in range(2)]
        for client in clients:
            assert await client.request("configure") == VERSION
        refused = await server.connect()
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
        again = await server.connect()
        assert await again.request("configure") == VERSION


async def test_clients_are_counted_with_a_token_too(
    project: ScriptedProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(crowd, "MAX_CLIENTS", 1)
    async with reception(project, token=the_token(tmp_path)) as server:
        first = await server.authenticated()
        second = await server.authenticated()
        assert (await second.receive())["error"]["code"] == -32000
        assert await second.ended() == b""
        assert await first.request("configure") == VERSION


async def test_a_request_too_many_is_refused_and_the_others_go_on(
    project: ScriptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_IN_FLIGHT", 3)
    project.write("a.py", "1")
    project.script(discovery={"after": "gate"})
    async with reception(project) as server:
        client, other = await server.connect(), await server.connect()
        waiting = [await client.ask("discover") for _ in range(3)]
        with pytest.raises(Refused) as refused:
            await client.request("configure")
        assert refused.value.code == -32803
        assert refused.value.message == "3 requests are running already; wait for one of them, or cancel it"
        assert await other.request("configure") == VERSION, "the limit is each client's own"
        project.open("gate")
        for id in waiting:
            assert len((await client.result(id))["files"]) == 1
        assert await client.request("configure") == VERSION


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"x" * (MAX_HEADER + 5), f"the header is longer than {MAX_HEADER} bytes"),
        (b"Content-Length: %d\r\n\r\n" % (MAX_BODY + 1), f"is over the limit of {MAX_BODY}"),
        (b"Content-Length: " + b"9" * 4000 + b"\r\n\r\n", f"is over the limit of {MAX_BODY}"),
    ],
)
async def test_a_message_that_is_too_big_is_told_and_ends_its_own_connection_only(
    sent: bytes, told: str, project: ScriptedProject
) -> None:
    async with reception(project) as server:
        client, other = await server.connect(), await server.connect()
        await client.send(sent)
        answer = await client.receive()
        assert answer["error"]["code"] == -32600
        assert told in answer["error"]["message"]
        assert await client.ended() == b""
        assert await other.request("configure") == VERSION


@pytest.mark.parametrize("half", [b"Cont", b"Content-Length: 100\r\n\r\n", b'Content-Length: 100\r\n\r\n{"jsonrpc'])
async def test_a_message_that_is_never_finished_ends_its_connection(
    half: bytes, project: ScriptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "SILENCE", 0.05)
    async with reception(project) as server:
        client = await server.connect()
        assert await client.request("configure") == VERSION
        await client.send(half)
        answer = await client.receive()
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)
        assert answer["error"]["message"].startswith("the rest of a message hasn't come for 0.05 s")
        assert await client.ended() == b""


async def test_a_client_may_be_silent_before_its_first_message_and_after_it(
    project: ScriptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "SILENCE", 0.05)
    monkeypatch.setattr(door, "HANDSHAKE", 0.05)
    async with reception(project) as server:
        client = await server.connect()
        for _ in range(2):
            await asyncio.sleep(0.15)
            assert await client.request("configure") == VERSION


async def test_an_editor_on_stdio_may_stop_in_the_middle_of_a_message(
    project: ScriptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A debugger holds it, perhaps; there is nobody else to protect."""
    monkeypatch.setattr(door, "SILENCE", 0.01)
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


async def test_a_server_that_runs_out_of_descriptors_goes_on_when_there_are_some_again(
    project: ScriptedProject, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("msp_bridge.socket_server.RETRY", 0.01)
    async with reception(project) as server:
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

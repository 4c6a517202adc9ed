"""The gate counts its clients, up to the limit, and serves each connection until the server stops."""

import asyncio
import contextlib
import logging
import socket

import pytest
from support.servers import until

from msp_bridge.access import gate
from msp_bridge.access.gate import ClientRejected, ConnectionLimits, serve_connections


def test_as_many_clients_as_the_limit_are_served_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "MAX_CLIENTS", 3)
    limits = ConnectionLimits()
    for _ in range(2):
        with contextlib.ExitStack() as clients:
            for _ in range(3):
                clients.enter_context(limits.client())
            with pytest.raises(ClientRejected, match="3 clients are connected already") as rejected:
                clients.enter_context(limits.client())
            assert rejected.value.id is None
    with pytest.raises(ClientRejected, match=r"^0 clients are connected already"), ConnectionLimits(0).client():
        pass


async def test_each_connection_is_served_with_its_number_until_the_server_stops(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    served = []

    async def serve(connection: socket.socket, address: str, number: int) -> None:
        served.append((address, number))
        with connection:
            await asyncio.Event().wait()

    stopping = asyncio.get_running_loop().create_future()
    with contextlib.ExitStack() as sockets:
        listening = sockets.enter_context(socket.create_server(("127.0.0.1", 0)))
        listening.setblocking(False)
        port = listening.getsockname()[1]
        serving = asyncio.create_task(serve_connections("MSP", [listening], serve, stopping))
        clients = []
        for _ in range(2):
            clients.append(sockets.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30)))
            await until(lambda: len(served) == len(clients))
        addresses = ["{}:{}".format(*client.getsockname()) for client in clients]
        assert served == [(addresses[0], 1), (addresses[1], 2)]
        assert {task.get_name() for task in asyncio.all_tasks()} > {"accepting", "client 1", "client 2"}
        stopping.set_result(None)
        await asyncio.wait_for(serving, 30)
        assert [client.recv(1) for client in clients] == [b"", b""]
        assert listening.fileno() == -1
    assert caplog.messages == [f"serving MSP on 127.0.0.1:{port}"]

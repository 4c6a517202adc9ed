"""Accepting connections on sockets that listen, each served in a task of its own."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import socket
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from msp_bridge.access.addresses import address_text
from msp_bridge.concurrency import cancel_all

log = logging.getLogger(__name__)

RETRY_S = 1.0  # until the next client is accepted when the system can't give us a connection

Serve = Callable[[socket.socket, str, int], Coroutine[Any, Any, None]]  # a connection, its address, its number from 1


async def serve_connections(
    title: str, listening: Sequence[socket.socket], serve: Serve, stopping: asyncio.Future[Any]
) -> None:
    """`serve` every connection until `stopping` is done, then close the sockets, and end what is still served."""
    clients: set[asyncio.Task[None]] = set()
    numbers = itertools.count(1)

    async def accept(on: socket.socket) -> None:
        while True:
            connection, address = await _accepted(on)
            number = next(numbers)
            client = asyncio.create_task(serve(connection, address_text(address), number), name=f"client {number}")
            clients.add(client)
            client.add_done_callback(clients.discard)

    with contextlib.ExitStack() as sockets:
        accepting = []
        for on in listening:
            sockets.callback(on.close)
            accepting.append(asyncio.create_task(accept(on), name="accepting"))
            log.info("serving %s on %s", title, address_text(on.getsockname()))
        try:
            await asyncio.wait([stopping, *accepting], return_when=asyncio.FIRST_COMPLETED)
        finally:  # first the sockets: nobody new comes while the clients' tools end
            await cancel_all(accepting)
            sockets.close()
            await cancel_all(clients)
        for task in accepting:
            if not task.cancelled():
                task.result()


async def _accepted(on: socket.socket) -> tuple[socket.socket, Any]:
    while True:
        try:
            return await asyncio.get_running_loop().sock_accept(on)
        except ConnectionError:  # it has left again
            continue
        except OSError as error:
            log.error("can't accept a client (%s); trying again in %g s", error, RETRY_S)
            await asyncio.sleep(RETRY_S)

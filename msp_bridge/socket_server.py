"""Serving on a socket: accepts connections until a signal comes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import socket
from typing import Any

from msp_bridge.access.addresses import Addresses, address_text
from msp_bridge.access.gate import ClientRejected, ConnectionGate
from msp_bridge.concurrency import cancel_all
from msp_bridge.dialects.dialect import Dialect
from msp_bridge.jsonrpc.trace import PeerTrace, Trace
from msp_bridge.server import answer, until_signal
from msp_bridge.workspace.open_workspaces import OpenWorkspaces

log = logging.getLogger(__name__)

RETRY_S = 1.0  # until the next client is accepted when the system can't give us a connection


async def serve_socket(
    workspaces: OpenWorkspaces,
    dialect: type[Dialect],
    addresses: Addresses,
    gate: ConnectionGate,
    trace: Trace | None = None,
) -> None:
    """Serve every client that connects to one of `addresses` and is accepted by `gate`, until a signal comes.

    Raises BridgeError when it can't listen there.
    """
    clients: set[asyncio.Task[None]] = set()
    numbers = itertools.count(1)

    async def accept(listening: socket.socket) -> None:
        while True:
            connection, address = await _accepted(listening)
            number = next(numbers)
            peer = None if trace is None else trace.peer(number)
            client = asyncio.create_task(
                _serve(connection, address_text(address), gate, workspaces, dialect, peer), name=f"client {number}"
            )
            clients.add(client)
            client.add_done_callback(clients.discard)

    async with until_signal() as stopping, contextlib.aclosing(workspaces), contextlib.AsyncExitStack() as sockets:
        accepting = []
        for listening in addresses.listen():
            sockets.callback(listening.close)
            accepting.append(asyncio.create_task(accept(listening), name="accepting"))
            log.info("serving %s%s on %s", dialect.title, gate.framing.title, address_text(listening.getsockname()))
        try:
            await asyncio.wait([stopping, *accepting], return_when=asyncio.FIRST_COMPLETED)
        finally:  # first the sockets: nobody new comes while the clients' tools end
            await cancel_all(accepting)
            await sockets.aclose()
            await cancel_all(clients)
        for task in accepting:
            if not task.cancelled():
                task.result()


async def _accepted(listening: socket.socket) -> tuple[socket.socket, Any]:
    while True:
        try:
            return await asyncio.get_running_loop().sock_accept(listening)
        except ConnectionError:  # it has left again
            continue
        except OSError as error:
            log.error("can't accept a client (%s); trying again in %g s", error, RETRY_S)
            await asyncio.sleep(RETRY_S)


async def _serve(
    connection: socket.socket,
    address: str,
    gate: ConnectionGate,
    workspaces: OpenWorkspaces,
    dialect: type[Dialect],
    trace: PeerTrace | None,
) -> None:
    """One connection, from its first byte to its last. An error in it affects no other."""
    try:
        async with gate.client(connection, trace) as messages:
            log.info("client connected: %s", address)
            _trace(trace, "connected", address=address)
            try:
                await answer(messages, workspaces, dialect)
            finally:
                log.info("client disconnected: %s", address)
                _trace(trace, "disconnected")
    except ClientRejected as rejected:
        log.warning("rejected %s: %s", address, rejected.reason)
        _trace(trace, "rejected", address=address, reason=rejected.reason)
    except Exception:
        log.exception("serving the client %s failed", address)


def _trace(trace: PeerTrace | None, event: str, **facts: Any) -> None:
    if trace is not None:
        trace.event(event, **facts)

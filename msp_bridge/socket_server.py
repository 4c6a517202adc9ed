"""Serving on a socket: accepts connections until a signal comes."""

import contextlib
import logging
import socket
from typing import Any

from msp_bridge.access.addresses import Addresses
from msp_bridge.access.gate import ClientRejected, ConnectionGate, serve_connections
from msp_bridge.dialects.dialect import Dialect
from msp_bridge.jsonrpc.trace import PeerTrace, Trace
from msp_bridge.server import answer, until_signal
from msp_bridge.workspace.open_workspaces import OpenWorkspaces

log = logging.getLogger(__name__)


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

    async def serve(connection: socket.socket, address: str, number: int) -> None:
        peer = None if trace is None else trace.peer(number)
        await _serve(connection, address, gate, workspaces, dialect, peer)

    async with until_signal() as stopping, contextlib.aclosing(workspaces):
        title = f"{dialect.title}{gate.framing.title}"
        await serve_connections(title, addresses.listen(), serve, stopping)


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

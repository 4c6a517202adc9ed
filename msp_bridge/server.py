"""Serving: listens on stdio or a socket, gives each client a Session, and ends in order when told to."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

from msp_bridge.ended import ended
from msp_bridge.errors import BridgeError
from msp_bridge.rpc.connection import Connection
from msp_bridge.rpc.streams import ByteStream, SocketStream, StdioStream
from msp_bridge.session import Session
from msp_bridge.workspace.open_workspaces import OpenWorkspaces

log = logging.getLogger(__name__)

PORT_TRIES = 20  # `--port 0`: how often a port that is free for one address family may be taken for another


async def serve_client(stream: ByteStream, workspaces: OpenWorkspaces) -> None:
    """Serve one client until it leaves; returns when everything that it had running has ended."""

    async def notify(method: str, params: Any) -> None:
        await connection.notify(method, params)

    connection = Connection(stream, Session(workspaces, notify).methods)
    await connection.serve()


async def serve_stdio(workspaces: OpenWorkspaces) -> None:
    """Serve the client at the other end of our stdin and stdout, until stdin ends or a signal comes."""
    try:
        stream = StdioStream.claim()
    except OSError as error:
        raise BridgeError(f"can't serve stdio: stdin or stdout is closed ({error}); or use `serve socket`") from None
    log.info("serving MSP on stdio")
    async with _until_signal() as stopping, contextlib.aclosing(workspaces):
        client = asyncio.create_task(serve_client(stream, workspaces), name="client")
        await asyncio.wait([client, stopping], return_when=asyncio.FIRST_COMPLETED)
        await _cancelled(client)


async def serve_socket(workspaces: OpenWorkspaces, address: str, port: int) -> None:
    """Serve every client that connects to `address`:`port` (0: a free port), until a signal comes.

    Raises BridgeError when it can't listen there.
    """
    clients: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = asyncio.current_task()
        assert client is not None
        clients.add(client)
        client.add_done_callback(clients.discard)
        log.info("a client has come: %s", _shown(writer.get_extra_info("peername")))
        with contextlib.suppress(asyncio.CancelledError):  # only we cancel it, below; asyncio would log it as a fault
            await serve_client(SocketStream(reader, writer), workspaces)
        log.info("a client has left: %s", _shown(writer.get_extra_info("peername")))

    sockets = await _bound(address, port)
    async with _until_signal() as stopping, contextlib.aclosing(workspaces), contextlib.AsyncExitStack() as listening:
        for bound in sockets:
            server = await asyncio.start_server(serve, sock=bound)
            listening.callback(server.close)
            log.info("serving MSP on %s", _shown(bound.getsockname()))
        await asyncio.wait([stopping])
        await listening.aclose()  # first: nobody new comes while the clients' tools end
        await asyncio.gather(*(_cancelled(client) for client in list(clients)))


@contextlib.asynccontextmanager
async def _until_signal() -> AsyncIterator[asyncio.Task[bool]]:
    """A task that is done when SIGTERM, SIGINT or (where there is one) SIGHUP has come."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    if sys.platform == "win32":  # untested; there Ctrl-C cancels the main task instead
        numbers: Sequence[signal.Signals] = ()
    else:
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stop.set)
    stopping = asyncio.create_task(stop.wait(), name="signal")
    try:
        yield stopping
    finally:
        stopping.cancel()
        for number in numbers:
            loop.remove_signal_handler(number)


async def _cancelled(task: asyncio.Task[Any]) -> None:
    """Returns when `task` has cleaned up; raises what it failed with."""
    task.cancel()
    await ended(task)
    if not task.cancelled() and (failure := task.exception()) is not None:
        raise failure


async def _bound(address: str, port: int) -> list[socket.socket]:
    """A socket for each address that `address` means (localhost is often two), all with the same port."""
    for _ in range(PORT_TRIES):
        try:
            return await _bind_all(address, port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and port == 0:
                continue
            raise BridgeError(_refusal(address, port, error)) from None
    raise BridgeError(f"can't find a port that is free on every address of {address}; name one with --port")


async def _bind_all(address: str, port: int) -> list[socket.socket]:
    loop = asyncio.get_running_loop()
    infos = await loop.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, where in dict.fromkeys(infos):
            try:
                bound = socket.socket(family, kind, protocol)
            except OSError:  # an address family that this kernel was built without
                continue
            sockets.append(bound)
            if sys.platform != "win32":  # there it would let two servers share a port
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                bound.bind((where[0], port or where[1], *where[2:]))
            except OSError as error:
                if (
                    error.errno == errno.EADDRNOTAVAIL and len(infos) > 1
                ):  # `localhost` is ::1 too, but IPv6 is switched off
                    sockets.pop().close()
                    continue
                raise
            port = bound.getsockname()[1]
    except BaseException:
        for bound in sockets:
            bound.close()
        raise
    if not sockets:
        raise OSError(errno.EADDRNOTAVAIL, "no such address on this machine")
    return sockets


def _refusal(address: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {address} is already in use; stop what uses it, or choose another (0 picks a free one)"
    if error.errno == errno.EACCES:
        return f"not allowed to listen on port {port}; choose one above 1023 (0 picks a free one)"
    return f"can't listen on {address}:{port}: {error.strerror or error}"


def _shown(address: Any) -> str:
    match address:
        case (str(host), int(port), *_):
            return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return str(address)

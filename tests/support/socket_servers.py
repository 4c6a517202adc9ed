"""A server on a socket in this process, so that a test can shorten its time limits and lower its other limits."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import trustme
from attrs import field, frozen

from msp_bridge.access.addresses import Addresses
from msp_bridge.access.credentials import Token, server_tls
from msp_bridge.access.gate import ConnectionGate
from msp_bridge.concurrency import cancel_all
from msp_bridge.dialects.dialect import Dialect
from msp_bridge.dialects.msp import Msp
from msp_bridge.jsonrpc.framing import FrameDecoder, Framing
from msp_bridge.jsonrpc.trace import Trace
from msp_bridge.socket_server import serve_socket
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.open_workspaces import OpenWorkspaces
from support.msp_client import LONG, Client, Connections
from support.servers import ScriptedProject, until

TOKEN = "0123456789abcdef0123456789abcdef"


@frozen
class SocketServer:
    """The server's address, its task, and the connections that tests have opened to it."""

    port: int
    serving: asyncio.Task[None]
    connections: Connections = field(factory=Connections)

    async def connect(self, tls: ssl.SSLContext | None = None) -> Client:
        """A client that has sent nothing yet."""
        return Client(await self.connections.open("127.0.0.1", self.port, ssl=tls))

    async def authenticated(self) -> Client:
        """A client that has sent the token."""
        client = await self.connect()
        assert await client.request("authenticate", {"token": TOKEN}) == {}
        return client


@contextlib.asynccontextmanager
async def socket_server(
    project: ScriptedProject,
    *,
    token: Token | None = None,
    tls: ssl.SSLContext | None = None,
    trace: Trace | None = None,
    dialect: type[Dialect] = Msp,
    framing: type[Framing] = FrameDecoder,
) -> AsyncIterator[SocketServer]:
    """Ends in order."""
    workspaces = OpenWorkspaces(project.root, Configuration(adapters=("scripted",)))
    gate, connections = ConnectionGate(token, tls, framing), Connections()
    async with listening(lambda at: serve_socket(workspaces, dialect, at, gate, trace)) as (port, serving):
        try:
            yield SocketServer(port, serving, connections)
        finally:
            connections.abort()


@contextlib.asynccontextmanager
async def listening(serve: Callable[[Any], Coroutine[Any, Any, None]]) -> AsyncIterator[tuple[int, asyncio.Task[None]]]:
    """Where `serve` listens, which gets the addresses, and its task; it ends in order."""
    addresses = Listening(Addresses.resolve("127.0.0.1", 0))
    serving = asyncio.create_task(serve(addresses))
    try:
        await until(lambda: bool(addresses.ports) or serving.done())
        yield addresses.ports[0], serving
    finally:
        async with asyncio.timeout(LONG):
            await cancel_all([serving])
    assert serving.cancelled()


class Listening:
    """Addresses that record which port they took."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses
        self.ports: list[int] = []

    def listen(self) -> list[socket.socket]:
        sockets = self._addresses.listen()
        self.ports = [bound.getsockname()[1] for bound in sockets]
        return sockets


def the_token(directory: Path) -> Token:
    """TOKEN, as a server reads it."""
    token = Token.given(token_file(directory), None)
    assert token is not None
    return token


def token_file(directory: Path, text: str = TOKEN, mode: int = 0o600) -> Path:
    """A file with the token."""
    file = directory / "token"
    file.write_text(text)
    file.chmod(mode)
    return file


def certificate_files(authority: trustme.CA, directory: Path) -> tuple[Path, Path]:
    """A certificate for this machine, and its key."""
    certificate = authority.issue_cert("localhost", "127.0.0.1", "::1")
    chain, key = directory / "chain.pem", directory / "key.pem"
    chain.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    certificate.private_key_pem.write_to_path(key)
    key.chmod(0o600)
    return chain, key


def tls_of_both(directory: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """For a server of this machine, and for a client that trusts it alone."""
    authority, trusting = trustme.CA(), ssl.create_default_context()
    authority.configure_trust(trusting)
    return server_tls(*certificate_files(authority, directory)), trusting

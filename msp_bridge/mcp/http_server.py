"""Serving agents' clients over HTTP: MCP's streamable HTTP, by the SDK's session manager on uvicorn's protocol.

Theory of operation
-------------------
The SDK has the sessions, and the streams of events. uvicorn's `H11Protocol` parses and makes HTTP on one connection.
The rest of uvicorn is left out, because a connection has to be what it is for `serve socket`: accepted by
`access.gate`, one of a few until a request of it has had the token, one of `MAX_CONNECTIONS` from then on, and
ended with the server.

The SDK gets a request when `HttpGate` has let it in and its body is whole, and gets that body from memory. All clients
share one `AgentServer`, so each of them knows what another has found.

The end. First the connections are cut, which ends the calls of version 2026-07-28; then the sessions, with their calls.
Each call is waited for until its processes are dead.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from http import HTTPStatus
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Message, Receive, Scope, Send
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from msp_bridge.access.addresses import Addresses
from msp_bridge.access.gate import (
    AUTHENTICATION_TIMEOUT_S,
    HANDSHAKE_TIMEOUT_S,
    ClientRejected,
    ConnectionLimits,
    serve_connections,
)
from msp_bridge.concurrency import cancel_all
from msp_bridge.jsonrpc.streams import keep_alive
from msp_bridge.jsonrpc.trace import PeerTrace, Trace
from msp_bridge.mcp.http_requests import (
    PATH,
    ClientLeft,
    HttpGate,
    RequestRefused,
    body_of,
    header,
    replayed,
    with_remedies,
)
from msp_bridge.mcp.server import SESSION_HEADER, AgentServer
from msp_bridge.server import until_signal
from msp_bridge.workspace.open_workspaces import OpenWorkspaces

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 128  # that have sent the token; a client has one for each call, and one for events
MAX_SESSIONS = 1000  # of 40 kB; a client that restarts without a goodbye leaves one
SESSION_S = 30 * 60.0  # without an open request, until a session is forgotten
IDLE_S = 60.0  # of a connection between two requests
MAX_HEAD = 16 * 1024  # bytes of a request before its body
ENDING_S = 5.0  # for the rest of requests whose calls and connections have ended


async def serve_http(
    agent: AgentServer,
    workspaces: OpenWorkspaces,
    addresses: Addresses,
    gate: HttpGate,
    tls: ssl.SSLContext | None = None,
    trace: Trace | None = None,
) -> None:
    """Serve every client whose requests `gate` lets in, until a signal comes.

    Raises BridgeError when it can't listen at `addresses`.
    """
    logging.getLogger("mcp").setLevel(logging.WARNING)  # else it logs the ids of sessions
    async with until_signal() as stopping, contextlib.aclosing(workspaces), contextlib.aclosing(agent):
        server, listening = _HttpServer(agent, gate, tls, trace), addresses.listen()
        try:
            async with server.sessions.run():
                title = f"MCP over {'HTTPS' if tls else 'HTTP'} (path {PATH})"
                await serve_connections(title, listening, server.serve, stopping)
        finally:
            await server.aclose()


class _HttpServer:
    def __init__(self, agent: AgentServer, gate: HttpGate, tls: ssl.SSLContext | None, trace: Trace | None) -> None:
        self._running, self._gate, self._tls, self._trace = agent.running, gate, tls, trace
        self.sessions = StreamableHTTPSessionManager(
            agent.protocol, session_idle_timeout=SESSION_S, max_sessions=MAX_SESSIONS
        )
        self._limits = ConnectionLimits(MAX_CONNECTIONS)
        self._state = ServerState()
        self._config = Config(
            self._answer,
            http="h11",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=int(IDLE_S),
            h11_max_incomplete_event_size=MAX_HEAD,
        )

    async def serve(self, connection: socket.socket, address: str, number: int) -> None:
        """One connection, from its first byte to its last. An error in it affects no other."""
        keep_alive(connection)
        peer = None if self._trace is None else self._trace.peer(number)
        http = _Connection(self._config, self._state, address, peer)
        try:
            async with self._limits.unauthenticated():
                await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: http,
                    connection,
                    ssl=self._tls,
                    ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S if self._tls else None,
                )
                async with asyncio.timeout(AUTHENTICATION_TIMEOUT_S):
                    await http.settled.wait()
            await http.closed.wait()
        except (ClientRejected, OSError) as error:
            http.rejected(str(error) or f"no token came within {AUTHENTICATION_TIMEOUT_S:g} s")
        except Exception:
            log.exception("serving the client %s failed", address)
        finally:
            http.end()

    async def aclose(self) -> None:
        """Returns when no request is served any more."""
        if tasks := self._state.tasks:
            await asyncio.wait(tasks, timeout=ENDING_S)
        await cancel_all([*tasks])

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        http: _Connection = scope["state"]["connection"]
        try:
            await self._gate.check(scope)
            http.become_client(self._limits)
            body = await body_of(receive) if scope["method"] == "POST" else b""
        except ClientLeft:
            return
        except RequestRefused as refused:
            http.rejected(refused.reason)
            await refused.response()(scope, receive, send)
            return
        with contextlib.ExitStack() as attending:
            if (session := header(scope, SESSION_HEADER)) is not None:
                attending.enter_context(self._running.attended(session))
            if http.trace is not None and body:
                http.trace.received(body)
            await self.sessions.handle_request(scope, replayed(body, receive), with_remedies(http.traced(send)))


class _Connection(H11Protocol):
    """One connection. It is `settled` when a request of it has had the token, or it is `closed`."""

    def __init__(self, config: Config, state: ServerState, address: str, trace: PeerTrace | None) -> None:
        super().__init__(config, state, {"connection": self})
        self._address, self.trace = address, trace
        self.settled, self.closed = asyncio.Event(), asyncio.Event()
        self._place = contextlib.ExitStack()

    def become_client(self, limits: ConnectionLimits) -> None:
        """Count as a client from now on. Raises RequestRefused when there are too many."""
        if self.settled.is_set():
            return
        try:
            self._place.enter_context(limits.client())
        except ClientRejected as rejected:
            raise RequestRefused(HTTPStatus.SERVICE_UNAVAILABLE, rejected.reason) from None
        self.settled.set()
        log.info("client connected: %s", self._address)
        self._note("connected", address=self._address)
        self._place.callback(self._note, "disconnected")
        self._place.callback(log.info, "client disconnected: %s", self._address)

    def rejected(self, reason: str) -> None:
        """Log why it is no client, or a request of it is refused."""
        log.warning("rejected %s: %s", self._address, reason)
        self._note("rejected", address=self._address, reason=reason)

    def connection_lost(self, exc: Exception | None) -> None:
        """Implement `asyncio.Protocol`."""
        super().connection_lost(exc)
        self.settled.set()
        self._place.close()
        self.closed.set()

    def end(self) -> None:
        """Cut the connection, if there is one still."""
        if self.transport is not None and not self.closed.is_set():
            self.transport.abort()

    def traced(self, send: Send) -> Send:
        """`send`, and record what is sent: JSON, or events whose data are JSON."""
        if (trace := self.trace) is None:
            return send

        async def sent(message: Message) -> None:
            for line in message.get("body", b"").splitlines():
                if (data := line.removeprefix(b"data:").strip()).startswith(b"{"):
                    trace.sent(data)
            await send(message)

        return sent

    def _note(self, event: str, **facts: Any) -> None:
        if self.trace is not None:
            self.trace.event(event, **facts)

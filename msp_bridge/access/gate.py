"""ConnectionGate: what makes a connection a client: TLS, the framing's handshake, the token, and a free place."""

import asyncio
import contextlib
import itertools
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from msp_bridge.access.addresses import address_text
from msp_bridge.access.credentials import AUTHENTICATE, Token
from msp_bridge.concurrency import cancel_all
from msp_bridge.jsonrpc.framing import Farewell, FrameDecoder, Framing, FramingError, MessageLimits
from msp_bridge.jsonrpc.messages import (
    Call,
    ErrorCode,
    Id,
    NotJson,
    RpcError,
    call_of,
    error_response,
    id_of,
    parse,
    response,
)
from msp_bridge.jsonrpc.streams import MessageStream, SocketStream
from msp_bridge.jsonrpc.trace import PeerTrace

RETRY_S = 1.0  # until the next client is accepted when the system can't give us a connection

Serve = Callable[[socket.socket, str, int], Coroutine[Any, Any, None]]  # a connection, its address, its number from 1
log = logging.getLogger(__name__)

MAX_CLIENTS = 32
MAX_UNAUTHENTICATED = 64  # more than MAX_CLIENTS: as many clients may connect at once and still all be served
HANDSHAKE_TIMEOUT_S = 10.0
AUTHENTICATION_TIMEOUT_S = 10.0  # for the whole message
AUTHENTICATION_LIMITS = MessageLimits(header=1024, body=4 * 1024)
WRONG_TOKEN_DELAY_S = 0.5  # before the answer
MESSAGE_TIMEOUT_S = 30.0  # for the rest of a message; between messages a client may be silent for ever
REJECTION_TIMEOUT_S = 1.0  # for the client to read why
TOKEN_NEEDED = (
    f'this server needs a token: the first message must be the request `{AUTHENTICATE}` with params {{"token": "…"}}'
)
WRONG_ONE = "this is not the server's token; compare it with the server's --token-file, or its MSP_BRIDGE_TOKEN"


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


class ClientRejected(Exception):
    """A connection does not become a client. `reason` is one sentence for its peer; `id` is of the request, if any."""

    def __init__(self, reason: str, id: Id | None = None) -> None:
        super().__init__(reason)
        self.reason, self.id = reason, id


class ConnectionLimits:
    """How many clients there may be at once, and how many connections that have not authenticated yet."""

    def __init__(self, max_clients: int | None = None) -> None:
        self._max_clients = MAX_CLIENTS if max_clients is None else max_clients
        self._clients = 0
        self._unauthenticated: dict[asyncio.Timeout, None] = {}  # in the order in which they came

    @contextlib.contextmanager
    def client(self) -> Iterator[None]:
        """Count one client. Raises ClientRejected when there are too many."""
        if self._clients >= self._max_clients:
            raise ClientRejected(
                f"{self._max_clients} clients are connected already; close one of them, or start another server"
            )
        self._clients += 1
        try:
            yield
        finally:
            self._clients -= 1

    @contextlib.asynccontextmanager
    async def unauthenticated(self) -> AsyncIterator[None]:
        """Count one connection that has yet to authenticate.

        When there are too many, the oldest is interrupted, and leaves this context by ClientRejected. To reject the
        newcomer instead would let a few idle connections keep everybody out.
        """
        place = asyncio.timeout(None)
        try:
            async with place:
                self._unauthenticated[place] = None
                if len(self._unauthenticated) > MAX_UNAUTHENTICATED:
                    oldest = next(iter(self._unauthenticated))
                    del self._unauthenticated[oldest]
                    oldest.reschedule(asyncio.get_running_loop().time())
                yield
        except TimeoutError:
            if not place.expired():
                raise
            reason = f"more than {MAX_UNAUTHENTICATED} connections have not authenticated, and this is the oldest"
            raise ClientRejected(reason) from None
        finally:
            self._unauthenticated.pop(place, None)


class ConnectionGate:
    """Requirements of a server on a socket for its clients; without `token` and `tls`, only a limit of their number.

    `framing` makes the framing of each connection.
    """

    def __init__(
        self,
        token: Token | None = None,
        tls: ssl.SSLContext | None = None,
        framing: type[Framing] = FrameDecoder,
    ) -> None:
        self._token, self._tls, self.framing = token, tls, framing
        self._limits = ConnectionLimits()

    @contextlib.asynccontextmanager
    async def client(self, connection: socket.socket, trace: PeerTrace | None = None) -> AsyncIterator[MessageStream]:
        """The messages of the client that `connection` has become; the connection is closed on leaving.

        `trace` records them from then on: what comes before may hold the token. Raises ClientRejected, after the peer
        has been sent the reason.
        """
        stream: SocketStream | None = None
        messages: MessageStream | None = None
        try:
            async with self._unauthenticated():
                stream = await self._accept(connection)
                messages = MessageStream(stream, MESSAGE_TIMEOUT_S, self.framing())
                await self._open(messages)
                await self._authenticate(messages)
            with self._limits.client():
                messages.trace = trace
                yield messages
        except ClientRejected as rejected:
            if stream is not None and messages is not None:  # without TLS there is no way to say anything
                await _send_reason(stream, messages, rejected)
            raise
        finally:
            if messages is not None:  # what is still open here has yet to become a client when the server ends
                await messages.aclose(Farewell.GOING_AWAY)

    def _unauthenticated(self) -> AbstractAsyncContextManager[None]:
        if self._token is None and self._tls is None and not self.framing.has_handshake:
            return contextlib.nullcontext()
        return self._limits.unauthenticated()

    async def _open(self, messages: MessageStream) -> None:
        try:
            async with asyncio.timeout(HANDSHAKE_TIMEOUT_S):
                await messages.open()
        except (TimeoutError, FramingError) as error:
            raise ClientRejected(f"no handshake of its framing: {error}") from None

    async def _authenticate(self, messages: MessageStream) -> None:
        if self._token is not None:
            try:
                await authenticate(messages, self._token)
            except ConnectionError:
                raise ClientRejected("it left before it was answered") from None

    async def _accept(self, connection: socket.socket) -> SocketStream:
        try:
            return await SocketStream.accepted(connection, self._tls, HANDSHAKE_TIMEOUT_S)
        except OSError as error:
            raise ClientRejected(f"no TLS handshake: {error}") from None


async def authenticate(messages: MessageStream, token: Token) -> None:
    """Returns when the peer has sent the token, and has been answered. Raises ClientRejected and ConnectionError."""
    messages.limit(AUTHENTICATION_LIMITS)
    call = await _first_call(messages)
    candidate = call.params.get("token") if isinstance(call.params, dict) else None
    if call.method != AUTHENTICATE or call.id is None or not isinstance(candidate, str):
        raise ClientRejected(TOKEN_NEEDED, call.id)
    if not token.matches(candidate):
        await asyncio.sleep(WRONG_TOKEN_DELAY_S)
        raise ClientRejected(WRONG_ONE, call.id)
    await messages.send(response(call.id, {}))
    messages.limit(MessageLimits())


async def _first_call(messages: MessageStream) -> Call:
    try:
        async with asyncio.timeout(AUTHENTICATION_TIMEOUT_S):
            body = await messages.receive()
        if body is None:
            raise ClientRejected("it left without a message")
        message = parse(body)
    except TimeoutError:
        raise ClientRejected(f"{TOKEN_NEEDED}, within {AUTHENTICATION_TIMEOUT_S:g} s") from None
    except (FramingError, NotJson) as error:
        raise ClientRejected(TOKEN_NEEDED) from error
    try:
        return call_of(message)
    except RpcError as error:
        raise ClientRejected(TOKEN_NEEDED, id_of(message)) from error


async def _send_reason(stream: SocketStream, messages: MessageStream, rejected: ClientRejected) -> None:
    error = RpcError(ErrorCode.REJECTED, f"{rejected.reason}; closing the connection")
    with contextlib.suppress(OSError):  # it has left, or reads too slowly
        async with asyncio.timeout(REJECTION_TIMEOUT_S):
            await messages.send(error_response(rejected.id, error))
            await messages.farewell(Farewell.REFUSED)
            await stream.finish()

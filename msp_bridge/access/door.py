"""Door: the way from a connection to a client: encrypted, with the token, and if there is room."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator

from msp_bridge.access.authentication import authenticate
from msp_bridge.access.crowd import Crowd
from msp_bridge.access.refusal import Refusal
from msp_bridge.access.token import Token
from msp_bridge.jsonrpc.json_text import dump
from msp_bridge.jsonrpc.message_stream import MessageStream
from msp_bridge.jsonrpc.messages import ErrorCode
from msp_bridge.jsonrpc.streams import SocketStream
from msp_bridge.jsonrpc.trace import PeerTrace

HANDSHAKE = 10.0  # s
SILENCE = 30.0  # s that the rest of a message may stay away; between messages a client may be silent for ever
LAST_WORDS = 1.0  # s for a refusal to be taken


class Door:
    """What a server on a socket asks of its clients; with neither `token` nor `tls`, only that they aren't too many."""

    def __init__(self, token: Token | None = None, tls: ssl.SSLContext | None = None) -> None:
        self._token, self._tls = token, tls
        self._crowd = Crowd()

    @property
    def encrypted(self) -> bool:
        """Whether nobody else can read what goes through it."""
        return self._tls is not None

    @contextlib.asynccontextmanager
    async def client(self, connection: socket.socket, trace: PeerTrace | None = None) -> AsyncIterator[MessageStream]:
        """The messages of the client that `connection` (which is closed on leaving) has turned out to be.

        `trace` sees them from then on: what a stranger says may hold the token. Raises Refusal when it isn't let in,
        and has been told.
        """
        task = asyncio.current_task()
        assert task is not None
        self._crowd.arrive(task)
        try:
            async with contextlib.aclosing(await self._encrypted(connection)) as messages:
                try:
                    if self._token is not None:
                        await authenticate(messages, self._token)
                    self._crowd.admit(task)
                except Refusal as refusal:
                    await _tell(messages, refusal)
                    raise
                except ConnectionError:
                    raise Refusal("it left before it was answered") from None
                messages.trace = trace
                yield messages
        finally:
            self._crowd.leave(task)

    async def _encrypted(self, connection: socket.socket) -> MessageStream:
        try:
            return MessageStream(await SocketStream.accepted(connection, self._tls, HANDSHAKE), SILENCE)
        except OSError as error:
            raise Refusal(f"no TLS handshake: {error}") from None


async def _tell(messages: MessageStream, refusal: Refusal) -> None:
    error = {"code": ErrorCode.REJECTED, "message": f"{refusal.reason}; closing the connection"}
    with contextlib.suppress(ConnectionError, TimeoutError):  # it has left
        async with asyncio.timeout(LAST_WORDS):
            await messages.send(dump({"jsonrpc": "2.0", "id": refusal.id, "error": error}))

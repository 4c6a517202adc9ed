"""WebSocket framing (RFC 6455), one message a text frame, by the package `websockets`; imported when it is served.

The package parses and makes frames, without I/O: reading, writing, TLS, tokens, limits and back-pressure are those of
every other connection (`streams.MessageStream`, `access.gate`). No extension is offered, so nothing is decompressed.

A web page may connect to any port of the machine that it is shown on, whatever the page comes from. Its browser says so
by the header `Origin`, which programs don't send: a request with one is refused.
"""

from collections import deque
from collections.abc import Iterator
from typing import ClassVar

from websockets.exceptions import InvalidState
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from msp_bridge.jsonrpc.framing import Farewell, Framing, FramingError, MessageLimits

DATA = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)
CODES = {
    Farewell.DONE: CloseCode.NORMAL_CLOSURE,
    Farewell.GOING_AWAY: CloseCode.GOING_AWAY,
    Farewell.REFUSED: CloseCode.POLICY_VIOLATION,
}


class WebSocketFraming(Framing):
    """The server's side of one connection."""

    title: ClassVar[str] = " over WebSocket"
    has_handshake: ClassVar[bool] = True
    has_probe: ClassVar[bool] = True

    def __init__(self) -> None:
        self._protocol = ServerProtocol(origins=[None])
        self._fragments = bytearray()  # of the message that is being read
        self._is_text = False  # whether that message is
        self._fault: UnicodeDecodeError | None = None
        self._bodies: deque[bytes] = deque()
        self.limits = MessageLimits()

    @property
    def limits(self) -> MessageLimits:
        """The limits of the package for headers, and ours for bodies."""
        return self._limits

    @limits.setter
    def limits(self, limits: MessageLimits) -> None:
        self._limits = limits
        self._protocol.max_message_size = limits.body

    @property
    def mid_message(self) -> bool:
        """Whether a message has begun and not ended."""
        return bool(self._fragments or self._protocol.reader.buffer)

    @property
    def rest(self) -> bytes:
        """Bytes that have come and are no message yet."""
        return bytes(self._fragments)

    @property
    def opened(self) -> bool:
        """Whether the handshake is done."""
        return self._protocol.state is not State.CONNECTING

    @property
    def ended(self) -> bool:
        """Whether the peer has closed the WebSocket."""
        return self._protocol.close_rcvd is not None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take bytes; yield the messages that they complete."""
        if data and not self.ended:
            self._protocol.receive_data(data)
            for event in self._protocol.events_received():
                if self._fault is None:
                    self._take(event)
        while self._bodies:
            yield self._bodies.popleft()
        if (fault := self._fault or self._protocol.handshake_exc or self._protocol.parser_exc) is not None:
            raise FramingError(f"WebSocket: {fault}")

    def frame(self, body: bytes) -> bytes:
        """Frame one message."""
        try:
            self._protocol.send_text(body)
        except InvalidState as error:
            raise ConnectionResetError(f"WebSocket: {error}") from None
        return self.replies()

    def replies(self) -> bytes:
        """Bytes that the WebSocket itself has to send."""
        return b"".join(self._protocol.data_to_send())

    def probe(self) -> bytes:
        """The frame that a live peer answers."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_ping(b"")
        return self.replies()

    def farewell(self, reason: Farewell) -> bytes:
        """The frame that closes the WebSocket, with the code of `reason`."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(CODES[reason])
        return self.replies()

    def _take(self, event: object) -> None:
        match event:
            case Request():
                self._protocol.send_response(self._protocol.accept(event))
            case Frame(opcode=opcode, data=data, fin=fin) if opcode in DATA:
                if opcode is not Opcode.CONT:
                    self._is_text = opcode is Opcode.TEXT
                self._fragments += data
                if fin:
                    self._complete(bytes(self._fragments))
                    self._fragments.clear()

    def _complete(self, body: bytes) -> None:
        """A text that is not UTF-8 fails the connection (RFC 6455, section 8.1). The package leaves that to us."""
        try:
            if self._is_text:
                body.decode()
        except UnicodeDecodeError as error:
            self._fault = error
            self._protocol.fail(CloseCode.INVALID_DATA, f"{error.reason} at byte {error.start}")
        else:
            self._bodies.append(body)

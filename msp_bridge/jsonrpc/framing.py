"""Framing, without I/O: bytes in, message bodies out; by Content-Length (MSP 0.4, "Message Format Example")."""

import abc
import enum
import logging
import re
from collections.abc import Iterator
from typing import Any, ClassVar

from attrs import frozen

from msp_bridge.jsonrpc.messages import NotJson, parse

log = logging.getLogger(__name__)

MAX_HEADER = 8 * 1024  # what HTTP servers allow; MSP needs 30 bytes
# Clients send some hundred bytes, the text of a document in LSP, or the mutants that a user has chosen: 40,000 mutants
# of MSP are 6 MiB, 35,000 test nodes of MTP 16 MiB. Parsed, a message takes up to 15 times its bytes.
MAX_BODY = 16 * 1024 * 1024
MAX_TOOL_BODY = 64 * 1024 * 1024  # of a tool, whose discovery of 400,000 mutants comes in one message

# A web page can make a browser send `POST / HTTP/1.1`, a Content-Length and a body to any port of the machine that it
# runs on: what isn't `name: value` (RFC 9110, section 5) is no header of ours.
HEADER_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+[ \t]*:.*", re.DOTALL)
HEADER_ENDS = (b"\r\n\r\n", b"\n\n", b"\n\r\n")


@frozen
class MessageLimits:
    """Limits of a message: bytes of its header and of its body."""

    header: int = MAX_HEADER
    body: int = MAX_BODY


# The header that a tool's own server writes, somewhere in its output.
TOOL_HEADER = re.compile(rb"Content-Length: (\d{1,9})\r\n(?:Content-Type: [^\r\n]{1,100}\r\n)?\r\n")
MAX_TOOL_HEADER = 192  # bytes; more than TOOL_HEADER can match
MAX_NOISE = 16 * 1024  # bytes; the end of what a tool printed between its messages, for error messages


class FramingError(Exception):
    """The next message's beginning can't be known any more; the connection must close."""


def frame(body: bytes) -> bytes:
    """`body` with its header, to be written at once: two writes cost a delayed ack (about 40 ms) on a socket."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class Farewell(enum.Enum):
    """Why no further message is sent."""

    DONE = "done"  # the connection has served its purpose
    GOING_AWAY = "going away"  # the server ends
    REFUSED = "refused"  # the peer does not become a client


class Framing(abc.ABC):
    """How one peer's messages lie in a stream of bytes. `limits` may change between two messages."""

    title: ClassVar[str] = ""  # behind the protocol's name, in messages
    has_handshake: ClassVar[bool] = False  # messages may be sent when the peer has said something
    has_probe: ClassVar[bool] = False  # every live peer answers `probe`
    limits: MessageLimits

    @property
    @abc.abstractmethod
    def mid_message(self) -> bool:
        """Whether the end of the stream would now cut a message short."""

    @property
    @abc.abstractmethod
    def rest(self) -> bytes:
        """Bytes that have come and are no message yet."""

    @abc.abstractmethod
    def feed(self, data: bytes) -> Iterator[bytes]:
        """The bodies that `data` completes. Raises FramingError, after the bodies that came before the fault."""

    @abc.abstractmethod
    def frame(self, body: bytes) -> bytes:
        """The bytes of a message. Raises ConnectionError when the peer takes no more."""

    @property
    def opened(self) -> bool:
        """Whether messages may be sent."""
        return True

    @property
    def ended(self) -> bool:
        """Whether the peer has said that no further message comes."""
        return False

    def replies(self) -> bytes:
        """Bytes that the framing itself has to send, in answer to what has come since the last time."""
        return b""

    def probe(self) -> bytes:
        """A question that every live peer answers at once; b"" while there is none."""
        return b""

    def farewell(self, reason: Farewell) -> bytes:
        """Bytes that are sent when no further message is."""
        return b""


class FrameDecoder(Framing):
    """Cuts a byte stream into message bodies, however the bytes were chunked.

    Only what makes the next boundary unknowable, or shows that the peer speaks another protocol, is an error. Bare LF,
    any letter case, and other headers in any order are accepted.
    """

    def __init__(self, limits: MessageLimits | None = None) -> None:
        self._buffer = bytearray()
        self._body_length: int | None = None  # length of the body being read; None within a header
        self.limits = limits or MessageLimits()

    @property
    def mid_message(self) -> bool:
        """Whether the end of the stream would now cut a message short."""
        return bool(self._buffer) or self._body_length is not None

    @property
    def rest(self) -> bytes:
        """Bytes that have come and are no message yet."""
        return bytes(self._buffer)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The bodies that `data` completes. Raises FramingError, after the bodies that came before the fault."""
        self._buffer += data
        while (body := self._next()) is not None:
            yield body

    def frame(self, body: bytes) -> bytes:
        """Frame one message with `frame`."""
        return frame(body)

    def _next(self) -> bytes | None:
        if self._body_length is None:
            header = self._take_header()
            if header is None:
                return None
            self._body_length = self._content_length(header)
        if len(self._buffer) < self._body_length:
            return None
        body = bytes(memoryview(self._buffer)[: self._body_length])
        del self._buffer[: self._body_length]
        self._body_length = None
        return body

    def _take_header(self) -> bytes | None:
        limit = self.limits.header
        window = self._buffer[: limit + max(map(len, HEADER_ENDS))]
        ends = [(at, len(mark)) for mark in HEADER_ENDS if 0 <= (at := window.find(mark)) <= limit]
        if not ends:
            if not any(mark.startswith(window[limit:]) for mark in HEADER_ENDS):  # nor does an end begin at the limit
                raise FramingError(f"the header is longer than {limit} bytes")
            return None
        at, width = min(ends)
        header = bytes(window[:at])
        del self._buffer[: at + width]
        return header

    def _content_length(self, header: bytes) -> int:
        lengths = set()
        for line in filter(None, map(bytes.strip, header.split(b"\n"))):
            if HEADER_LINE.fullmatch(line) is None:
                raise FramingError(f"this is no header of a message: {_excerpt(line)}")
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                lengths.add(self._length(value.strip()))
        if len(lengths) != 1:
            raise FramingError(
                f"the header has {'more than one' if lengths else 'no'} Content-Length: {_excerpt(header)}"
            )
        return lengths.pop()

    def _length(self, text: bytes) -> int:
        if not (text.isascii() and text.isdigit()):
            raise FramingError(f"Content-Length is not a number: {_excerpt(text)}")
        if len(text.lstrip(b"0")) > len(str(self.limits.body)) or int(text) > self.limits.body:
            raise FramingError(f"a message of {_excerpt(text)} bytes is over the limit of {self.limits.body}")
        return int(text)


class TolerantFrameDecoder:
    """Finds the messages in the output of a tool that also prints other text there.

    A frame counts when its body is a JSON object. All other bytes are noise: they are skipped, logged at debug level,
    and the last of them kept. Stricter than FrameDecoder in what a header is, so that text is rarely taken for one.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._noise = bytearray()

    @property
    def noise(self) -> bytes:
        """The last MAX_NOISE bytes of noise."""
        return bytes(self._noise)

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """The messages that `data` completes. Raises FramingError for one that is too long to be read."""
        self._buffer += data
        while (body := self._find_body()) is not None and len(self._buffer) >= body.stop:
            try:
                message = parse(bytes(memoryview(self._buffer)[body]))
            except NotJson:
                self._skip(body.start)
                continue
            del self._buffer[: body.stop]
            if isinstance(message, dict):
                yield message

    def finish(self) -> None:
        """The output has ended: what is left is noise."""
        self._skip(len(self._buffer))

    def _find_body(self) -> slice | None:
        """The place of the next body in the buffer, whose first bytes are its header; None within noise or a header."""
        header = TOOL_HEADER.search(self._buffer)
        if header is None:
            self._skip(max(0, len(self._buffer) - MAX_TOOL_HEADER))
            return None
        begin, length = header.end() - header.start(), int(header[1])
        self._skip(header.start())
        if length > MAX_TOOL_BODY:
            raise FramingError(f"a message of {length} bytes is over the limit of {MAX_TOOL_BODY}")
        return slice(begin, begin + length)

    def _skip(self, count: int) -> None:
        if count:
            noise = bytes(self._buffer[:count])
            log.debug("skipped: %s", noise.decode(errors="replace").rstrip())
            self._noise += noise
            del self._noise[:-MAX_NOISE]
            del self._buffer[:count]


def _excerpt(data: bytes) -> str:
    return repr(data[:80].decode(errors="replace"))

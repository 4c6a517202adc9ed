"""Content-Length framing, without I/O: bytes in, message bodies out (MSP 0.4, "Message Format Example")."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import frozen

MAX_HEADER = 8 * 1024  # what HTTP servers allow; MSP needs 30 bytes
MAX_BODY = 64 * 1024 * 1024  # four times the discovery of 100,000 mutants, which is 16 MB


# A web page can make a browser send `POST / HTTP/1.1`, a Content-Length and a body to any port of the machine that it
# runs on: what isn't `name: value` (RFC 9110, section 5) is no header of ours.
HEADER_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+[ \t]*:.*", re.DOTALL)


@frozen
class Limits:
    """What is too much for a message: bytes of its header and of its body."""

    header: int = MAX_HEADER
    body: int = MAX_BODY


class FramingError(Exception):
    """The next message's beginning can't be known any more; the connection must close."""


def frame(body: bytes) -> bytes:
    """`body` with its header, to be written at once: two writes cost a delayed ack (about 40 ms) on a socket."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class FrameDecoder:
    """Cuts a byte stream into message bodies, however the bytes were chunked.

    Only what makes the next boundary unknowable, or shows that the peer speaks another protocol, is an error. Bare LF,
    any letter case, and other headers in any order are accepted. `limits` may change between two messages.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._buffer = bytearray()
        self._wanted: int | None = None  # length of the body being read; None within a header
        self.limits = limits or Limits()

    @property
    def mid_message(self) -> bool:
        """Whether the end of the stream would now cut a message short."""
        return bool(self._buffer) or self._wanted is not None

    @property
    def rest(self) -> bytes:
        """What has come and is no message yet."""
        return bytes(self._buffer)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The bodies that `data` completes. Raises FramingError, after the bodies that came before the fault."""
        self._buffer += data
        while (body := self._next()) is not None:
            yield body

    def _next(self) -> bytes | None:
        if self._wanted is None:
            header = self._take_header()
            if header is None:
                return None
            self._wanted = self._content_length(header)
        if len(self._buffer) < self._wanted:
            return None
        body = bytes(memoryview(self._buffer)[: self._wanted])
        del self._buffer[: self._wanted]
        self._wanted = None
        return body

    def _take_header(self) -> bytes | None:
        window = self._buffer[: self.limits.header + 4]
        ends = [(at, len(mark)) for mark in (b"\r\n\r\n", b"\n\n", b"\n\r\n") if (at := window.find(mark)) >= 0]
        if not ends:
            if len(window) > self.limits.header:
                raise FramingError(f"the header is longer than {self.limits.header} bytes")
            return None
        at, width = min(ends)
        header = bytes(window[:at])
        del self._buffer[: at + width]
        return header

    def _content_length(self, header: bytes) -> int:
        lengths = set()
        for line in filter(None, map(bytes.strip, header.split(b"\n"))):
            if HEADER_LINE.fullmatch(line) is None:
                raise FramingError(f"this is no header of a message: {_shown(line)}")
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                lengths.add(self._length(value.strip()))
        if len(lengths) != 1:
            raise FramingError(
                f"the header has {'more than one' if lengths else 'no'} Content-Length: {_shown(header)}"
            )
        return lengths.pop()

    def _length(self, text: bytes) -> int:
        if not (text.isascii() and text.isdigit()):
            raise FramingError(f"Content-Length is not a number: {_shown(text)}")
        if len(text.lstrip(b"0")) > len(str(self.limits.body)) or int(text) > self.limits.body:
            raise FramingError(f"a message of {_shown(text)} bytes is over the limit of {self.limits.body}")
        return int(text)


def _shown(data: bytes) -> str:
    return repr(data[:80].decode("utf-8", "replace"))

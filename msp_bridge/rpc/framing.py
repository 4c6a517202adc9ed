"""Content-Length framing, without I/O: bytes in, message bodies out (MSP 0.4, "Message Format Example")."""

from __future__ import annotations

from collections.abc import Iterator

MAX_HEADER = 8 * 1024  # what HTTP servers allow; MSP needs 30 bytes
MAX_BODY = 64 * 1024 * 1024  # four times the discovery of 100,000 mutants, which is 16 MB


class FramingError(Exception):
    """The next message's beginning can't be known any more; the connection must close."""


def frame(body: bytes) -> bytes:
    """`body` with its header, to be written at once: two writes cost a delayed ack (about 40 ms) on a socket."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class FrameDecoder:
    """Cuts a byte stream into message bodies, however the bytes were chunked.

    Only what makes the next boundary unknowable is an error. Bare LF, any letter case, and other headers in any order
    are accepted.
    """

    def __init__(self, max_header: int = MAX_HEADER, max_body: int = MAX_BODY) -> None:
        self._buffer = bytearray()
        self._wanted: int | None = None  # length of the body being read; None within a header
        self._max_header, self._max_body = max_header, max_body

    @property
    def mid_message(self) -> bool:
        """Whether the end of the stream would now cut a message short."""
        return bool(self._buffer) or self._wanted is not None

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
        window = self._buffer[: self._max_header + 4]
        ends = [(at, len(mark)) for mark in (b"\r\n\r\n", b"\n\n", b"\n\r\n") if (at := window.find(mark)) >= 0]
        if not ends:
            if len(window) > self._max_header:
                raise FramingError(f"the header is longer than {self._max_header} bytes")
            return None
        at, width = min(ends)
        header = bytes(window[:at])
        del self._buffer[: at + width]
        return header

    def _content_length(self, header: bytes) -> int:
        for line in header.splitlines():
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                return self._length(value.strip())
        raise FramingError(f"the header has no Content-Length: {_shown(header)}")

    def _length(self, text: bytes) -> int:
        if not (text.isascii() and text.isdigit()):
            raise FramingError(f"Content-Length is not a number: {_shown(text)}")
        if len(text.lstrip(b"0")) > len(str(self._max_body)) or int(text) > self._max_body:
            raise FramingError(f"a message of {_shown(text)} bytes is over the limit of {self._max_body}")
        return int(text)


def _shown(data: bytes) -> str:
    return repr(data[:80].decode("utf-8", "replace"))

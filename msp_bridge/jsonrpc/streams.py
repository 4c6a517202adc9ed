"""Streams: bytes over a socket or our own stdin and stdout, and the messages that they carry."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import queue
import select
import socket
import ssl
import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol, Self

from msp_bridge.jsonrpc.framing import Farewell, FrameDecoder, Framing, FramingError, MessageLimits
from msp_bridge.jsonrpc.trace import PeerTrace

log = logging.getLogger(__name__)

CHUNK = 64 * 1024
FAREWELL_S = 1.0  # for a peer to read the last word
PROBE_S = 60.0  # of silence, before the peer is asked whether it is there, and for it to answer
ATOMIC = getattr(select, "PIPE_BUF", 0)  # bytes that a pipe which is ready takes at once
# s, s, and probes: a peer whose machine is gone without closing the connection is detected within two minutes
KEEPALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}


def keep_alive(connection: socket.socket) -> None:
    """Have TCP detect that the peer's machine is gone (KEEPALIVE)."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class ByteStream(Protocol):
    """Bytes in both directions. `write` returns when the peer keeps up: that is the back-pressure."""

    async def read(self) -> bytes:
        """Some bytes, or b"" at the end."""

    async def write(self, data: bytes) -> None:
        """All of `data`, in order. Raises ConnectionError when the peer is gone."""

    async def aclose(self) -> None:
        """Close without waiting for the peer."""


class SocketStream:
    """A TCP connection, perhaps encrypted."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        connection = writer.get_extra_info("socket")
        if connection is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            keep_alive(connection)

    @classmethod
    async def accepted(cls, connection: socket.socket, tls: ssl.SSLContext | None, timeout_s: float) -> Self:
        """A connection that was accepted, its handshake made within `timeout_s` seconds if there is `tls`.

        Raises OSError when there is no handshake; the connection is closed then.
        """
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(CHUNK, loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol, connection, ssl=tls, ssl_handshake_timeout=timeout_s if tls else None
        )
        return cls(reader, asyncio.StreamWriter(transport, protocol, reader, loop))

    async def read(self) -> bytes:
        """Some bytes, or b"" at the end, which is also what a broken connection is."""
        try:
            return await self._reader.read(CHUNK)
        except OSError:  # not only ConnectionError: a time-out, an unreachable host, a broken record of TLS
            return b""

    async def write(self, data: bytes) -> None:
        """Returns when no more than asyncio's 64 KiB wait for the peer."""
        self._writer.write(data)
        try:
            await self._writer.drain()
        except ConnectionError:
            raise
        except OSError as error:  # why the connection broke, as a time-out
            raise ConnectionError(str(error)) from error

    async def finish(self) -> None:
        """Send the end of the stream, and drop what the peer sends until it has closed its side too.

        To close while data of the peer is unread resets the connection, and the peer may lose what it was sent last.
        Raises OSError when the connection is gone.
        """
        if self._writer.can_write_eof():  # not with TLS
            self._writer.write_eof()
        while await self.read():
            pass

    async def aclose(self) -> None:
        """Close; drops what the peer hasn't taken within the time that a live one needs."""
        self._writer.close()
        try:
            async with asyncio.timeout(1.0):
                await self._writer.wait_closed()
        except OSError:  # TimeoutError is one, too
            self._writer.transport.abort()


class StdioStream:
    """Our own stdin and stdout, on two daemon threads.

    Threads rather than `loop.connect_read_pipe`: that fails for regular files
    (python/cpython#71019), and sets O_NONBLOCK on a description that we share with our parent. `os.read` rather than
    `sys.stdin`: a daemon thread blocked inside a BufferedReader aborts the interpreter at exit.
    """

    def __init__(self, stdin: int, stdout: int) -> None:
        self._stdin, self._stdout = stdin, stdout
        self._reads, self._writes = _BlockingCalls("stdin"), _BlockingCalls("stdout")

    @classmethod
    def claim(cls) -> StdioStream:
        """Take descriptors 0 and 1 for the protocol alone: stray prints go to stderr, children read nothing.

        Raises OSError when one of them is closed.
        """
        if sys.stdin is None or sys.stdout is None:  # the descriptor may be taken by now, for something of our own
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        stream = cls(os.dup(0), os.dup(1))
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        return stream

    async def read(self) -> bytes:
        """Some bytes, or b"" at the end."""
        data: bytes = await self._reads(self._read_some)
        return data

    async def write(self, data: bytes) -> None:
        """Returns when the pipe has taken everything."""
        if self._writes.idle and len(data) <= ATOMIC and select.select([], [self._stdout], [], 0)[1]:
            self._write_all(data)  # can't block, and spares two changes of threads, which are most of the latency
        else:
            await self._writes(self._write_all, data)

    async def aclose(self) -> None:
        """Nothing: closing a descriptor that another thread is blocked on is undefined, and the process ends now."""

    def _read_some(self) -> bytes:
        while True:
            try:
                return os.read(self._stdin, CHUNK)
            except BlockingIOError:  # a parent that shares the description with us has set O_NONBLOCK on it
                select.select([self._stdin], [], [])

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._stdout, view) :]
            except BlockingIOError:
                select.select([], [self._stdout], [])


class _BlockingCalls:
    """A daemon thread that makes blocking calls, one after another, for the event loop."""

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[tuple[asyncio.Future[Any], Callable[..., Any], tuple[Any, ...]]] = (
            queue.SimpleQueue()
        )
        self._unfinished = 0
        threading.Thread(target=self._run, name=name, daemon=True).start()

    async def __call__(self, call: Callable[..., Any], *args: Any) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._unfinished += 1
        self._calls.put((future, call, args))
        return await future

    @property
    def idle(self) -> bool:
        """Whether every call has returned, also calls that nobody waits for any more."""
        return not self._unfinished

    def _run(self) -> None:
        while True:
            future, call, args = self._calls.get()
            try:
                value, failure = call(*args), None
            except Exception as error:
                value, failure = None, error
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                future.get_loop().call_soon_threadsafe(self._resolve, future, value, failure)

    def _resolve(self, future: asyncio.Future[Any], value: Any, failure: Exception | None) -> None:
        self._unfinished -= 1
        if future.done():  # cancelled meanwhile
            return
        if failure is None:
            future.set_result(value)
        else:
            future.set_exception(failure)


class MessageStream:
    """One peer's messages, as bytes, in the given framing (by Content-Length without one).

    `timeout_s`: how many seconds the rest of a message may take when its beginning has come, and the peer for reading
    what the framing itself has to say; None for no limit.
    """

    def __init__(self, stream: ByteStream, timeout_s: float | None = None, framing: Framing | None = None) -> None:
        self._stream, self._timeout_s = stream, timeout_s
        self._framing = framing or FrameDecoder()
        self._sending = 0  # messages that the peer has not taken yet
        self.trace: PeerTrace | None = None

    def limit(self, limits: MessageLimits) -> None:
        """Bound messages by `limits`, from the next one on."""
        self._framing.limits = limits

    async def open(self) -> None:
        """Returns when messages may be sent. Raises FramingError, also when the peer leaves before."""
        while not self._framing.opened:
            data = await self._stream.read()
            if not data or await self._fed(data) is not None:
                raise FramingError("it left, or sent a message, before its handshake was answered")

    async def receive(self) -> bytes | None:
        """The next body; None at the end. Raises FramingError when there can't be a next one."""
        try:
            body = await self._next()
        except FramingError:
            self._trace_rest()
            raise
        if body is None:
            if self._framing.mid_message and not self._framing.ended:
                log.warning("the peer left in the middle of a message")
                self._trace_rest()
        elif self.trace is not None:
            self.trace.received(body)
        return body

    async def send(self, body: bytes) -> None:
        """Send as ByteStream.write does: returns when the peer keeps up. Raises ConnectionError when it is gone."""
        framed = self._framing.frame(body)
        if self.trace is not None:
            self.trace.sent(body)
        self._sending += 1
        try:
            await self._stream.write(framed)
        finally:
            self._sending -= 1

    async def farewell(self, reason: Farewell) -> None:
        """Say that no further message is sent, if the framing has a word for it. Raises ConnectionError."""
        if farewell := self._framing.farewell(reason):
            await self._stream.write(farewell)

    async def aclose(self, reason: Farewell = Farewell.DONE) -> None:
        """Close without waiting for the peer."""
        with contextlib.suppress(OSError):  # it is gone, or doesn't read
            async with asyncio.timeout(FAREWELL_S):
                await self.farewell(reason)
        await self._stream.aclose()

    async def _next(self) -> bytes | None:
        data = b""
        while (body := await self._fed(data)) is None:
            if self._framing.ended:
                return None
            data = await (self._rest() if self._framing.mid_message else self._more())
            if not data:
                return None
        return body

    async def _rest(self) -> bytes:
        """More of a message that has begun. Raises FramingError when it takes too long."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._stream.read()
        except TimeoutError:
            raise FramingError(f"the rest of a message hasn't come for {self._timeout_s:g} s") from None

    async def _more(self) -> bytes:
        """Return the next bytes, however long that takes. Raises FramingError when the peer doesn't answer a probe.

        A peer that has messages of ours to take is not asked: it would not get to the question.
        """
        if not self._framing.has_probe:
            return await self._stream.read()
        asked = False
        while True:
            try:
                async with asyncio.timeout(PROBE_S):
                    return await self._stream.read()
            except TimeoutError:
                if asked and not self._sending:
                    raise FramingError(f"the peer hasn't answered a ping for {PROBE_S:g} s") from None
            if not self._sending and (probe := self._framing.probe()):
                await self._reply(probe)
                asked = True

    async def _fed(self, data: bytes) -> bytes | None:
        """The next body that has come whole; what the framing itself has to say to `data` is sent."""
        try:
            return next(self._framing.feed(data), None)
        finally:
            if replies := self._framing.replies():
                await self._reply(replies)

    async def _reply(self, replies: bytes) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._stream.write(replies)
        except TimeoutError:
            raise FramingError(f"the peer hasn't read for {self._timeout_s:g} s") from None
        except ConnectionError:
            log.info("the peer is gone")

    def _trace_rest(self) -> None:
        if self.trace is not None:
            self.trace.malformed(self._framing.rest)

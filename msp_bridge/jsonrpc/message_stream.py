"""MessageStream: the bodies of messages over a ByteStream, each way, within their limits, and seen by the trace."""

from __future__ import annotations

import asyncio
import logging

from msp_bridge.jsonrpc.framing import FrameDecoder, FramingError, Limits, frame
from msp_bridge.jsonrpc.streams import ByteStream
from msp_bridge.jsonrpc.trace import PeerTrace

log = logging.getLogger(__name__)


class MessageStream:
    """One peer's messages, as bytes.

    `patience` is how many seconds the rest of a message may stay away when its beginning has come; None for ever.
    """

    def __init__(self, stream: ByteStream, patience: float | None = None) -> None:
        self._stream, self._patience = stream, patience
        self._decoder = FrameDecoder()
        self.trace: PeerTrace | None = None

    def limit(self, limits: Limits) -> None:
        """From the next message on."""
        self._decoder.limits = limits

    async def receive(self) -> bytes | None:
        """The next body; None at the end. Raises FramingError when there can't be a next one."""
        try:
            body = await self._next()
        except FramingError:
            self._trace_rest()
            raise
        if body is None:
            if self._decoder.mid_message:
                log.warning("the peer left in the middle of a message")
                self._trace_rest()
        elif self.trace is not None:
            self.trace.received(body)
        return body

    async def send(self, body: bytes) -> None:
        """Returns when the peer keeps up; raises ConnectionError when it is gone."""
        if self.trace is not None:
            self.trace.sent(body)
        await self._stream.write(frame(body))

    async def aclose(self) -> None:
        """Say goodbye without waiting for the peer."""
        await self._stream.aclose()

    async def _next(self) -> bytes | None:
        data = b""
        while (body := next(self._decoder.feed(data), None)) is None:
            try:
                async with asyncio.timeout(self._patience if self._decoder.mid_message else None):
                    data = await self._stream.read()
            except TimeoutError:
                raise FramingError(f"the rest of a message hasn't come for {self._patience:g} s") from None
            if not data:
                return None
        return body

    def _trace_rest(self) -> None:
        if self.trace is not None:
            self.trace.malformed(self._decoder.rest)

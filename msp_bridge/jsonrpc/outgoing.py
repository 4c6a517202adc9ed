"""Outgoing: what a connection sends to its peer: answers, and notifications and requests of its own."""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable, Iterator
from typing import Any

from msp_bridge.jsonrpc.messages import ErrorCode, Id, Message, RpcError, id_of, notification, request
from msp_bridge.jsonrpc.streams import MessageStream

log = logging.getLogger(__name__)

LAST_ANSWERS_S = 1.0  # for a peer that has closed its side to read what is still due


class Outgoing:
    """Sends to one peer. Each call returns when the peer has taken the message, or is gone.

    Our requests have ids of ours, which no request of the peer can be taken for. While it is `closing`, notifications
    and requests fail at once, and nothing waits for the peer for longer than LAST_ANSWERS_S.
    """

    def __init__(self, messages: MessageStream, broken: Callable[[], None]) -> None:
        """`broken` is called when the peer reads no more."""
        self._messages, self._broken = messages, broken
        self._numbers = itertools.count(1)
        self._waiting: dict[Id, asyncio.Future[Any]] = {}  # for the results of our requests
        self._answers: set[asyncio.Timeout] = set()  # that are being written
        self._ours: set[asyncio.Timeout] = set()  # notifications and requests that are being written
        self.unread = 0  # bytes of the answers that are being written
        self.closing = False

    @property
    def answers(self) -> int:
        """How many answers the peer has not taken yet."""
        return len(self._answers)

    async def notify(self, method: str, params: Any) -> None:
        """Raises ConnectionError when the peer is gone, or the connection is closing."""
        await self._send_ours(notification(method, params))

    async def request(self, method: str, params: Any) -> Any:
        """The peer's result; raises RpcError when it answers with an error, ConnectionError as `notify`."""
        with self._awaited() as (id, result):
            await self._send_ours(request(id, method, params))
            return await result

    def take(self, message: Message) -> bool:
        """Take a response of the peer. Returns False when no request waits for it."""
        id = id_of(message)
        result = None if id is None else self._waiting.get(id)
        if result is None or result.done():
            return False
        if "error" in message:
            result.set_exception(_error(message["error"]))
        else:
            result.set_result(message["result"])
        return True

    async def answer(self, answer: bytes, timeout_s: float | None = None) -> None:
        """Send an answer to a request of the peer. Raises TimeoutError; `close` may shorten the time."""
        self.unread += len(answer)
        try:
            await self._send(answer, LAST_ANSWERS_S if timeout_s is None and self.closing else timeout_s, self._answers)
        except ConnectionError as error:
            log.info("an answer was not sent: %s", error or "the peer is gone")
            self._break()
        finally:
            self.unread -= len(answer)

    def close(self) -> None:
        """End all waiting: no result comes any more, and nothing waits for the peer for long."""
        self.closing = True
        for result in self._waiting.values():
            if not result.done():
                result.set_exception(ConnectionError("the peer is gone"))
        soon = asyncio.get_running_loop().time() + LAST_ANSWERS_S
        for sending in self._answers | self._ours:
            if not sending.expired():
                sending.reschedule(soon)

    @contextlib.contextmanager
    def _awaited(self) -> Iterator[tuple[str, asyncio.Future[Any]]]:
        """The id for a request, and the future of its result; on leaving nobody waits for it any more."""
        id = f"msp-bridge-{next(self._numbers)}"
        self._waiting[id] = result = asyncio.get_running_loop().create_future()
        try:
            yield id, result
        finally:
            del self._waiting[id]
            if not result.cancel() and not result.cancelled():
                result.exception()  # looked at, so that asyncio doesn't warn that nobody did

    async def _send_ours(self, message: bytes) -> None:
        if self.closing:
            raise ConnectionError("the connection is closing")
        try:
            await self._send(message, None, self._ours)
        except TimeoutError:
            raise ConnectionError("the peer has closed its side, and doesn't read") from None
        except ConnectionError:
            self._break()
            raise

    async def _send(self, message: bytes, timeout_s: float | None, sending: set[asyncio.Timeout]) -> None:
        async with asyncio.timeout(timeout_s) as timeout:
            sending.add(timeout)
            try:
                await self._messages.send(message)
            finally:
                sending.discard(timeout)

    def _break(self) -> None:
        """The peer reads no more; that it sends no more may never be seen (it has closed our stdout, and not stdin)."""
        self.closing = True
        self._broken()


def _error(error: Any) -> RpcError:
    match error:
        case {"code": int(code), "message": str(message), **rest}:
            return RpcError(code, message, rest.get("data"))
    return RpcError(ErrorCode.INVALID_REQUEST, f"the peer's error is none: {error!r:.200}")

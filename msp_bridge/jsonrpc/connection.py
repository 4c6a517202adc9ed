"""Connection: the server side of JSON-RPC 2.0, for one peer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msp_bridge.jsonrpc.framing import FramingError
from msp_bridge.jsonrpc.json_text import NotJson, parse
from msp_bridge.jsonrpc.message_stream import MessageStream
from msp_bridge.jsonrpc.messages import (
    Call,
    ErrorCode,
    Id,
    RpcError,
    call_of,
    error_response,
    id_of,
    is_response,
    notification,
    response,
)

log = logging.getLogger(__name__)

MAX_IN_FLIGHT = 256  # requests of one peer: an editor has a handful, and each costs a task
LAST_WORDS = 1.0  # s; how long a peer that has closed its side may take to read the answers that are still due

Method = Callable[[Any], Awaitable[Any]]  # JSON value of `params` (None when absent) -> JSON value of `result`


class Connection:
    """One peer: its requests are tasks, so that a slow one delays no other.

    Order: messages are read in order; notifications are handled one after another, requests side by side.
    Cancelling: `$/cancelRequest` cancels the request's task; the answer (-32800) leaves when the task has cleaned up.
    Peer gone: whatever it still had running is cancelled, and `serve` returns when all of it has ended.
    Back-pressure: `notify` and the answers wait until the peer reads.
    Errors: a method raises RpcError to tell the peer; anything else is logged, and told as -32603 without a traceback.
    """

    def __init__(self, messages: MessageStream, methods: Mapping[str, Method]) -> None:
        self._messages, self._methods = messages, methods
        self._running: dict[Id, asyncio.Task[None]] = {}
        self._cancelled: set[Id] = set()
        self._peer_left = False
        self._answering: set[asyncio.Timeout] = set()

    async def serve(self) -> None:
        """Until the peer goes away, or sends what can't be cut into messages."""
        try:
            async with asyncio.TaskGroup() as tasks:
                await self._read(tasks)
                self._part()
        finally:
            self._peer_left = True
            await self._messages.aclose()

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification; raises ConnectionError when the peer is gone."""
        try:
            await self._messages.send(notification(method, params))
        except ConnectionError:
            self._peer_left = True
            raise

    async def _read(self, tasks: asyncio.TaskGroup) -> None:
        try:
            while (body := await self._messages.receive()) is not None:
                await self._receive(body, tasks)
        except FramingError as error:
            log.error("closing the connection: %s", error)
            await self._fail(None, RpcError(ErrorCode.INVALID_REQUEST, f"{error}; closing the connection"))

    async def _receive(self, body: bytes, tasks: asyncio.TaskGroup) -> None:
        try:
            message = parse(body)
            if isinstance(id_of(message), float):  # a whole number from 2^64 on, perhaps: some ids are UUIDs
                message = parse(body, exactly=True)
        except NotJson as error:
            await self._fail(None, RpcError(ErrorCode.PARSE_ERROR, f"the message is not JSON: {error}"))
            return
        if is_response(message):
            log.warning("ignoring a response: the server sends no requests")
            return
        try:
            call = call_of(message)
        except RpcError as error:
            await self._fail(id_of(message), error)
            return
        if call.id is None:
            self._notice(call)
        else:
            await self._start(call, call.id, tasks)

    async def _start(self, call: Call, id: Id, tasks: asyncio.TaskGroup) -> None:
        if id in self._running:
            await self._fail(
                id, RpcError(ErrorCode.INVALID_REQUEST, f"request {id!r} is already running; use an id once")
            )
        elif len(self._running) >= MAX_IN_FLIGHT:
            text = f"{MAX_IN_FLIGHT} requests are running already; wait for one of them, or cancel it"
            await self._fail(id, RpcError(ErrorCode.REQUEST_FAILED, text))
        else:
            self._running[id] = tasks.create_task(self._answer(call, id), name=f"{call.method} {id}")
            # A task that is cancelled before its first step would never answer; and `Session` counts on its requests
            # taking that step in the order of the messages, each before the next is read.
            await asyncio.sleep(0)

    def _notice(self, call: Call) -> None:
        if call.method == "$/cancelRequest":
            if (id := id_of(call.params)) in self._running:
                self._cancel(id)
        else:
            log.debug("ignoring the unknown notification %.100r", call.method)

    def _cancel(self, id: Id) -> None:
        if id not in self._cancelled:  # a second cancel would disturb the cleaning up
            self._cancelled.add(id)
            self._running[id].cancel()

    def _part(self) -> None:
        """The peer sends no more: what it had running is cancelled, and what it doesn't read soon is dropped."""
        self._peer_left = True
        for id in self._running:
            self._cancel(id)
        for answering in self._answering:
            answering.reschedule(asyncio.get_running_loop().time() + LAST_WORDS)

    async def _answer(self, call: Call, id: Id) -> None:
        try:
            answer = response(id, await self._dispatch(call))
        except asyncio.CancelledError as error:
            if id in self._cancelled:
                failure = RpcError(ErrorCode.REQUEST_CANCELLED, f"{call.method} was cancelled")
            elif _being_cancelled():
                raise
            else:  # it awaited something that somebody else had cancelled
                failure = _fault(call, error)
        except RpcError as error:
            failure = error
        except Exception as error:
            if self._peer_left and isinstance(error, ConnectionError):
                log.info("%s ends: %s", call.method, error or "the peer is gone")
                failure = RpcError(ErrorCode.REQUEST_CANCELLED, f"{call.method} was cancelled: the connection broke")
            else:
                failure = _fault(call, error)
        else:
            self._forget(id)
            await self._send_answer(answer)
            return
        self._forget(id)
        await self._fail(id, failure)

    def _forget(self, id: Id) -> None:
        """From here on a cancel comes too late: the answer is on its way."""
        del self._running[id]
        self._cancelled.discard(id)

    async def _dispatch(self, call: Call) -> Any:
        method = self._methods.get(call.method)
        if method is None:
            known = ", ".join(sorted(self._methods))
            raise RpcError(
                ErrorCode.METHOD_NOT_FOUND, f"there is no method {call.method[:100]!r}; the methods are {known}"
            )
        return await method(call.params)

    async def _fail(self, id: Id | None, error: RpcError) -> None:
        await self._send_answer(error_response(id, error))

    async def _send_answer(self, message: bytes) -> None:
        try:
            async with asyncio.timeout(LAST_WORDS if self._peer_left else None) as answering:
                self._answering.add(answering)
                await self._messages.send(message)
        except (ConnectionError, TimeoutError):
            log.info("an answer found nobody to read it")
        finally:
            self._answering.discard(answering)


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _fault(call: Call, error: BaseException) -> RpcError:
    """What the peer is told of a fault of our own."""
    log.error("%s failed", call.method, exc_info=error)
    text = f"{call.method} failed inside msp-bridge ({type(error).__name__}); its log has the details: please report it"
    return RpcError(ErrorCode.INTERNAL_ERROR, text)

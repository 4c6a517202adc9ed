"""Connection: the server side of JSON-RPC 2.0, for one peer.

Theory of operation
===================
One peer may have many requests open, each of them slow, and may read its answers late or never. None of this may delay
another peer, or a cancel of this one:

- The reader (`_read`) takes message after message. It never waits for a method, so that `$/cancelRequest` and the end
  of the input are seen at once, whatever runs.
- Each request is two tasks. One runs the method, and is what a cancel cancels. The other waits for it and sends the
  answer, so there is exactly one answer also when the method is cancelled before its first step. (One task can't do
  both: a task that is cancelled before its first step runs no `except`.)
- Requests begin in the order of their messages: `_queue` has the requests that have not begun, and the first of them
  has its turn. The turn passes on when its method has been called and is about to run concurrently with all others; or,
  when the method is registered as `sequential`, when it has ended. A request that is cancelled in the queue stays there
  until it is the first; otherwise it would let messages behind it overtake a sequential one before it.
- A notification that the service takes is a request that nobody answers: it has its turn among them, so that a request
  sees what every notification before it has changed. What its method does before it first waits is done before
  anything behind it begins.

A request is *open* from its message until its answer is written: first in `_running`, then in `Outgoing`. Invariants:

- An id in `_running` is in use; the id is free again as soon as its answer is on its way, when a cancel comes too late.
- At most MAX_OPEN requests are open, and a new one is accepted only while at most MAX_UNREAD bytes of answers wait for
  the peer to read them. The obvious way, to count only the methods that run, bounds nothing: a peer that never reads
  makes each of its requests an answer in memory, and a task that waits to write it.
- What the reader itself answers (errors) it also writes itself. A peer that doesn't read is then not read from either:
  the operating system's buffers fill, and the peer stops. After REJECTION_TIMEOUT_S the connection ends; otherwise the
  reader would never see the end of the input again. The same holds while MAX_OPEN notifications are not done with.

When the peer sends no more (`_end`), what runs is cancelled, and what it doesn't read soon is dropped (`outgoing`).
When the connection itself is cancelled (a signal), the task group cancels both tasks of each request, and `serve`
returns when the methods have cleaned up: no answer is waited for. In both cases the connection is *closing*: methods
that clean up send nothing more, for `notify` and `request` fail at once. So no end hangs on a peer that doesn't read.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, NoReturn, TypeVar

from attrs import define, field, frozen

from msp_bridge.errors import BridgeError
from msp_bridge.jsonrpc.framing import Farewell, FramingError
from msp_bridge.jsonrpc.messages import (
    MAX_PARTS,
    Call,
    ErrorCode,
    Id,
    NotJson,
    RpcError,
    call_of,
    error_response,
    has_too_many_parts,
    id_of,
    is_response,
    parse,
    response,
)
from msp_bridge.jsonrpc.outgoing import Outgoing
from msp_bridge.jsonrpc.streams import MessageStream
from msp_bridge.text import one_line

log = logging.getLogger(__name__)

P = TypeVar("P")

MAX_OPEN = 256  # requests of one peer: an editor has a handful, and each costs two tasks
MAX_UNREAD = 64 * 1024 * 1024  # bytes of answers
REJECTION_TIMEOUT_S = 30.0  # for a peer with too many open requests to read that


@frozen
class Method(Generic[P]):
    """A method: `run` takes what `read` makes of the JSON value of `params` (None when absent), and returns `result`.

    `read` raises RpcError. It has the method's turn, in a thread where the params may be `large`: reading those takes
    half a second, and delays no other peer.
    `sequential`: requests behind this one begin when it has ended. As they count on it, neither `$/cancelRequest` nor
    the end of the input cancels it.
    """

    run: Callable[[P], Awaitable[Any]]
    read: Callable[[Any], P] = lambda params: params
    sequential: bool = False
    large: bool = False


@frozen
class Service:
    """A service of a connection: the `methods` of requests and of `notifications`, by name; others are unknown.

    `admit` is called when it is a message's turn. It raises RpcError for one that may not come now: a request is
    answered with that, a notification is dropped. `cancelled` is the code of the answer to a cancelled request.
    """

    methods: Mapping[str, Method[Any]]
    notifications: Mapping[str, Method[Any]] = field(factory=dict)
    admit: Callable[[Call], None] = lambda _: None
    cancelled: int = ErrorCode.REQUEST_CANCELLED


@define(eq=False)
class _Request:
    call: Call
    id: Id | None  # of a notification: None
    method: Method[Any] | None  # None: there is none
    turn: asyncio.Event = field(factory=asyncio.Event)  # it may begin
    passed: bool = False  # the next may begin

    @property
    def is_sequential(self) -> bool:
        return self.method is not None and self.method.sequential


class Connection:
    """One peer's requests and notifications, handled by a Service; and ours to the peer.

    Order: messages have their turn in the order in which they came, and run concurrently; see `Method.sequential`.
    Cancelling: `$/cancelRequest` cancels the method; the answer leaves when the method has cleaned up.
    Peer gone: whatever it still had running is cancelled, and `serve` returns when all of it has ended. One that only
    reads no more is gone, too.
    Back-pressure: `notify` and `request` wait until the peer reads; so do answers, of which there is a limited number.
    A connection that is closing refuses both.
    Errors: a method raises RpcError to answer with it, or BridgeError for what the user can fix; any other error is
    logged, and answered by -32603 without text.
    """

    def __init__(self, messages: MessageStream) -> None:
        self._messages = messages
        self._service = Service({})
        self._queue: deque[_Request] = deque()  # have not begun, except the first; see `_pass_turn`
        self._running: dict[Id, tuple[_Request, asyncio.Task[bytes]]] = {}
        self._notified: dict[asyncio.Task[bytes], _Request] = {}  # notifications that are not done with
        self._cancelled: set[Id] = set()
        self._outgoing = Outgoing(messages, self.end)
        self._reading: asyncio.Task[None] | None = None

    async def serve(self, service: Service) -> None:
        """Serve until the peer goes away, sends what can't be cut into messages, or `end` is called."""
        self._service = service
        reason = Farewell.DONE
        try:
            async with asyncio.TaskGroup() as tasks:
                self._reading = tasks.create_task(self._read(tasks))
                try:
                    await asyncio.wait([self._reading])
                finally:
                    self._outgoing.close()
                self._end()
        except asyncio.CancelledError:
            reason = Farewell.GOING_AWAY
            raise
        finally:
            await self._messages.aclose(reason)

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification; raises ConnectionError when the peer is gone, or the connection is closing."""
        await self._outgoing.notify(method, params)

    async def request(self, method: str, params: Any) -> Any:
        """The peer's result; raises RpcError when it answers with an error, ConnectionError as `notify`."""
        return await self._outgoing.request(method, params)

    def end(self) -> None:
        """Read no more messages: `serve` goes on as if the peer had sent its last."""
        if self._reading is not None:
            self._reading.cancel()

    async def _read(self, tasks: asyncio.TaskGroup) -> None:
        try:
            while (body := await self._messages.receive()) is not None:
                await self._receive(body, tasks)
                await asyncio.sleep(0)  # one chunk may hold a thousand messages: other peers have their turn
        except TimeoutError:
            problem = "the client has not read its answers, or its notifications are not done with,"
            log.error("closing the connection: %s for %g s", problem, REJECTION_TIMEOUT_S)
        except FramingError as error:
            log.error("closing the connection: %s", error)
            text = f"{error}; closing the connection"
            with contextlib.suppress(TimeoutError):
                await self._reject(None, RpcError(ErrorCode.INVALID_REQUEST, text))

    async def _receive(self, body: bytes, tasks: asyncio.TaskGroup) -> None:
        """Raises TimeoutError when the peer doesn't read that its message was rejected; FramingError for a huge one."""
        if len(body) > MAX_PARTS and await asyncio.to_thread(has_too_many_parts, body):
            raise FramingError(f"a message has more than {MAX_PARTS} strings, arrays, objects and commas")
        try:
            message = parse(body)
            if isinstance(id_of(message), float):  # a whole number from 2^64 on, perhaps: some ids are UUIDs
                message = parse(body, exactly=True)
        except NotJson as error:
            await self._reject(None, RpcError(ErrorCode.PARSE_ERROR, f"the message is not JSON: {error}"))
            return
        if is_response(message):
            if not self._outgoing.take(message):
                log.warning("ignoring a response: no request of ours waits for it")
            return
        try:
            call = call_of(message)
            if call.id is not None:
                self._accept(call, call.id, tasks)
            elif call.method == "$/cancelRequest":
                self._cancel(id_of(call.params))
            elif call.method in self._service.notifications:
                await self._accept_notification(call, tasks)
            else:
                log.debug("ignoring the unknown notification %.100r", call.method)
        except RpcError as error:
            await self._reject(id_of(message), error)

    def _accept(self, call: Call, id: Id, tasks: asyncio.TaskGroup) -> None:
        """Have the request begin when it is its turn. Raises RpcError when there are too many."""
        if id in self._running:
            raise RpcError(ErrorCode.INVALID_REQUEST, f"request {id!r} is already running; use an id once")
        if len(self._running) + self._outgoing.answers >= MAX_OPEN:
            raise RpcError(
                ErrorCode.REQUEST_FAILED,
                f"{MAX_OPEN} requests are running already, or have answers that are not read yet; read those, wait for "
                "one of the requests, or cancel it",
            )
        if self._outgoing.unread > MAX_UNREAD:
            text = f"{self._outgoing.unread} bytes of answers are not read yet; read them first"
            raise RpcError(ErrorCode.REQUEST_FAILED, text)
        request = _Request(call, id, self._service.methods.get(call.method))
        running = self._queued(request, tasks)
        self._running[id] = request, running
        tasks.create_task(self._answer(request, id, running), name=f"answer {id}")

    async def _accept_notification(self, call: Call, tasks: asyncio.TaskGroup) -> None:
        """Have it handled when it is its turn. Raises TimeoutError when none of those before it comes to its end."""
        if len(self._notified) >= MAX_OPEN:
            async with asyncio.timeout(REJECTION_TIMEOUT_S):
                await asyncio.wait(self._notified, return_when=asyncio.FIRST_COMPLETED)
        request = _Request(call, None, self._service.notifications[call.method])
        running = self._queued(request, tasks)
        self._notified[running] = request
        running.add_done_callback(self._notified.pop)

    def _queued(self, request: _Request, tasks: asyncio.TaskGroup) -> asyncio.Task[bytes]:
        """The task that runs its method when it is its turn."""
        running = tasks.create_task(self._run(request), name=f"{request.call.method} {request.id}")
        running.add_done_callback(lambda _: self._pass_turn(request))
        self._queue.append(request)
        self._queue[0].turn.set()
        return running

    def _pass_turn(self, request: _Request) -> None:
        request.passed = True
        while self._queue and self._queue[0].passed:
            self._queue.popleft()
        if self._queue:
            self._queue[0].turn.set()

    async def _run(self, request: _Request) -> bytes:
        """The answer, of a notification too; cancelled by `$/cancelRequest`."""
        try:
            await request.turn.wait()
            self._service.admit(request.call)
            method = request.method or self._no_method(request.call)
            given = request.call.params
            params = await asyncio.to_thread(method.read, given) if method.large else method.read(given)
            running = method.run(params)
            if not method.sequential:
                self._pass_turn(request)
            return response(request.id, await running)
        except RpcError as error:
            failure = error
            if request.id is None:
                log.info("the notification %s is dropped: %s", request.call.method, error)
        except BridgeError as error:  # which the user can fix
            log.error("%s", error)
            failure = RpcError(ErrorCode.REQUEST_FAILED, one_line(str(error)))
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            failure = _fault(request.call, error)  # the method awaited something that another had cancelled
        except Exception as error:
            if self._outgoing.closing and isinstance(error, ConnectionError):
                log.info("%s ends: %s", request.call.method, str(error) or "the peer is gone")
                failure = self._was_cancelled(request.call, ": the connection broke")
            else:
                failure = _fault(request.call, error)
        return error_response(request.id, failure)

    def _no_method(self, call: Call) -> NoReturn:
        known = ", ".join(sorted(self._service.methods))
        text = f"there is no method {call.method[:100]!r}; the methods are {known}"
        raise RpcError(ErrorCode.METHOD_NOT_FOUND, text)

    async def _answer(self, request: _Request, id: Id, running: asyncio.Task[bytes]) -> None:
        await asyncio.wait([running])
        del self._running[id]  # from here on a cancel comes too late
        self._cancelled.discard(id)
        cancelled = running.cancelled()
        answer = error_response(id, self._was_cancelled(request.call)) if cancelled else running.result()
        try:
            await self._outgoing.answer(answer)
        except TimeoutError:
            log.info("the answer to %s was not read", request.call.method)

    def _cancel(self, id: Id | None) -> None:
        if id is None or id not in self._running or id in self._cancelled:  # a second would disturb the clean-up
            return
        request, running = self._running[id]
        if not request.is_sequential:
            self._cancelled.add(id)
            running.cancel()

    def _end(self) -> None:
        """The peer sends no more: what it had running is cancelled."""
        for id in self._running:
            self._cancel(id)
        for running, notified in self._notified.items():
            if not notified.is_sequential:
                running.cancel()

    async def _reject(self, id: Id | None, error: RpcError) -> None:
        """Answer without a method. Raises TimeoutError when the peer doesn't read it."""
        await self._outgoing.answer(error_response(id, error), REJECTION_TIMEOUT_S)

    def _was_cancelled(self, call: Call, reason: str = "") -> RpcError:
        return RpcError(self._service.cancelled, f"{call.method} was cancelled{reason}")


def _fault(call: Call, error: BaseException) -> RpcError:
    """The answer to a fault of our own."""
    log.error("%s failed", call.method, exc_info=error)
    text = f"{call.method} failed inside msp-bridge ({type(error).__name__}); its log has the details: please report it"
    return RpcError(ErrorCode.INTERNAL_ERROR, text)

"""OutgoingRequests: requests of the server to its peer that wait for their answers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

from msp_bridge.jsonrpc.messages import ErrorCode, Id, Message, RpcError, id_of


class OutgoingRequests:
    """Each has an id of ours, which no request of the peer can be taken for, and a future for its answer."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._waiting: dict[Id, asyncio.Future[Any]] = {}
        self._failure: ConnectionError | None = None

    @contextlib.contextmanager
    def expected(self) -> Iterator[tuple[str, asyncio.Future[Any]]]:
        """The id for a request, and the future of its answer; on leaving nobody waits for it any more.

        The future raises RpcError when the peer answers with an error, ConnectionError when it is gone.
        """
        if self._failure is not None:
            raise self._failure
        id = f"msp-bridge-{next(self._numbers)}"
        self._waiting[id] = answer = asyncio.get_running_loop().create_future()
        try:
            yield id, answer
        finally:
            del self._waiting[id]
            if not answer.cancel() and not answer.cancelled():
                answer.exception()  # looked at, so that asyncio doesn't warn that nobody did

    def take(self, message: Message) -> bool:
        """A response of the peer. False when no request waits for it."""
        id = id_of(message)
        answer = None if id is None else self._waiting.get(id)
        if answer is None or answer.done():
            return False
        if "error" in message:
            answer.set_exception(_error(message["error"]))
        else:
            answer.set_result(message["result"])
        return True

    def fail(self, failure: ConnectionError) -> None:
        """No answer comes any more."""
        self._failure = failure
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(failure)


def _error(error: Any) -> RpcError:
    match error:
        case {"code": int(code), "message": str(message), **rest}:
            return RpcError(code, message, rest.get("data"))
    return RpcError(ErrorCode.INVALID_REQUEST, f"the peer's error is none: {error!r:.200}")

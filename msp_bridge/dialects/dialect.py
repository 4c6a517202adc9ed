"""Dialect: what a wire protocol must say of itself, and what is the same for all of them."""

import abc
import asyncio
import logging
import os
from collections.abc import Coroutine
from pkgutil import resolve_name
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from attrs import define

from msp_bridge.concurrency import cancel_all
from msp_bridge.jsonrpc.connection import Connection, Service
from msp_bridge.jsonrpc.messages import Call, ErrorCode, RpcError
from msp_bridge.session import Session

log = logging.getLogger(__name__)

# Where each is, by its name for `serve --dialect`. It is imported when it is chosen: an editor waits for that.
DIALECTS = {
    "msp": "msp_bridge.dialects.msp:Msp",
    "msp-alpha": "msp_bridge.dialects.msp_alpha:MspAlpha",
    "test-runner": "msp_bridge.dialects.test_runner:JsonRpcTestRunner",
    "mtp": "msp_bridge.dialects.mtp:Mtp",
    "lsp": "msp_bridge.dialects.lsp.dialect:Lsp",
}
DEFAULT = "msp"
WATCH_S = 1.0  # between two looks whether the process that has started us is there


class Dialect(abc.ABC):
    """Serves one client: translates what it asks into calls of its session, and what comes of them into messages.

    A dialect owns no process, no file and no state of a tool. What it does for a message ends with the method that the
    message called, and a cancel of that ends it; what has to last longer goes to `_in_background`. It raises RpcError
    for what is wrong on the wire, and BridgeError for what the user can fix.
    """

    title: ClassVar[str]  # the protocol's name, in messages

    def __init__(self, session: Session, client: Connection) -> None:
        """`client` is for what the server sends by itself: notifications, requests, the end."""
        self._session, self._client = session, client
        self._background: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None
        self.exit_code = 0  # of `serve stdio`, when this client has left

    @property
    @abc.abstractmethod
    def service(self) -> Service:
        """The methods for the client's connection; read once."""

    async def serve(self) -> None:
        """Serve until the client leaves; returns when everything that it had running has ended."""
        try:
            await self._client.serve(self.service)
        finally:
            if self._watching is not None:
                self._watching.cancel()
            await self._end_background()

    async def _end_background(self) -> None:
        """End all that was begun by `_in_background`."""
        while self._background:  # what ends may begin something
            await cancel_all(tuple(self._background))

    def _end_with_parent(self, pid: int | None) -> None:
        """End the connection when the process `pid` has ended, which the client says it is, if that has started us.

        Any other number says nothing: it may be of another machine or container. The end of a connection does.
        """
        if pid == os.getppid():
            self._watching = asyncio.create_task(self._watch(pid), name="watch of the client's process")

    async def _watch(self, parent: int) -> None:
        while True:
            await asyncio.sleep(WATCH_S)
            if os.getppid() != parent:
                break
        log.info("the client's process %d has ended", parent)
        self._client.end()

    def _in_background(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Have `work` done while the connection lasts, for a method that ends before. It reports its own failures."""
        task = asyncio.create_task(work, name=name)
        self._background.add(task)
        task.add_done_callback(self._log_failure)
        return task

    def _log_failure(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            gone = isinstance(failure, ConnectionError)
            log.log(logging.INFO if gone else logging.ERROR, "%s failed", task.get_name(), exc_info=failure)


@define
class Handshake:
    """`initialize` comes first, and once, in the protocols that have it from LSP; after `shutdown` comes only `exit`.

    A client whose `initialize` was refused may send another.
    """

    not_initialized: int  # the code for what comes before it
    done: bool = False
    shut_down: bool = False

    def admit(self, call: Call) -> None:
        """Raises RpcError for a message that may not come now (`Service.admit`)."""
        if self.shut_down:
            raise RpcError(ErrorCode.INVALID_REQUEST, "the server has been shut down: only `exit` may follow")
        if call.method != "initialize" and not self.done:
            raise RpcError(self.not_initialized, f"{call.method[:100]} came before `initialize`: send that first")
        if call.method == "initialize" and self.done:
            raise RpcError(ErrorCode.INVALID_REQUEST, "`initialize` may be sent only once on a connection")


def path_of(uri: str) -> str | None:
    """The absolute path that a file URI names (RFC 8089); None for any other, and for what no file can be called."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        return None
    path = unquote(parts.path, errors="surrogateescape")
    return path if "\0" not in path else None


def load(name: str) -> type[Dialect]:
    """The dialect that DIALECTS calls `name`."""
    dialect: type[Dialect] = resolve_name(DIALECTS[name])
    return dialect

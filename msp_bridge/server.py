"""Serving one client: connects it with its dialect, and ends in order when the client leaves or a signal comes."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from typing import Any, NoReturn

from msp_bridge.concurrency import cancel_all
from msp_bridge.dialects.dialect import Dialect
from msp_bridge.errors import BridgeError
from msp_bridge.jsonrpc.connection import Connection
from msp_bridge.jsonrpc.streams import ByteStream, MessageStream, SocketStream, StdioStream
from msp_bridge.jsonrpc.trace import PeerTrace, Trace
from msp_bridge.session import Session
from msp_bridge.workspace.open_workspaces import OpenWorkspaces

log = logging.getLogger(__name__)

Serve = Callable[[ByteStream, PeerTrace | None], Coroutine[Any, Any, int]]  # one client; its exit code


async def serve_client(
    stream: ByteStream, workspaces: OpenWorkspaces, dialect: type[Dialect], trace: PeerTrace | None = None
) -> int:
    """Serve one client until it leaves, and return its exit code, when everything that it had running has ended."""
    messages = MessageStream(stream)
    messages.trace = trace
    return await answer(messages, workspaces, dialect)


async def serve_stdio(workspaces: OpenWorkspaces, dialect: type[Dialect], trace: Trace | None = None) -> int:
    """Serve the client at the other end of our stdin and stdout by `dialect`; see `serve_on_stdio`."""
    return await serve_on_stdio(dialect.title, _by(dialect, workspaces), workspaces, trace)


async def serve_connected(
    host: str, port: int, workspaces: OpenWorkspaces, dialect: type[Dialect], trace: Trace | None = None
) -> int:
    """Connect to the client that listens at `host`, and serve it by `dialect` as on stdio. Raises BridgeError."""
    try:
        stream = SocketStream(*await asyncio.open_connection(host, port))
    except (OSError, UnicodeError) as error:
        problem = f"can't connect to the client at {host}:{port} ({error})"
        raise BridgeError(problem, "name the host and the port on which it listens") from None
    log.info("serving %s to the client at %s:%d", dialect.title, host, port)
    return await _serve_only(stream, _by(dialect, workspaces), workspaces, trace)


async def serve_on_stdio(title: str, serve: Serve, workspaces: OpenWorkspaces, trace: Trace | None = None) -> int:
    """`serve` the client at the other end of our stdin and stdout, until stdin ends or a signal comes.

    Returns the exit code that the client's leaving asks for; a signal is no fault, and asks for 0.
    """
    try:
        stream = StdioStream.claim()
    except OSError as error:
        raise BridgeError(f"can't serve stdio: stdin or stdout is closed ({error})", "or use `serve socket`") from None
    log.info("serving %s on stdio", title)
    return await _serve_only(stream, serve, workspaces, trace)


def _by(dialect: type[Dialect], workspaces: OpenWorkspaces) -> Serve:
    async def serve(stream: ByteStream, peer: PeerTrace | None) -> int:
        return await serve_client(stream, workspaces, dialect, peer)

    return serve


async def _serve_only(stream: ByteStream, serve: Serve, workspaces: OpenWorkspaces, trace: Trace | None) -> int:
    """The one client of this process, until it leaves or a signal comes; its exit code."""
    peer = None if trace is None else trace.peer(1)
    async with until_signal() as stopping, contextlib.aclosing(workspaces):
        client = asyncio.create_task(serve(stream, peer), name="client")
        await asyncio.wait([client, stopping], return_when=asyncio.FIRST_COMPLETED)
        await cancel_all([client])
        return 0 if client.cancelled() else client.result()


async def answer(messages: MessageStream, workspaces: OpenWorkspaces, dialect: type[Dialect]) -> int:
    """Answer one client's `messages` until it leaves. Returns its exit code, when all that it had running has ended."""
    client = dialect(Session(workspaces), Connection(messages))
    await client.serve()
    return client.exit_code


@contextlib.asynccontextmanager
async def until_signal() -> AsyncIterator[asyncio.Task[bool]]:
    """A task that is done when SIGTERM, SIGINT or (where there is one) SIGHUP has come."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    with _handlers_restored() as numbers:
        for number in numbers:
            loop.add_signal_handler(number, stop.set)
        stopping = asyncio.create_task(stop.wait(), name="signal")
        try:
            yield stopping
        finally:
            stopping.cancel()
            for number in numbers:
                loop.remove_signal_handler(number)


@contextlib.contextmanager
def exit_on_signal() -> Iterator[None]:
    """Have each of these signals end the process with exit code 0 in the block, also outside of `until_signal`.

    Before it, nothing has been started that must be ended, and after it, nothing is left: leaving the Python code is
    enough. By default the signal would make an exit in order look like a crash.
    """
    with _handlers_restored() as numbers:
        for number in numbers:
            signal.signal(number, _exit)
        yield


@contextlib.contextmanager
def _handlers_restored() -> Iterator[Sequence[signal.Signals]]:
    """The signals that ask a process to end; their handlers are set back on leaving."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        yield tuple(handlers)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _exit(*_: object) -> NoReturn:
    raise SystemExit(0)

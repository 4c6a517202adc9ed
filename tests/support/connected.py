"""A Connection under test, served in this process, with a test client at its other end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from attrs import evolve, frozen

from msp_bridge.jsonrpc.connection import Connection, Method, Service
from msp_bridge.jsonrpc.streams import MessageStream
from support.memory_stream import ROOM, MemoryStream
from support.msp_client import LONG, Client

Run = Callable[[Any], Awaitable[Any]]


@frozen
class Connected:
    """Both ends."""

    client: Client
    connection: Connection
    serving: asyncio.Task[None]
    theirs: MemoryStream  # the client's end
    ours: MemoryStream  # the connection's

    async def served(self) -> None:
        """Returns when the connection has ended."""
        async with asyncio.timeout(LONG):
            await asyncio.wait([self.serving])
        if not self.serving.cancelled():
            self.serving.result()


@contextlib.asynccontextmanager
async def connected(
    methods: Mapping[str, Method | Run] | None = None, room: int = ROOM, service: Service | None = None
) -> AsyncIterator[Connected]:
    """Leaves when the connection has ended, without a fault. `service` is for what isn't a method."""
    ours, theirs = MemoryStream.pair(room)
    served = {name: run if isinstance(run, Method) else Method(run) for name, run in (methods or {}).items()}
    connection = Connection(MessageStream(ours))
    serving = asyncio.create_task(connection.serve(evolve(service or Service({}), methods=served)))
    both = Connected(Client(theirs), connection, serving, theirs, ours)
    try:
        yield both
    finally:
        await theirs.vanish()
        await both.served()
    assert ours.closed

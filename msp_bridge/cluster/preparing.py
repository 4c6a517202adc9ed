"""Prepare a worker for a request: the same version, the files that it lacks, and an adapter like the client's."""

import asyncio

from attrs import define, field

from msp_bridge import __version__
from msp_bridge.cluster import worker as remote
from msp_bridge.cluster.connection import Bounds, SchedulerConnection
from msp_bridge.cluster.snapshot import Snapshot, Traffic
from msp_bridge.cluster.wire import Greeting, Order, Refused, checked, failure_of, greeting_of, lacking_of
from msp_bridge.concurrency import in_thread
from msp_bridge.errors import ToolError

SENDING = 8  # workers that get files at the same time


@define(eq=False)
class Preparing:
    """Prepares the workers of one request."""

    connection: SchedulerConnection
    order: Order
    snapshot: Snapshot
    used: set[str]  # workers that have something of this client, added to
    bounds: Bounds
    traffic: dict[str, Traffic] = field(factory=dict, init=False)  # what was sent to each worker
    _sending: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(SENDING), init=False)

    async def prepare(self, address: str) -> Greeting:
        """Have the worker ready for this order. Raises WorkerLost, Refused, and ToolError for the scheduler."""
        call, bounds = self.connection.call, self.bounds
        greeting = checked(greeting_of, await call(address, remote.greet, within=bounds.answer))
        if greeting.version != __version__:
            text = f"msp-bridge is {greeting.version} there, and {__version__} here"
            raise Refused(ToolError(text, "install the same version on all machines"))
        self.used.add(address)
        async with self._sending:
            await self._send(address)
        failure = checked(failure_of, await call(address, remote.prepare, self.order, within=bounds.prepare))
        if failure is not None:
            raise Refused(failure.error(address))
        return greeting

    async def _send(self, address: str) -> None:
        """The files that the worker lacks."""
        call, snapshot, within = self.connection.call, self.snapshot, self.bounds.answer
        traffic = self.traffic.setdefault(address, Traffic())
        lacking = checked(lacking_of, await call(address, remote.lacking, snapshot.id, None, within=within))
        if lacking is None:
            answer = await call(address, remote.lacking, snapshot.id, snapshot.entries, within=within)
            lacking = checked(lacking_of, answer)
        pieces = snapshot.pieces(lacking or ())
        while (piece := await in_thread(next, pieces, None)) is not None:
            traffic.files += len(piece)
            traffic.bytes += sum(map(len, piece.values()))
            failure = checked(failure_of, await call(address, remote.keep, piece, within=self.bounds.prepare))
            if failure is not None:
                raise Refused(failure.error(address))

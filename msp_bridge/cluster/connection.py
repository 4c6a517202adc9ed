"""The connection to a Dask scheduler, and the calls to its workers, each with a bound.

Everything goes through the scheduler, so a client needs no way to the workers themselves. TLS and authentication are
Dask's: its configuration says which certificates a client has (`distributed.comm.tls`).
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from attrs import define, field, frozen

from msp_bridge.access.addresses import is_this_machine
from msp_bridge.cluster.wire import LEASE_S
from msp_bridge.concurrency import cancel_all
from msp_bridge.errors import BridgeError, ConfigurationError, ToolError

T = TypeVar("T")

log = logging.getLogger(__name__)

CONNECT_S = 30
SILENT_S = 1  # for a worker that did not answer the last time, and is not to do anything more for us
SUSPENDED_S = 5  # by which a time-out comes too late when this process was suspended, as by Ctrl-Z
TASK = "msp-bridge"  # what Dask's dashboard shows


class LeaseExpired(Exception):
    """The worker has ended a chunk because nobody had asked for its results: this process was suspended meanwhile."""


class WorkerLost(Exception):
    """The worker has ended, or doesn't answer."""


@frozen
class Bounds:
    """How long a worker may keep the client waiting, in seconds."""

    answer: float = 90.0  # for an answer, beyond what a question for results is kept waiting; a slow network has some
    prepare: float = 1800.0  # for the adapter to be opened: an interpreter may be slow to start, a store large
    begin: float = 3600.0  # for a chunk to begin, behind chunks of others, while the worker gives no result of ours
    result: float = 1800.0  # for the next result of a chunk; the first waits for the tests without mutants
    join: float = 30.0  # for a worker, where there is none, as when one is started anew
    ask: float = 10.0  # for which a worker keeps a question for results waiting
    lease: float = LEASE_S
    end: float = 20.0  # for the end of the tests on a worker when nobody wants more


@define(eq=False)
class SchedulerConnection:
    """A client of the scheduler at `address`, connected at its first use."""

    address: str
    _client: Any = None
    _connecting: asyncio.Lock = field(factory=asyncio.Lock)
    _silent: set[str] = field(factory=set, init=False)  # workers that did not answer the last time

    async def connect(self) -> None:
        """Raises ToolError when there is no scheduler, ConfigurationError when it can't be talked to."""
        async with self._connecting:
            if self._client is not None and self._client.status == "running":
                return
            client_class = _client_class()
            await self._close()
            try:
                self._client = client_class(
                    self.address,
                    asynchronous=True,
                    timeout=CONNECT_S,
                    set_as_default=False,
                    name=TASK,
                    connection_limit=_connections(),
                )
                await self._client
            except (OSError, ImportError, TimeoutError) as error:
                reason = str(error).partition("\n")[0] or type(error).__name__
                also = ", or the certificates in Dask's configuration" if self.address.startswith("tls:") else ""
                raise ToolError(
                    f"the cluster's scheduler {self.address} can't be reached: {reason}",
                    f"start it with `dask scheduler`, or correct the address{also}",
                ) from error
            except (ValueError, TypeError, RuntimeError) as error:
                raise ConfigurationError(
                    f"{self.address} can't be used as a cluster: {error}",
                    "write tcp://HOST:PORT or tls://HOST:PORT, and the certificates into Dask's configuration",
                ) from error

    async def workers(self) -> dict[str, int]:
        """Address to threads, as the scheduler knows them. Raises ToolError when the scheduler is gone."""
        with self._scheduler_errors():
            return dict(await _answer(self._client.nthreads, CONNECT_S))

    async def call(self, worker: str, function: Callable[..., Any], *arguments: Any, within: float) -> Any:
        """Call `function` on `worker`, which adds itself as `dask_worker`.

        Raises WorkerLost, and ToolError when the scheduler is gone.
        """
        ask = partial(self._client.run, function, *arguments, workers=[worker], on_error="return")
        with self._scheduler_errors():
            try:
                answers = await _answer(ask, within)
            except TimeoutError:
                self._silent.add(worker)
                raise WorkerLost(f"it has not answered for {within:.0f} s") from None
        self._silent.discard(worker)
        answer = answers.get(worker)
        if isinstance(answer, ImportError | AttributeError):
            raise WorkerLost(f"it has another version of the bridge, or none: {answer}")
        if isinstance(answer, OSError | TimeoutError):
            raise WorkerLost("it has ended")
        if isinstance(answer, Exception):
            raise WorkerLost(f"{answer!r}") from answer
        return answer

    async def take_leave(self, worker: str, function: Callable[..., Any], *arguments: Any, within: float) -> None:
        """Call `function`, which ends something on `worker`, and return when it has done so.

        Nothing is waited for that won't come: a worker that hangs is told, and hears it when it goes on; one that the
        scheduler has no more is not told, and none is when the scheduler is gone.
        """
        if not await self._knows(worker):
            return
        within = min(within, SILENT_S) if worker in self._silent else within
        with contextlib.suppress(WorkerLost, BridgeError):
            await self.call(worker, function, *arguments, within=within)

    async def _knows(self, worker: str) -> bool:
        """Whether there is a scheduler, and the worker is one of its own."""
        if self._client is None or self._client.status != "running":
            return False
        with contextlib.suppress(BridgeError):
            return worker in await self.workers()
        return False

    def submit(self, worker: str, function: Callable[..., Any], argument: Any, key: str) -> Any:
        """The Dask future of a task that only this worker may run; it is released when it is no longer held."""
        return self._client.submit(
            function, argument, key=f"{TASK}-{key}", workers=[worker], allow_other_workers=False, pure=False, retries=0
        )

    async def aclose(self) -> None:
        """Leave the scheduler."""
        async with self._connecting:
            await self._close()

    async def _close(self) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        closing = asyncio.ensure_future(client.close())
        try:
            await asyncio.wait([closing], timeout=CONNECT_S)  # the scheduler may be gone
        finally:
            closing.cancel()  # and not waited for: what hangs here may not heed that
        if closing.done() and not closing.cancelled() and (error := closing.exception()) is not None:
            log.debug("the client of %s did not close: %r", self.address, error)

    @contextlib.contextmanager
    def _scheduler_errors(self) -> Any:
        try:
            yield
        except (OSError, TimeoutError, RuntimeError, AttributeError) as error:
            runs = self._client is not None and self._client.status == "running"
            if runs and isinstance(error, RuntimeError | AttributeError):
                raise
            raise ToolError(
                f"the cluster's scheduler {self.address} is gone: {type(error).__name__}",
                "what was tested so far stays; start the scheduler, and run the rest again",
            ) from error


def sends_openly(address: str) -> bool:
    """Whether what goes to the scheduler at `address` can be read on a network."""
    protocol, found, place = address.partition("://")
    if protocol in ("tls", "wss"):
        return False
    host = (place if found else address).rpartition(":")[0].strip("[]")
    return not is_this_machine(host)


async def check_scheduler(address: str) -> None:
    """Raises BridgeError unless there is a scheduler at `address` that takes this client."""
    connection = SchedulerConnection(address)
    try:
        await connection.connect()
    finally:
        await connection.aclose()


async def _answer(ask: Callable[[], Coroutine[Any, Any, Any]], within: float) -> Any:
    """Return the answer of `ask`; raises TimeoutError after `within` s. Asks again if this process was suspended."""
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        asking = asyncio.ensure_future(ask())  # on its own, so that no code of Dask's can swallow a cancel of ours
        try:
            if not (await asyncio.wait([asking], timeout=within))[0]:
                raise TimeoutError
            return asking.result()
        except TimeoutError:  # also Dask's own
            if loop.time() - began < within + SUSPENDED_S:
                raise
        finally:
            await cancel_all([asking])


def _connections() -> int:
    """Half of the files that may be open, as the scheduler has it: each worker needs two, since its questions wait."""
    from distributed.utils import get_fileno_limit

    return max(512, int(get_fileno_limit()) // 2)


def _client_class() -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise ConfigurationError(
            "a cluster needs Dask, which is not installed", "pip install 'msp-bridge[cluster]'"
        ) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what goes wrong is said here
    return Client

"""Session: one client, its configuration, and its running requests."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any

from msp_bridge.concurrency import batches, run_to_completion
from msp_bridge.dialects.msp import Msp
from msp_bridge.errors import BridgeError, PartlyFailed
from msp_bridge.jsonrpc.connection import Method
from msp_bridge.jsonrpc.messages import ErrorCode, RpcError
from msp_bridge.workspace.open_workspaces import OpenWorkspaces
from msp_bridge.workspace.workspace import Workspace

log = logging.getLogger(__name__)

MAX_BATCH = 250  # results in one notification: 2 ms of work, so that a flood of results delays nobody

Notify = Callable[[str, Any], Awaitable[None]]


class Session:
    """Answers the MSP methods of one client (MSP 0.4, "Methods").

    A client that never calls `configure` gets the default configuration. Progress has no request id in MSP: every
    running request of the client sees it. The final answer of `mutationTest` is empty: results go out before. A
    `configure` can't be cancelled, as what comes behind it counts on it.
    """

    def __init__(self, workspaces: OpenWorkspaces, notify: Notify) -> None:
        self._workspaces, self._notify = workspaces, notify
        self._dialect = Msp()
        self._named: str | None = None  # the configuration file that the client named
        self._configuring = asyncio.Lock()  # what comes behind a `configure` waits for it

    @property
    def methods(self) -> Mapping[str, Method]:
        """The methods for a Connection."""
        return {"configure": self._configure, "discover": self._discover, "mutationTest": self._mutation_test}

    async def _configure(self, params: Any) -> Any:
        await run_to_completion(self._take(self._dialect.configure_params(params).config_file_path))
        return self._dialect.configured()

    async def _take(self, named: str | None) -> None:
        async with self._configuring:
            with _told_to_the_client():
                await self._workspaces.check(named)
            self._named = named

    async def _discover(self, params: Any) -> Any:
        named = await self._configured()
        selection = self._dialect.discover_selection(params)
        async with self._workspace(named) as workspace:
            found = []
            with _told_in_the_log():
                async with contextlib.aclosing(workspace.discover(selection)) as mutants:
                    async for mutant in mutants:
                        found.append((mutant.path, self._dialect.discovered(mutant)))  # noqa: PERF401  (kept if it fails)
            return self._dialect.files(found, workspace.named_files(selection))

    async def _mutation_test(self, params: Any) -> Any:
        named = await self._configured()
        # In a thread: 100,000 mutants take a second, and other clients must not notice.
        selection = await asyncio.to_thread(self._dialect.test_selection, params)
        if selection.empty:
            return self._dialect.files(())
        async with self._workspace(named) as workspace:
            with _told_in_the_log():
                async with contextlib.aclosing(batches(workspace.test(selection), MAX_BATCH)) as ready:
                    async for batch in ready:
                        tested = ((result.mutant.path, self._dialect.tested(result)) for result in batch)
                        await self._notify(self._dialect.progress_method, self._dialect.files(tested))
        return self._dialect.files(())

    async def _configured(self) -> str | None:
        """The configuration file that holds for a request: asked before it awaits anything else.

        The lock is given in the order in which it is asked for, so a `configure` behind the request can't overtake it.
        Nor does the request overtake one before it: the connection lets each request take its first step before it
        reads the next (`Connection._start`), and with that the task that `carried_out` makes stands before the next
        request's.
        """
        async with self._configuring:
            return self._named

    @contextlib.asynccontextmanager
    async def _workspace(self, named: str | None) -> AsyncIterator[Workspace]:
        with _told_to_the_client():
            async with self._workspaces.use(named) as workspace:
                yield workspace


@contextlib.contextmanager
def _told_in_the_log() -> Iterator[None]:
    """What failed in a project that nobody asked for by name takes nothing from the answer of the others."""
    try:
        yield
    except PartlyFailed as error:
        log.error("%s", error)


@contextlib.contextmanager
def _told_to_the_client() -> Iterator[None]:
    """What the user can mend is told as it is; anything else is a fault of ours, and the connection's to tell."""
    try:
        yield
    except BridgeError as error:
        log.error("%s", error)
        raise RpcError(ErrorCode.REQUEST_FAILED, str(error)) from error

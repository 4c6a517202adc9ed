"""Session: one client, its configuration, and its running requests."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any

from msp_bridge.concurrency import batches
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
        self._configuration: str | None = None  # the file that the client named; read before a request awaits anything

    @property
    def methods(self) -> Mapping[str, Method]:
        """The methods for a Connection. `configure` is sequential: requests behind it count on it."""
        return {
            "configure": Method(self._configure, sequential=True),
            "discover": Method(self._discover),
            "mutationTest": Method(self._mutation_test),
        }

    async def _configure(self, params: Any) -> Any:
        configuration = self._dialect.configure_params(params).config_file_path
        with _raise_for_client():
            await self._workspaces.check(configuration)
        self._configuration = configuration
        return self._dialect.configured()

    async def _discover(self, params: Any) -> Any:
        configuration = self._configuration
        selection = self._dialect.discover_selection(params)
        async with self._workspace(configuration) as workspace:
            found = []
            with _log_partial_failures():
                async with contextlib.aclosing(workspace.discover(selection)) as mutants:
                    async for mutant in mutants:
                        found.append((mutant.path, self._dialect.discovered(mutant)))  # noqa: PERF401  (kept if it fails)
            return self._dialect.files(found, workspace.named_files(selection))

    async def _mutation_test(self, params: Any) -> Any:
        configuration = self._configuration
        # In a thread: 100,000 mutants take a second, and must not delay other clients.
        selection = await asyncio.to_thread(self._dialect.test_selection, params)
        if selection.empty:
            return self._dialect.files(())
        async with self._workspace(configuration) as workspace:
            with _log_partial_failures():
                async with contextlib.aclosing(batches(workspace.test(selection), MAX_BATCH)) as ready:
                    async for batch in ready:
                        tested = ((result.mutant.path, self._dialect.tested(result)) for result in batch)
                        await self._notify(self._dialect.progress_method, self._dialect.files(tested))
        return self._dialect.files(())

    @contextlib.asynccontextmanager
    async def _workspace(self, configuration: str | None) -> AsyncIterator[Workspace]:
        with _raise_for_client():
            async with self._workspaces.use(configuration) as workspace:
                yield workspace


@contextlib.contextmanager
def _log_partial_failures() -> Iterator[None]:
    """The failure of a project that the request did not name takes nothing from the answer of the others."""
    try:
        yield
    except PartlyFailed as error:
        log.error("%s", error)


@contextlib.contextmanager
def _raise_for_client() -> Iterator[None]:
    """What the user can fix is answered as it is; the connection answers any other error as a fault of ours."""
    try:
        yield
    except BridgeError as error:
        log.error("%s", error)
        raise RpcError(ErrorCode.REQUEST_FAILED, str(error)) from error

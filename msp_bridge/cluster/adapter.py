"""The wrapper around an adapter: it discovers here, and tests on the workers of a cluster.

Handles: a mutant of `discover` carries the adapter's own handle, and what identifies the content of its file. `test`
takes a snapshot of the project; a mutant whose file is another one in it gets no result, as `Adapter` promises.

Where mutants are tested: `choice` says it for each request. Mutants that no worker lists are always tested here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

from attrs import evolve, frozen

from msp_bridge import reading
from msp_bridge.adapter import (
    Adapter,
    ChecksTests,
    Finding,
    HasFreshResults,
    HasTestCommand,
    HasThreshold,
    IgnoresMutants,
    Mutant,
    Notice,
    Project,
    ReportsSurroundings,
    Result,
    Scope,
    SetsUp,
    Setup,
    Surroundings,
)
from msp_bridge.cluster.choice import LOCAL_MUTANTS, PlaceChoice
from msp_bridge.cluster.connection import Bounds, SchedulerConnection, WorkerLost, sends_openly
from msp_bridge.cluster.snapshot import Snapshot
from msp_bridge.cluster.wire import Greeting, Order, Refused
from msp_bridge.concurrency import in_thread
from msp_bridge.errors import BridgeError, ConfigurationError
from msp_bridge.phases import report_phase
from msp_bridge.text import counted_mutants
from msp_bridge.toolkit import Sandbox, SandboxPool, walk

if TYPE_CHECKING:
    from msp_bridge.cluster.dispatch import Dispatch
    from msp_bridge.cluster.preparing import Preparing

log = logging.getLogger(__name__)

PREPARING = "preparing the workers"
OPENLY = (
    "the project's files, also files that git ignores, such as .env and keys, go to the workers of {} unencrypted: "
    "use a tls:// address, or leave files out with `exclude` in the table `cluster` of the configuration"
)


@frozen
class ClusterHandle:
    """`Mutant.handle` here: the digest of its file when it was discovered, and the handle of the adapter."""

    digest: str | None
    inner: Any


def behind_cluster(
    inner: type[Adapter],
    address: str,
    *,
    local: int = LOCAL_MUTANTS,
    bounds: Bounds | None = None,
    exclude: Sequence[str] = (),
) -> type[Adapter]:
    """The class of adapters that are `inner`, and test on the cluster whose scheduler is at `address`.

    `local` is how many mutants for each job are tested here, as long as nothing was measured (`choice`); 0: none ever.
    `exclude` are patterns of files that workers don't get (`Snapshot.of`).
    """
    body = {
        "name": inner.name,
        "markers": inner.markers,
        "sources": getattr(inner, "sources", ()),
        "inner_class": inner,
        "address": address,
        "local": local,
        "bounds": bounds or Bounds(),
        "exclude": exclude,
    }
    return type(f"{inner.__name__}OnCluster", (_OnCluster,), body)


class _OnCluster:
    """An adapter behind a cluster; `behind_cluster` sets its class attributes. It offers what `inner` does."""

    name: ClassVar[str]
    markers: ClassVar[tuple[str, ...]]
    sources: ClassVar[tuple[str, ...]]
    inner_class: ClassVar[type[Adapter]]
    address: ClassVar[str]
    local: ClassVar[int]
    bounds: ClassVar[Bounds]
    exclude: ClassVar[Sequence[str]]

    def __init__(self, inner: Adapter, project: Project) -> None:
        self.inner, self._project = inner, project
        self._tree = project.opened or project.root
        self._connection = SchedulerConnection(self.address)
        self._choice = PlaceChoice(self.local * project.jobs)
        self._copies: SandboxPool[Sandbox, Any] = SandboxPool(
            partial(Sandbox.claim, project.cache / "cluster", self._tree), max_idle=1
        )
        self._client = uuid.uuid4().hex
        self._used: set[str] = set()  # workers that have something of ours
        self._said: set[str] = set()
        self.traffic: dict[str, Any] = {}  # of the last request: what was sent to each worker
        self._offer_what_inner_has()

    def _offer_what_inner_has(self) -> None:
        """Add the optional methods of `inner` as attributes of the object, where `isinstance` looks for them."""
        inner = self.inner
        if isinstance(inner, ChecksTests):
            self.check_tests = inner.check_tests
        if isinstance(inner, HasFreshResults):
            self.fresh_results = lambda results: inner.fresh_results(
                [evolve(result, mutant=_of_inner(result.mutant)) for result in results]
            )
        if isinstance(inner, HasTestCommand):
            self.test_command = inner.test_command
        if isinstance(inner, HasThreshold):
            self.threshold = inner.threshold
        if isinstance(inner, ReportsSurroundings):
            self.surroundings = inner.surroundings
        if isinstance(inner, IgnoresMutants):
            self.ignore = lambda mutant, reason: inner.ignore(_of_inner(mutant), reason)

    @classmethod
    def setup(cls, project: Project) -> Setup | None:
        """Implement `SetsUp.setup`, for this machine."""
        return cls.inner_class.setup(project) if isinstance(cls.inner_class, SetsUp) else None

    @classmethod
    def detect(cls, project: Project) -> Self | None:
        """Implement `Adapter.detect`."""
        inner = cls.inner_class.detect(project)
        return None if inner is None else cls(inner, project)

    @classmethod
    def absent(cls, project: Project) -> Finding:
        """Implement `Adapter.absent`."""
        return cls.inner_class.absent(project)

    def claims(self, path: str) -> bool:
        """Implement `Adapter.claims`."""
        return self.inner.claims(path)

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant | Notice, None]:
        """Implement `Adapter.discover`, on this machine."""
        digests = await in_thread(self._digests, scope)
        async with contextlib.aclosing(self.inner.discover(scope)) as mutants:
            async for mutant in mutants:
                if isinstance(mutant, Notice):
                    yield mutant
                    continue
                if mutant.path not in digests:
                    digests[mutant.path] = reading.digest(self._project.root / mutant.path)
                yield evolve(mutant, handle=ClusterHandle(digests[mutant.path], mutant.handle))

    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        """Implement `Adapter.test`."""
        if self._choice.is_local(len(mutants)):
            log.debug("%s tested here, not by the cluster", counted_mutants(mutants))
            side, testing = self._choice.here, self._test_here(mutants)
        else:
            side, testing = self._choice.cluster, self._test_there(mutants)
        async with contextlib.aclosing(testing), contextlib.aclosing(side.timed(testing)) as results:
            async for result in results:
                yield result

    async def _test_here(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        own = {_of_inner(mutant): mutant for mutant in mutants}
        async with contextlib.aclosing(self.inner.test(list(own))) as results:
            async for result in results:
                if isinstance(result, Notice):
                    yield result
                else:
                    yield evolve(result, mutant=own.get(result.mutant, result.mutant))

    async def _test_there(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        await self._connection.connect()
        async with self._copies.lease() as warm:
            await warm.refresh()
            dispatch = await self._dispatch(await in_thread(Snapshot.of, warm.sandbox, self.exclude), mutants)
            self.traffic = dispatch.preparing.traffic
            async with contextlib.aclosing(dispatch.results()) as results:
                async for result in results:
                    yield result
        if dispatch.unmatched:
            self._say(f"{counted_mutants(dispatch.unmatched)} tested here: no worker's {self.name} lists them")
            async with contextlib.aclosing(self._test_here(dispatch.unmatched)) as results:
                async for result in results:
                    yield result

    async def diagnose(self) -> AsyncGenerator[Finding, None]:
        """Yield the findings of this machine, and then a line for each worker."""
        async with contextlib.aclosing(self.inner.diagnose()) as findings:
            async for finding in findings:
                yield finding
        try:
            await self._connection.connect()
            async with self._copies.lease() as warm:
                await warm.refresh()
                dispatch = await self._dispatch(await in_thread(Snapshot.of, warm.sandbox, self.exclude), ())
                workers = await self._connection.workers()
                if not workers:
                    text = f"the scheduler {self.address} has none"
                    yield Finding(False, "worker", text, f"dask worker {self.address}")
                for address in sorted(workers):
                    yield await _finding(dispatch.preparing, address)
        except BridgeError as error:
            yield Finding.of_error("cluster", error)

    async def aclose(self) -> None:
        """End what is warm here and, for this client, at the workers."""
        try:
            await self._release()
        finally:
            await self._connection.aclose()
            await self._copies.aclose()
            await self.inner.aclose()

    async def _dispatch(self, snapshot: Snapshot, mutants: Sequence[Mutant]) -> Dispatch:
        """Dispatch the mutants whose files are in the snapshot as they were discovered."""
        from msp_bridge.cluster.dispatch import Dispatch  # here: a worker's half imports more of the bridge

        if sends_openly(self.address):
            self._say(OPENLY.format(self.address))
        surroundings = await self.inner.surroundings() if isinstance(self.inner, ReportsSurroundings) else None
        folder = self._project.root.relative_to(self._tree)
        digests = {path: snapshot.digest_of(str(folder / path)) for path in {mutant.path for mutant in mutants}}
        current = [one for one in mutants if one.handle.digest is not None and one.handle.digest == digests[one.path]]
        order = self._order(snapshot, surroundings)
        if current:
            report_phase(PREPARING)
        return Dispatch(self._connection, order, snapshot, current, self._say, self._used, self.bounds)

    def _order(self, snapshot: Snapshot, surroundings: Surroundings | None) -> Order:
        project = self._project
        file = project.config_file
        if file is not None and not file.is_relative_to(self._tree):
            raise ConfigurationError(
                f"the configuration {file} lies outside of {self._tree}, which is what workers get", "move it there"
            )
        return Order(
            client=self._client,
            snapshot=snapshot.id,
            tree=snapshot.directory.name,
            folder=project.root.relative_to(self._tree).as_posix(),
            adapter=self.name,
            settings=project.settings,
            config_file=None if file is None else file.relative_to(self._tree).as_posix(),
            nested=project.nested,
            surroundings=None if surroundings is None else surroundings.values,
            environment=project.environment,
        )

    def _digests(self, scope: Scope) -> dict[str, str | None]:
        """Digests of the files in scope, taken before they are listed. Blocks."""
        root = self._project.root
        if scope.paths is not None and not any(path.endswith("/") for path in scope.paths):
            return {path: reading.digest(root / path) for path in scope.paths}
        found: dict[str, str | None] = {}
        for directory, _, names in walk(root):
            prefix = directory[len(str(root)) + 1 :]
            for name in names:
                path = f"{prefix}/{name}" if prefix else name
                if scope.covers(path) and self.inner.claims(path):
                    found[path] = reading.digest(root / path)
        return found

    async def _release(self) -> None:
        used, self._used = self._used, set()
        if not used:
            return
        from msp_bridge.cluster import worker as remote  # as above

        leave, within = self._connection.take_leave, self.bounds.end
        await asyncio.gather(*(leave(address, remote.release, self._client, within=within) for address in used))

    def _say(self, text: str) -> None:
        """A warning, once."""
        log.log(logging.DEBUG if text in self._said else logging.WARNING, "%s", text)
        self._said.add(text)


def _of_inner(mutant: Mutant) -> Mutant:
    """The mutant with the handle of the adapter."""
    return evolve(mutant, handle=mutant.handle.inner)


async def _finding(preparing: Preparing, address: str) -> Finding:
    try:
        greeting: Greeting = await preparing.prepare(address)
    except Refused as error:
        return Finding.of_error("worker", error)
    except WorkerLost as error:
        return Finding(False, "worker", f"{address}: {error}", "see the worker's log")
    threads = "1 thread" if greeting.threads == 1 else f"{greeting.threads} threads"
    return Finding(True, "worker", f"{address} is ready: {threads}, msp-bridge {greeting.version}")

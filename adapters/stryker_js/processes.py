"""How StrykerJS is run: ServeProcess, a warm `stryker serve` (9.3 and later), and RunProcess, `stryker run` before."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Collection, Sequence
from typing import Any

from attrs import evolve, frozen

from msp_bridge.adapter import ToolError
from msp_bridge.jsonrpc.client import EXIT_TIMEOUT_S, REMEDY, ErrorResponse, JsonRpcClient, MessageReader
from msp_bridge.jsonrpc.messages import Message
from msp_bridge.phases import BASELINE, report_phase
from msp_bridge.processes import ProcessTree

from .launch import AGAIN, CONFIGURATION, OVER, TOOL, Launch, Observer, StrykerJsRunConfig
from .mutants import Raw, StrykerJsListing, StrykerJsTestPlan, Tested, ignored_because, mutant_of

HANDSHAKE_TIMEOUT_S = 60.0  # it takes one
READY_TIMEOUT_S = 60.0  # until an open run has ended, or has its processes and goes on; it takes a tenth of one
MAX_TESTED = 5000  # mutants of one run: StrykerJS keeps something of each until the run ends
QUIET: dict[str, Any] = {"reporters": ["msp-bridge"]}
ONLY_FIND: dict[str, Any] = {
    **QUIET,
    "testRunner": "msp-bridge-no-tests",
    "coverageAnalysis": "off",
    "ignoreStatic": False,  # it needs coverage
    "checkers": [],
    "buildCommand": None,
}


@frozen
class OpenRun:
    """A run that has given all its results and stays open; programs/observer.mjs has the theory."""

    paths: frozenset[str]  # whose mutants it can test
    workers: int
    tested: int = 0

    def suits(self, plan: StrykerJsTestPlan, jobs: int) -> bool:
        """Whether it can test these as well as a new one."""
        return self.tested < MAX_TESTED and jobs <= self.workers and self.paths.issuperset(plan.paths)


class ServeProcess:
    """StrykerJS 9.3 and later. After a failure or a cancel: `close`.

    After each run it is ready to test other mutants of the same files without starting anew, until another request
    is sent, or the launch's `warm` seconds are over. The files mustn't change meanwhile. Before each request:
    `make_ready`.
    """

    def __init__(self, launch: Launch, tree: ProcessTree, running: contextlib.AsyncExitStack) -> None:
        self._launch, self._tree, self._running = launch, tree, running
        self._client = JsonRpcClient(tree, TOOL)
        self._observer = Observer(tree, self._client.reader, launch.paths)
        self._run: OpenRun | None = None  # which is open
        self._resumed: OpenRun | None = None  # which tests the next plan

    @classmethod
    async def start(cls, launch: Launch) -> ServeProcess:
        """Start it, and have it read our configuration; raises ToolError."""
        running = contextlib.AsyncExitStack()
        server = cls(launch, await running.enter_async_context(launch.running("serve", "stdio")), running)
        try:
            async with asyncio.timeout(HANDSHAKE_TIMEOUT_S):
                await server._request("configure", {"configFilePath": str(launch.programs / CONFIGURATION)})
            await launch.note()
        except TimeoutError:
            await server.close()
            problem = f"StrykerJS didn't answer within {HANDSHAKE_TIMEOUT_S:g} s of its start"
            raise ToolError(problem, "run `npx stryker serve stdio` to see what it does") from None
        except BaseException:
            await server.close()
            raise
        return server

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._tree.returncode is not None

    @property
    def crashed(self) -> bool:
        """Whether it has ended by itself, or was killed."""
        return self.closed

    async def close(self) -> None:
        """End every process; idempotent."""
        await self._tree.end()
        await self._running.aclose()

    def has_open_run(self, paths: Collection[str] = ()) -> bool:
        """Whether a run is open that can test mutants of all these files."""
        return not self.closed and self._run is not None and self._run.paths.issuperset(paths)

    async def discover(self, paths: Sequence[str] | None) -> StrykerJsListing:
        """Discover the mutants in these files, or in all. Raises BridgeError."""
        self._launch.configure(StrykerJsRunConfig(files=paths))
        files = (await self._request("discover", {}))["files"]
        found = [(mutant_of(path, raw), ignored_because(raw)) for path in files for raw in files[path]["mutants"]]
        return self._observer.listing(found)

    async def test(self, plan: StrykerJsTestPlan, jobs: int) -> AsyncGenerator[Tested, None]:
        """The result of each mutant of the plan, and perhaps of others, as soon as it is known. Raises BridgeError."""
        run, self._resumed = self._resumed or await self._begun(plan, jobs), None
        async with contextlib.aclosing(self._messages()) as messages:
            async for message in messages:
                if message.get("method") == "reportMutationTestProgress":
                    for path, file in message["params"]["files"].items():
                        for raw in file["mutants"]:
                            yield mutant_of(path, raw), self._observer.understood(raw)
                            await self._observer.allow_next(raw)
                elif message.get("method") == "msp-bridge/waiting":
                    self._run = evolve(run, tested=run.tested + len(plan.mutants))
                    break
        for tested in self._observer.uncovered(plan):
            yield tested

    async def make_ready(self, plan: StrykerJsTestPlan | None, jobs: int) -> None:
        """Have the open run go on with the plan, if it suits; else it ends. Raises BridgeError."""
        run, self._run = self._run, None
        if run is None:
            return
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                if plan is not None and run.suits(plan, jobs):
                    await self._resume(run, plan, jobs)
                else:
                    await self._tree.write(OVER)
                    async with contextlib.aclosing(self._messages()) as messages:
                        async for _ in messages:
                            pass
        except TimeoutError:
            raise ToolError(f"StrykerJS's last run didn't end within {READY_TIMEOUT_S:g} s") from None

    async def _begun(self, plan: StrykerJsTestPlan, jobs: int) -> OpenRun:
        """A new run of all that is in the files, limited to the plan."""
        self._launch.configure(StrykerJsRunConfig(jobs, files=plan.paths, only=plan, warm=self._launch.warm))
        self._observer.begin()
        report_phase(BASELINE)  # StrykerJS's "initial test run", after it has instrumented the files
        await self._client.send("mutationTest", {})
        return OpenRun(frozenset(plan.paths), jobs)

    async def _resume(self, run: OpenRun, plan: StrykerJsTestPlan, jobs: int) -> None:
        """Have the run go on, unless it had ended a moment ago."""
        self._launch.configure(StrykerJsRunConfig(jobs, files=sorted(run.paths), only=plan, warm=self._launch.warm))
        self._observer.resume()
        await self._tree.write(AGAIN)
        async with contextlib.aclosing(self._messages()) as messages:
            async for message in messages:
                if message.get("method") == "msp-bridge/resumed":
                    self._resumed = run
                    return

    async def _request(self, method: str, params: dict[str, Any]) -> Any:
        self._observer.begin()
        async with contextlib.aclosing(self._messages(method, params)) as messages:
            async for message in messages:
                if "result" in message:
                    return message["result"]
        raise AssertionError("the last message is a result")

    async def _messages(self, method: str = "", params: dict[str, Any] | None = None) -> AsyncGenerator[Message, None]:
        """Yield messages until the response, the last; of `method`, if that is to be sent. Raises BridgeError."""
        messages = self._client.stream(method, params or {}) if method else self._client.until_response()
        try:
            async with contextlib.aclosing(messages):
                async for message in messages:
                    if not self._observer.takes(message):
                        yield message
        except ErrorResponse as error:
            raise await self._observer.failed(str(error)) from None


class RunProcess:
    """StrykerJS 6.4 to 9.2. Nothing stays warm: each request is a process, which has ended when the request has."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._tree: ProcessTree | None = None  # of the present request, or of the last

    @property
    def closed(self) -> bool:
        """Always False: a process that ends is nothing unusual here."""
        return False

    @property
    def crashed(self) -> bool:
        """Whether the last request's process was killed."""
        return self._tree is not None and (self._tree.returncode or 0) < 0

    async def close(self) -> None:
        """End the process of the present request, if there is one."""
        if self._tree is not None:
            await self._tree.end()

    def has_open_run(self, _: Collection[str] = ()) -> bool:
        """Always False: no run stays open."""
        return False

    async def make_ready(self, plan: StrykerJsTestPlan | None, jobs: int) -> None:
        """Nothing to do: it always is."""

    async def discover(self, paths: Sequence[str] | None) -> StrykerJsListing:
        """Discover the mutants in these files, or in all. Raises BridgeError."""
        self._launch.configure(StrykerJsRunConfig(files=paths, options=ONLY_FIND, plugin=True))
        async with self._started(MSP_BRIDGE_DISCOVER="1") as observer:
            async with contextlib.aclosing(_messages(observer, "msp-bridge/plan")) as plans:
                async for plan in plans:  # the first says all
                    raws: Sequence[Raw] = plan["mutants"]
                    found = [(mutant_of(self._path(raw), raw), ignored_because(raw)) for raw in raws]
                    return observer.listing(found)
            return observer.listing(())

    async def test(self, plan: StrykerJsTestPlan, jobs: int) -> AsyncGenerator[Tested, None]:
        """The result of each mutant of the plan, and perhaps of others, as soon as it is known. Raises BridgeError."""
        self._launch.configure(StrykerJsRunConfig(jobs, files=plan.paths, only=plan, options=QUIET, plugin=True))
        report_phase(BASELINE)
        async with self._started() as observer:
            async with contextlib.aclosing(_messages(observer, "msp-bridge/tested")) as results:
                async for raw in results:
                    yield mutant_of(self._path(raw), raw), observer.understood(raw)
                    await observer.allow_next(raw)
            for tested in observer.uncovered(plan):
                yield tested

    @contextlib.asynccontextmanager
    async def _started(self, **env: str) -> AsyncGenerator[Observer, None]:
        configuration = self._launch.programs / CONFIGURATION
        async with self._launch.running("run", configuration, "--logLevel", "warn", env=env) as tree:
            self._tree = tree
            yield Observer(tree, MessageReader(tree, TOOL), self._launch.paths)
            await self._launch.note()

    def _path(self, raw: Raw) -> str:
        return os.path.relpath(raw["fileName"], self._launch.paths.sandbox).replace(os.sep, "/")


async def _messages(observer: Observer, method: str) -> AsyncGenerator[Raw, None]:
    """Yield messages of this name until StrykerJS ends; raises BridgeError when it fails."""
    async with contextlib.aclosing(observer.reader.all()) as messages:
        async for message in messages:
            if not observer.takes(message) and message.get("method") == method:
                yield message["params"]
    try:
        async with asyncio.timeout(EXIT_TIMEOUT_S):
            exit_code = await observer.tree.exited()
    except TimeoutError:
        raise ToolError("StrykerJS has closed its output, and goes on", REMEDY) from None
    if exit_code < 0:
        raise ToolError(f"StrykerJS ended unexpectedly ({observer.tree.outcome})", REMEDY)
    if exit_code > 0:
        raise await observer.failed("")

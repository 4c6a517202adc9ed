"""Sessions: StrykerJS in private copies of the project, one request at a time in each, kept warm for the next.

Theory of operation
-------------------
The problem. StrykerJS starts slowly, runs all tests before the first mutant, and handles one request at a time. It
writes beside the sources. Requests come side by side, are cancelled in the middle, and the project changes between
them. A verdict must not depend on what an earlier request did.

The parts. `SandboxPool` (toolkit) leases a private copy (`ProjectSandbox`) with the process that stays warm in it: a
`ServeProcess`, or a `RunProcess` for versions without a server. A `StrykerJsSession` is such a lease, for one request.
A `ServeProcess` may have an *open run*, whose test runners wait for more mutants of the same files.

What a request does, in this order:

1. It leases the sandbox whose open run can test its files, else the one that was used last, else a new one.
2. When there is an open run, it looks whether project and packages are as they were (a look that writes nothing,
   because tests may still be running there). If not, the open run ends.
3. Without an open run, it deletes what runs have left, and makes the sandbox equal to the project, laid out for a run
   that is isolated, or for one that isn't.
4. It starts StrykerJS when there is none, or when what a running one has read for good has changed: the configuration,
   package.json, the installed packages, and every file when the configuration leads to others (`import './x.mjs'`).
5. It has the open run go on, if that suits; a run that doesn't suit ends first.

The invariants.

- A sandbox is written only while no run is open in it.
- What fails isolated before it has given a result is done again without isolation (`Isolation.run`): the tests without
  a mutant decide which parts later runs have.
- After a failure or a cancel the process has ended when the block is left, and its leftovers are deleted.
- An open run goes on only in processes that have run no mutant, on the files as the dry run left them. StrykerJS itself
  sees to that: see programs/observer.mjs.
- What goes wrong when an open run ends is no error of the next request: it is logged, and StrykerJS starts anew.
- StrykerJS that crashes in the middle of a request (killed for its memory, say) is started again once, for the mutants
  that have no result yet. A second crash is reported.
"""

import logging
import re
import time
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

from attrs import define, field

from msp_bridge import reading
from msp_bridge.adapter import BaselineError, BridgeError, Project, ToolError
from msp_bridge.concurrency import in_thread
from msp_bridge.text import encodable
from msp_bridge.toolkit import Isolation, SandboxPool, WarmSandbox

from .configuration import Settings, config_file
from .installation import Toolchain
from .launch import Launch
from .mutants import StrykerJsTestPlan
from .processes import RunProcess, ServeProcess
from .sandbox import ProjectSandbox

log = logging.getLogger(__name__)

HOLDS_S = 300.0  # a failure: what the tests need besides the project may be there by then, a database, a free port
MAX_IDLE = 2  # warm sandboxes that wait for the next request
SCHEMA = re.compile(rb'"\$schema"\s*:\s*"[^"]*"')
# The configuration may have read other files of the project: it names some, or is a program that can read them.
LEADS_ON = re.compile(rb"""["'`]\.\.?/|(?<!["'])\b(?:import|require|process(?!\.env\b))\b(?!\(["']@stryker-mutator/)""")
StrykerProcess = ServeProcess | RunProcess
Warm = WarmSandbox[ProjectSandbox, StrykerProcess]


class StrykerJsSession:
    """A leased sandbox and the StrykerJS in it, for one request."""

    def __init__(self, project: Project, toolchain: Toolchain, warm: Warm, isolation: Isolation) -> None:
        self._project, self._warm = project, warm
        self.toolchain, self.isolation = toolchain, isolation

    @property
    def sandbox(self) -> ProjectSandbox:
        """Equal to the project, after `prepare`."""
        return self._warm.sandbox

    @property
    def depends_on(self) -> object:
        """Equal as long as what the tests depend on is the same: project, packages, configuration and tools."""
        config = config_file(self._project)
        return self.sandbox.state, None if config is None else reading.content_or_empty(config), self.toolchain

    async def prepare(self, *, isolated: bool) -> None:
        """Steps 2 and 3; raises ToolError when there's no room for the copy, or Node couldn't name it."""
        root = self._project.root
        if encodable(str(root)) != str(root):
            problem = f"Node.js can't work in {root}, whose name is no UTF-8 text"
            raise ToolError(problem, "rename the directory")
        suits = isolated is self.sandbox.isolated
        if self._has_open_run() and not (suits and await in_thread(self.sandbox.is_current)):
            await self._make_ready()
        if not self._has_open_run():
            await in_thread(self.sandbox.clear)
            self.sandbox.isolated = isolated
            await self._warm.refresh()

    async def isolate(self, isolated: bool) -> None:
        """Have the next process isolated, or not; if the sandbox is laid out otherwise, it is made ready anew."""
        if isolated is not self.sandbox.isolated:
            await self._warm.process.close()
            await self.prepare(isolated=isolated)

    async def process(self, plan: StrykerJsTestPlan | None = None, jobs: int = 1) -> StrykerProcess:
        """Steps 4 and 5: StrykerJS, ready to test the plan, or to discover. Raises BridgeError."""
        await self._make_ready(plan, jobs)
        settings = Settings.of(self._project)
        parts = self.isolation.wanted if self.sandbox.isolated else frozenset()
        paths, config = self.sandbox.paths, self._config(self.sandbox.paths.sandbox)
        launch = Launch(self.toolchain, paths, config, settings.warm, parts, self.sandbox, self.isolation)
        return await self._warm.process.get(partial(_start, launch), (launch, self._reads()))

    async def end_process(self) -> None:
        """End StrykerJS, and delete what it has left."""
        await self._warm.process.close()
        await self.clear()

    async def clear(self) -> None:
        """Delete what runs that have ended have left."""
        if not self._has_open_run():
            await in_thread(self.sandbox.clear)

    def _has_open_run(self) -> bool:
        process = self._warm.process.current
        return process is not None and process.has_open_run()

    async def _make_ready(self, plan: StrykerJsTestPlan | None = None, jobs: int = 1) -> None:
        process = self._warm.process.current
        if process is None:
            return
        try:
            await process.make_ready(plan, jobs)
        except BridgeError:
            log.warning("StrykerJS is started anew", exc_info=True)
            await self._warm.process.close()

    def _config(self, root: Path) -> Path | None:
        """The project's own file, where the project is at `root`."""
        file = config_file(self._project)
        if file is None or not file.is_relative_to(self._project.root):
            return file
        return root / file.relative_to(self._project.root)

    def _reads(self) -> object:
        """Equal as long as what StrykerJS has read for good is the same."""
        file = self._config(self.sandbox.path)
        config = b"" if file is None else SCHEMA.sub(b"", reading.content_or_empty(file))
        package = reading.content_or_empty(self.sandbox.path / "package.json")
        digest = self.sandbox.digest if LEADS_ON.search(config) else None
        return config, package, digest, self.sandbox.installed


class SessionPool:
    """The sessions of one project: as many as there are requests at once; a few stay warm."""

    def __init__(self, project: Project) -> None:
        self._project = project
        claim = partial(ProjectSandbox.claim, project)
        self.isolation = Isolation.of("StrykerJS", project.root, network=False)
        self.failures = KnownFailures()
        self._sandboxes: SandboxPool[ProjectSandbox, StrykerProcess] = SandboxPool(claim, max_idle=MAX_IDLE)

    @asynccontextmanager
    async def lease(
        self, toolchain: Toolchain, paths: Collection[str] | None = None
    ) -> AsyncIterator[StrykerJsSession]:
        """A prepared one, best where a run is open that can test mutants of all the files `paths`. Raises BridgeError.

        After a failure or a cancel nothing of it runs when the block is left.
        """

        def has_open_run(warm: Warm) -> bool:
            process = warm.process.current
            return paths is not None and process is not None and process.has_open_run(paths)

        await self.isolation.probe()
        async with self._sandboxes.lease(has_open_run) as warm:
            session = StrykerJsSession(self._project, toolchain, warm, self.isolation)
            try:
                await session.prepare(isolated=self.isolation.is_on)
                yield session
            except BaseException:
                await warm.process.close()
                raise
            finally:
                await session.clear()

    async def aclose(self) -> None:
        """End all of them."""
        await self._sandboxes.aclose()


@define
class KnownFailures:
    """The last first run of the tests that failed: it is not run again at each request while nothing has changed.

    A key is equal as long as all that the first run depends on in the project is.
    """

    _key: object = None
    _error: BaselineError | None = None
    _at: float = field(factory=time.monotonic)

    def of(self, key: object) -> BaselineError | None:
        """How the first run for `key` has failed in the last minutes, if it has."""
        error = self._error
        if error is None or key != self._key or time.monotonic() - self._at > HOLDS_S:
            return None
        return BaselineError(error.problem, error.remedy, error.failing, error.first_failure)

    @contextmanager
    def noted(self, key: object) -> Iterator[None]:
        """Meanwhile a first run for `key` is noted if it fails."""
        try:
            yield
        except BaselineError as error:
            self._key, self._error, self._at = key, error, time.monotonic()
            raise


async def _start(launch: Launch) -> StrykerProcess:
    return await ServeProcess.start(launch) if launch.toolchain.installation.serves else RunProcess(launch)

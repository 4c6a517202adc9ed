"""Preparation: one run of Stryker.NET up to its first test, and all that can be known and tested from there.

Theory of operation
-------------------
Stryker.NET compiles every mutant into one assembly; an environment variable of the test host says which one is
active. A run pays for analysis, build, two runs of the tests and compiling, ten seconds and more, before it tests the
first mutant. So we pay that once for each state of the project, and test mutants by test hosts of our own (`vstest`,
`testing_platform`).

    nothing --refresh, run to the page--> prepared --a file of the project changes--> nothing
                                             |
                                             '--first `baseline`--> its tests, their times, failing tests

The run is the user's own: with the configuration and its exclusions. It is ended when its page is complete. The page
has each mutant with its final status, if it needs no test, and with the ids of its covering tests. The mutated
assemblies stay in the copy's `bin`.

Invariants:
- `Prepared` describes the assemblies that lie in the copy. The runner of a test host holds `lock` shared,
  a build holds it alone; so no assembly changes under a test. A preparation that fails or is cancelled leaves nothing
  prepared.
- What is kept on disk (`KeptAnswers`) has a key of the project, what lies above it, the installation, assemblies,
  and the environment variables that MSBuild or the project's code may read.
- Mutants carry the digest of their file as their handle. Those of an earlier preparation are found again by equality,
  and count only if their file is the same.
- The baseline runs all tests without a mutant, in the way in which mutants are tested. Its ids are those of
  `coveredBy`.
- What is measured ahead is for the request that is likely to come: the cancel of that one ends it, too, unless another
  request runs.

Why not let the tool test: it starts anew for each request, and tests several mutants in one process when their tests
don't overlap, so that statics leak from one to the next (false Killed). It remains the way where there is no page or
no switch in the assemblies.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any

from msp_bridge import reading
from msp_bridge.adapter import BaselineError, Project, Remark, ToolError
from msp_bridge.concurrency import SharedLock, cancel_all, in_thread, meanwhile
from msp_bridge.phases import BASELINE, GENERATING, report_phase
from msp_bridge.toolkit import Sandbox, SandboxPool
from msp_bridge.toolkit.kept_answers import KeptAnswers, key_of
from msp_bridge.toolkit.pool import Process
from msp_bridge.toolkit.variables import variables

from . import tool
from .hosts import Hosts, HostsUnavailable
from .plan import Base, StrykerNetPlan, needs_platform
from .prepared import BASELINE_TIMEOUT_S, Prepared, PreparedBase, StrykerNetBaseline, kept_parts, measure
from .report import Report, ReportEntry
from .sandbox import StrykerNetTestBed, computes_data, starts_programs
from .sdk import ORIGINAL, restore, sdk_directory, take_precompiled
from .setup import DEFAULT_EXTRA_S, platform_line
from .testing_platform import HostProgram
from .tool import HAS_PAGE, LIST_ALL, glob_of
from .vstest import TestHost

log = logging.getLogger(__name__)

FORMAT = 5  # of what is kept


class Preparation:
    """The copy and its state."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._pool: SandboxPool[Sandbox, Process] = SandboxPool(
            lambda: Sandbox.claim(project.cache.resolve(), project.root, "prepared", compiled=".cs")
        )
        self._lease = contextlib.AsyncExitStack()
        self._bed: StrykerNetTestBed | None = None
        self._prepared: Prepared | None = None
        self._turn, self._measuring_turn = asyncio.Lock(), asyncio.Lock()
        self._measuring: set[asyncio.Task[None]] = set()
        self._requests = 0  # that run
        self._answers = KeptAnswers.of(project.cache)
        self.lock = SharedLock()

    async def current(self) -> Prepared:
        """The state for the project as it is now. Raises `ToolError` and `ConfigurationError`."""
        plan = await asyncio.to_thread(StrykerNetPlan.make, self._project)
        async with self._turn:
            bed = await self._claim()
            known = self._prepared
            if known is not None and known.plan.key == plan.key and await in_thread(bed.is_current):
                return known
            await cancel_all(self._measuring)
            async with self.lock.alone():
                self._prepared = None
                await _refreshed(bed)
                self._prepared = await in_thread(self._load, plan, bed) or await self._prepare(plan, bed)
        return self._prepared

    @contextlib.asynccontextmanager
    async def requested(self) -> AsyncIterator[None]:
        """A request for verdicts. Its cancel ends what is measured ahead, which other requests may still wait for."""
        self._requests += 1
        try:
            yield
        except (asyncio.CancelledError, GeneratorExit):
            if self._requests == 1:
                await cancel_all(self._measuring)
            raise
        finally:
            self._requests -= 1

    @contextlib.asynccontextmanager
    async def held(self, *, alone: bool = False) -> AsyncIterator[Prepared]:
        """Hold the state as it is, with nobody else if `alone`. Brought back when a failed preparation took it."""
        while True:
            async with self.lock.alone() if alone else self.lock.shared():
                if self._prepared is not None:
                    yield self._prepared
                    return
            await self.current()

    async def baseline(self, prepared: Prepared, part: PreparedBase) -> StrykerNetBaseline:
        """Measured once, one part after the other. The caller holds the lock. Raises `ToolError`."""
        async with self._measuring_turn:
            if part.baseline is None:
                report_phase(BASELINE)
                try:
                    part.baseline = await measure(part)
                except HostsUnavailable:
                    if self._bed is None or not await in_thread(self._bed.restore, ORIGINAL):
                        raise
                    part.baseline = await measure(part)
                await in_thread(self._keep, prepared)
            return part.baseline

    def measure_ahead(self, prepared: Prepared) -> None:
        """Begin with the baselines before they are needed: the first result comes that much sooner.

        They have one test host at a time, and are cancelled when the project is prepared anew. A second time they
        would fail as they have failed, or be cancelled as they were: then the request that needs them measures them.
        """
        unmeasured = [part for part in prepared.parts if part.baseline is None]
        due = [part for part in unmeasured if any(map(part.is_tested, part.entries))]
        if prepared.by_tool is None and due and not prepared.is_measured_ahead:
            prepared.is_measured_ahead = True
            task = asyncio.create_task(self._measure(prepared, due), name="baselines of Stryker.NET")
            self._measuring.add(task)
            task.add_done_callback(self._measuring.discard)

    async def run_tool(self, prepared: Prepared, part: PreparedBase, paths: Sequence[str]) -> list[ReportEntry]:
        """Run the tool itself on the mutants of the files `paths`. The caller holds the lock alone."""
        bed = await self._claim()
        await _refreshed(bed)
        await in_thread(bed.make_ready)
        patterns = [f"**/{bed.path.name}/{glob_of(path)}" for path in paths]
        content = await self._run(prepared.plan, bed, part.base, patterns)
        digests = {path: reading.digest(bed.path / path) for path in paths}
        return [entry for entry in Report.of(content, bed.path).entries(digests) if isinstance(entry, ReportEntry)]

    async def aclose(self) -> None:
        """End every process, and let others have the copy."""
        await cancel_all(self._measuring)
        async with self._turn:
            self._prepared = None
            if self._bed is not None:
                await in_thread(self._bed.clear)
            await self._lease.aclose()
            self._bed = None
            await self._pool.aclose()

    async def _claim(self) -> StrykerNetTestBed:
        if self._bed is None:
            self._bed = StrykerNetTestBed((await self._lease.enter_async_context(self._pool.lease())).sandbox)
        return self._bed

    async def _prepare(self, plan: StrykerNetPlan, bed: StrykerNetTestBed) -> Prepared:
        page = plan.uses_hosts and HAS_PAGE
        await in_thread(bed.make_ready)
        async with meanwhile(sdk_directory(bed.path, bed.environment), "directory of the .NET SDK") as looking:
            contents = []
            report_phase(GENERATING)
            for base in plan.bases:
                plan.check(base)
                patterns = [] if page else [LIST_ALL]
                contents.append(await self._run(plan, bed, base, patterns, page=page))
            with contextlib.suppress(ToolError):  # then the tests run in the host that they have
                sdk = await looking
                for assembly in await in_thread(bed.test_assemblies) if page and sdk else ():
                    await in_thread(take_precompiled, sdk, assembly)
        prepared = await in_thread(self._of, plan, bed, contents, [None] * len(contents), page)
        await in_thread(self._keep, prepared)
        return prepared

    async def _run(
        self, plan: StrykerNetPlan, bed: StrykerNetTestBed, base: Base, patterns: Sequence[str], *, page: bool = False
    ) -> Mapping[str, Any]:
        """Run the tool; a second time if it crashes by chance."""
        try:
            return await self._run_once(plan, bed, base, patterns, page=page)
        except tool.LoggingCrash as crash:
            log.warning("%s: it is run again", crash.problem)
            return await self._run_once(plan, bed, base, patterns, page=page)

    async def _run_once(
        self, plan: StrykerNetPlan, bed: StrykerNetTestBed, base: Base, patterns: Sequence[str], *, page: bool
    ) -> Mapping[str, Any]:
        output = await in_thread(bed.clear)
        configuration = plan.configuration(base)
        excluded = configuration.excluded if configuration and patterns else ()
        config = await in_thread(plan.config, base, bed.home)
        words = tool.arguments(output, [*patterns, *excluded], self._project.jobs, config, page=page)
        await _restored(bed, base)
        try:
            return await tool.run(
                [*plan.installation.command, *words],
                cwd=bed.path / base.directory,
                env=bed.preparation_environment if page else bed.environment,
                output=output,
                root=bed.path,
                page=page,
            )
        except BaselineError as error:
            failing = await self._failing(plan, bed, base)
            raise BaselineError(
                error.problem, error.remedy, tuple(failing), next(iter(failing.values()), "")
            ) from error
        except ToolError as error:
            unclear = error.remedy == tool.BY_HAND and not plan.uses_platform(base)
            if unclear and await in_thread(needs_platform, self._project.root / base.directory):
                remedy = f"{platform_line(configuration)}: the tests need Microsoft.Testing.Platform"
                raise ToolError(error.problem, remedy) from error
            raise
        finally:
            await in_thread(bed.clear)

    async def _failing(self, plan: StrykerNetPlan, bed: StrykerNetTestBed, base: Base) -> dict[str, str]:
        """Output of each test of the base that fails without any mutant, by name: the tool folds their names."""
        assemblies = _of_base(await in_thread(bed.built_tests), bed, base)
        with contextlib.suppress(ToolError):  # that they fail is worth more than that we can't say which
            outcome, _ = await self._hosts(plan, bed, base).baseline(assemblies, BASELINE_TIMEOUT_S)
            return dict(outcome.failures)
        return {}

    def _load(self, plan: StrykerNetPlan, bed: StrykerNetTestBed) -> Prepared | None:
        """Load what an earlier bridge has prepared, if nothing has changed since. Blocks."""
        if (kept := self._answers.get(_key(plan, bed), kept_parts)) is None:
            return None
        page, rows = kept
        contents, baselines = zip(*rows, strict=True)
        return self._of(plan, bed, contents, baselines, page)

    def _of(
        self,
        plan: StrykerNetPlan,
        bed: StrykerNetTestBed,
        contents: Sequence[Mapping[str, Any]],
        baselines: Sequence[StrykerNetBaseline | None],
        page: bool,
    ) -> Prepared:
        assemblies = bed.test_assemblies() if page else []
        reports = [Report.of(content, bed.path) for content in contents]
        digests = {path: reading.digest(bed.path / path) for report in reports for path in report.paths}
        parts, remarks = [], list[Remark]()
        for base, content, report, baseline in zip(plan.bases, contents, reports, baselines, strict=True):
            configuration = plan.configuration(base)
            extra_s = configuration.extra_s if configuration else DEFAULT_EXTRA_S
            ranges = configuration is not None and configuration.takes_ranges
            rows = report.entries(digests, listing=not page, ranges=ranges)
            entries = [row for row in rows if isinstance(row, ReportEntry)]
            remarks += (row for row in rows if isinstance(row, Remark))
            own, hosts = _of_base(assemblies, bed, base), self._hosts(plan, bed, base)
            starters = frozenset(str(file) for file in own if starts_programs(file))
            computed = frozenset(str(file) for file in own if computes_data(file))
            parts.append(PreparedBase(base, content, entries, own, hosts, extra_s, starters, computed, baseline))
        by_tool = None if assemblies else ""
        if page and not assemblies and any(entry.pending for part in parts for entry in part.entries):
            by_tool = "the mutated assemblies can't be tested in test hosts here"
        return Prepared(plan, parts, digests, page, by_tool, remarks)

    def _hosts(self, plan: StrykerNetPlan, bed: StrykerNetTestBed, base: Base) -> Hosts:
        return Hosts(HostProgram if plan.uses_platform(base) else TestHost, bed.environment)

    def _keep(self, prepared: Prepared) -> None:
        if self._bed is not None:
            self._answers.save({_key(prepared.plan, self._bed): prepared.kept})

    async def _measure(self, prepared: Prepared, parts: Sequence[PreparedBase]) -> None:
        for part in parts:
            async with self.lock.shared():
                if self._prepared is prepared:
                    with contextlib.suppress(ToolError):  # raised again to each caller that needs it
                        await self.baseline(prepared, part)


def _of_base(assemblies: Sequence[Path], bed: StrykerNetTestBed, base: Base) -> Sequence[Path]:
    """Tests in the directory of the base; all where none is, since the tests lie elsewhere."""
    return [file for file in assemblies if file.is_relative_to(bed.path / base.directory)] or assemblies


async def _restored(bed: StrykerNetTestBed, base: Base) -> None:
    """Have packages restored before the first run.

    The tool would learn that they are missing by a failing build of each project, and restore them side by side, where
    one project's restore can break another's.
    """
    built = await in_thread(bed.unrestored, base.directory)
    if built is not None:
        with contextlib.suppress(ToolError):  # the tool tries it again, and says why it fails
            await restore(built, bed.preparation_environment)


async def _refreshed(bed: StrykerNetTestBed) -> None:
    """Call `StrykerNetTestBed.refresh`. A cancel stops it between two files."""
    stop = Event()
    await in_thread(bed.refresh, stop, on_cancel=stop.set)


def _key(plan: StrykerNetPlan, bed: StrykerNetTestBed) -> bytes:
    named = {*plan.project.environment, *bed.named_variables()}
    return key_of(FORMAT, plan.key, bed.state(), variables(os.environ, named))

"""TerminalRun: one run of the command line, from the discovery to the last result."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen
from rich.console import Console

from msp_bridge.adapter import HasThreshold
from msp_bridge.cli.options import Options
from msp_bridge.cli.outputs import live_page
from msp_bridge.cli.short_runs import ShortRun, estimate, in_order
from msp_bridge.concurrency import all_of, in_thread, meanwhile
from msp_bridge.errors import BridgeError, ConfigurationError, SeveralErrors
from msp_bridge.last_results import KnownResults
from msp_bridge.model import Mutant, Result, Status
from msp_bridge.notices import ProjectFailure, Told, UnusableFile
from msp_bridge.phases import batches
from msp_bridge.reports.accepted import AcceptedSurvivors
from msp_bridge.reports.kept import CHANGED, COMMIT, SECONDS, STARTED, TESTED, WHOLE, started
from msp_bridge.reports.merging import Shard
from msp_bridge.reports.results import Score
from msp_bridge.reports.standard import Report, outcome, report
from msp_bridge.reports.terminal import PhaseLines, TerminalReport, discovery_status, is_terminal
from msp_bridge.text import counted, counted_mutants
from msp_bridge.workspace.selection import Selection
from msp_bridge.workspace.targets import Changes, Revision, Selected
from msp_bridge.workspace.workspace import Workspace

if TYPE_CHECKING:
    from msp_bridge.reports.live import LivePage

ESTIMATED_FROM = 3  # kept runs
KEEP_S = 3.0  # between two times that the results so far are kept
KEEP_PART = 30  # … and at least as many times of what it takes
PENDING = "not tested: the run ended before"


async def found_mutants(workspace: Workspace, selected: Selected, told: Told) -> list[Mutant]:
    """The selected mutants; `told` gets the notices. Raises BridgeError."""
    found = await all_of(batches(workspace.discover(selected.selection), told.tell))
    return [mutant for batch in found for mutant in batch if selected.takes(mutant)]


@frozen
class RunSelection:
    """Which mutants to test."""

    selected: Selected
    since: str | None
    shard: Shard | None
    paths: str  # as the user wrote them
    short: ShortRun

    @property
    def whole(self) -> bool:
        """Whether it is every mutant of the project."""
        return self.short.takes_all and not (self.paths or self.since or self.shard)

    @property
    def nothing(self) -> str:
        """Say that there are none, and why."""
        where = "" if self.shard is None else f" in part {self.shard.number}/{self.shard.of}"
        if self.since is not None:
            where += f" on lines that have changed since {self.since}"
        if self.paths:
            where += f" in {self.paths}"
        if self.short.status is not None or self.short.mutator is not None:
            where += " with this status or mutator"
        return f"no mutants{where}" if where else "no mutants; `msp-bridge doctor` shows where they were looked for"


@define
class TerminalRun:
    """One run, with the result of each mutant so far: an interrupted run has a report too."""

    options: Options
    config: RunSelection
    live: bool
    every: bool = False  # files are shown in the summary
    force: bool = False
    verify: int | None = None
    verify_command: str | None = None
    discovered: bool = False
    threshold: float | None = None  # of the tool's own configuration
    results: dict[Mutant, Result] = field(factory=dict)
    told: Told = field(factory=Told)
    _fields: dict[str, Any] = field(factory=dict)  # of the report's `config`
    revision: Revision | None = None  # that was checked out when the run began
    stopped: str = ""  # why the run has ended before the last mutant
    accepted: AcceptedSurvivors = field(init=False)
    _known: KnownResults = field(init=False)
    _kept: Path | None = None  # the results so far, for other terminals
    _changes: Changes | None = None
    _started: float = field(factory=time.time)
    _all: int = 0  # mutants that a sample is of

    def __attrs_post_init__(self) -> None:
        """Raises ConfigurationError when the accepted survivors can't be read."""
        self._known = KnownResults(self.options.root)
        self.accepted = self._known.accepted

    @property
    def judged(self) -> list[Result]:
        """The results as they count: accepted survivors are Ignored."""
        return [self.accepted.judged(result) for result in self.results.values()]

    @property
    def report(self) -> Report:
        """The results so far in the standard format."""
        return report(self.options.root, self.judged, self._fields)

    def keep(self) -> list[BridgeError]:
        """Keep the results for `msp-bridge results`; returns why they could not be kept."""
        pending = [result for result in self.results.values() if result.status is Status.PENDING]
        tested = len(self.results) - len(pending) - Score.of(self.results.values()).reused
        facts = {
            STARTED: started(self._started),
            SECONDS: round(time.time() - self._started, 1),
            TESTED: tested,
            WHOLE: self.config.whole,
        }
        if self.revision is not None:
            facts |= {COMMIT: self.revision.commit, CHANGED: self.revision.changed}
        if len(pending) == len(self.results):
            return []
        try:
            kept = report(self.options.root, tuple(self.results.values()), {**self._fields, **facts})
            self._known.keep(kept, self._kept)
        except ConfigurationError as error:
            return [error]
        return []

    async def run(self, console: Console) -> None:
        """Test, and show it on `console`. Raises BridgeError, when what could be tested has been."""
        options, config = self.options, self.config
        if options.configuration.cluster is not None:  # which few mutants would never ask
            from msp_bridge.cluster.connection import check_scheduler

            await check_scheduler(options.configuration.cluster)
        async with contextlib.aclosing(options.open_workspace()) as workspace:
            selected = config.selected
            if config.since is not None:
                selected = await selected.since(options.root, config.since)
            used = workspace.tools_for(selected.selection) or workspace.tools
            tools = ", ".join(tool.label for tool in used)
            if options.root in Path.cwd().parents:
                tools = f"{tools} (project: {options.root})"
            lines = None if options.quiet or is_terminal(console) else PhaseLines()
            with discovery_status(console, tools) as show_phase:
                self.told.show_phase = show_phase if lines is None else lines.show
                mutants = await self._mutants(workspace, selected)
            if len(used) == 1 and isinstance(used[0].adapter, HasThreshold) and config.shard is None:
                self.threshold = used[0].adapter.threshold()
            if mutants or not self.told.of(UnusableFile):  # else nobody knows whether there are any
                console.print(f"{tools}: {counted_mutants(mutants) if mutants else config.nothing}", soft_wrap=True)
            self.results = {mutant: Result(mutant, Status.PENDING, status_reason=PENDING) for mutant in mutants}
            self.discovered = True
            if mutants:
                await self._test(workspace, console, lines)
            if mutants and self.verify is not None:
                from msp_bridge.cli.verification import verify_results

                results = self.results.values()
                await verify_results(workspace, results, self.verify, self.verify_command, console, lines)
        if self.told.failures:
            raise SeveralErrors(self.told.failures)

    async def _mutants(self, workspace: Workspace, selected: Selected) -> list[Mutant]:
        short, shard = self.config.short, self.config.shard
        async with meanwhile(Revision.of(self.options.root), "look for the commit") as looking:
            mutants = await found_mutants(workspace, selected, self.told)
            self.revision = await looking
        self._all = len(mutants)
        if short.budget is not None:
            with contextlib.suppress(BridgeError):  # it is no git repository: nothing is known to have changed
                self._changes = await Changes.since(self.options.root, "HEAD")
        if shard is not None:
            self._fields = shard.config(mutants)
            part = shard.take(mutants)
            mutants = [mutant for mutant in mutants if mutant in part]
        return short.chosen(mutants, self._known)

    async def _test(self, workspace: Workspace, console: Console, lines: PhaseLines | None) -> None:
        root, quiet, short = self.options.root, self.options.quiet, self.config.short
        if about := estimate(list(self.results), list(islice(self._known.kept.each(), ESTIMATED_FROM))):
            console.print(about)
        async with contextlib.AsyncExitStack() as stack:
            page = await stack.enter_async_context(live_page(root, self.report)) if self.live else None
            terminal = stack.enter_context(TerminalReport(root, console, len(self.results), quiet=quiet))
            self.told.show_phase = terminal.show_phase if lines is None else lines.show
            stack.callback(self._summarize, terminal, console)
            await stack.enter_async_context(meanwhile(self._keep_meanwhile(), "keep the results so far"))
            stack.enter_context(self._collected())
            groups = [list(self.results)]
            if short.budget is not None:
                groups = in_order(self.results, self._changes, self._known.kept.all())
                await stack.enter_async_context(self._budget(short.budget))
            for group in groups:
                if not self.stopped:
                    await self._test_group(workspace, group, terminal, page)

    async def _test_group(
        self, workspace: Workspace, mutants: Sequence[Mutant], terminal: TerminalReport, page: LivePage | None
    ) -> None:
        testing = workspace.test(Selection.of(mutants), anew=self.force or self.config.short.status is not None)
        async with contextlib.aclosing(batches(testing, self.told.tell)) as tested:
            async for batch in tested:
                for result in batch:
                    self.results[result.mutant] = result
                    judged = self.accepted.judged(result)
                    terminal.show(judged)
                    if page is not None:
                        page.show(outcome(judged))
                    if self.config.short.fail_fast and judged.status.undetected:
                        self._stop("a mutant has survived (--fail-fast)")
                        return

    async def _keep_meanwhile(self) -> None:
        """Keep the results so far, as a run of some mutants, until it is cancelled: another terminal shows them."""
        took = 0.0
        while True:
            await asyncio.sleep(max(KEEP_S, took * KEEP_PART))
            begun = time.monotonic()
            tested = tuple(result for result in self.results.values() if result.status is not Status.PENDING)
            with contextlib.suppress(ConfigurationError):  # at the end it is tried again, and said
                await in_thread(self._keep_some, tested)
            took = time.monotonic() - begun

    def _keep_some(self, results: Sequence[Result]) -> None:
        if results:
            facts = {STARTED: started(self._started), WHOLE: False}
            self._kept = self._known.keep(report(self.options.root, results, facts), self._kept)

    @contextlib.asynccontextmanager
    async def _budget(self, seconds: float) -> AsyncIterator[None]:
        """End the block when so much time has passed since the run began."""
        try:
            async with asyncio.timeout(max(0.0, seconds - (time.time() - self._started))) as timeout:
                yield
        except TimeoutError:
            if not timeout.expired():
                raise
            self._stop(f"the budget of {seconds:g} s is used up")

    def _stop(self, why: str) -> None:
        left = [mutant for mutant, result in self.results.items() if result.status is Status.PENDING]
        changed = sum(self._changes is not None and self._changes.touch(mutant) for mutant in left)
        lines = f", {changed} of them on changed lines" if changed else ""
        self.stopped = f"{why}: {counted(len(left), 'mutant')} of {len(self.results)} not tested{lines}"

    def _summarize(self, terminal: TerminalReport, console: Console) -> None:
        terminal.summary(every=self.every)
        if interval := self.config.short.interval(Score.of(self.judged), self._all):
            console.print(interval, soft_wrap=True)

    @contextlib.contextmanager
    def _collected(self) -> Iterator[None]:
        """Keep an error for the end when other projects have failed already: the user gets all of them."""
        try:
            yield
        except BridgeError as error:
            if not self.told.failures:
                raise
            for each in error.errors if isinstance(error, SeveralErrors) else (error,):
                self.told.notices[ProjectFailure(each)] = None

"""`msp-bridge run`: tests mutants and shows what the tests miss, without an editor."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterable, Iterator
from typing import Any

import click
from attrs import define, field, frozen
from rich.console import Console
from rich.text import Text

from msp_bridge.cli.browser import check_installed, live_page
from msp_bridge.cli.changes import Changes
from msp_bridge.cli.options import Options, bridge_options
from msp_bridge.cli.outputs import Outputs, Report, output_options
from msp_bridge.cli.targets import selection_of
from msp_bridge.counts import counted_mutants
from msp_bridge.errors import BridgeError, PartlyFailed, SeveralErrors
from msp_bridge.model import Mutant, Result, Status
from msp_bridge.reports.schema import outcome, report
from msp_bridge.reports.score import Score
from msp_bridge.reports.shard import Shard
from msp_bridge.reports.terminal import TerminalReport
from msp_bridge.workspace.selection import KnownMutant, Selection, Target
from msp_bridge.workspace.workspace import Workspace

BELOW_THRESHOLD = 1
INTERRUPTED = 130  # as shells say of SIGINT
PENDING = "not tested: the run ended before"


def _shard(_: click.Context, __: click.Parameter, value: str | None) -> Shard | None:
    try:
        return None if value is None else Shard.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command("run", context_settings={"show_default": True})
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATHS]…")
@click.option("--since", metavar="REVISION", help="Only mutants on lines that have changed in git since REVISION.")
@click.option(
    "--shard",
    callback=_shard,
    metavar="K/N",
    help="Only part K of N, for N jobs of a CI; `merge` joins their reports.",
)
@click.option("--live", is_flag=True, help="Show the report in a browser while it fills.")
@output_options
@bridge_options
@click.pass_context
def command(
    context: click.Context, /, paths: tuple[str, ...], since: str | None, shard: Shard | None, live: bool, **values: Any
) -> None:
    """Test mutants and show what the tests miss.

    PATHS are files, directories, or lines of files (`cart.py:12`, `cart.py:10-20`); without any, the whole project.
    Each mutant that survives is shown as a diff, as soon as it is known.

    With --since main, only what you have changed since you left main is tested: your commits, what is not yet
    committed, and new files.

    Exit codes: 0 done; 1 the mutation score is below the threshold, or something could not be tested, as when git
    doesn't know the REVISION, with the reason on stderr; 2 the command line is wrong, or names a file, directory,
    interpreter or adapter that isn't there; 130 interrupted. A report of a run that was interrupted has the mutants
    that were not tested as Pending.
    """
    options, outputs = Options.of(values), Outputs.of(values)
    options.check()
    options.start_logging("warning")
    if live:
        check_installed()
    named = ", ".join(map(click.format_filename, paths))
    run = Run(options, Wanted(selection_of(options.root, paths), since, shard, named), live)
    signal.signal(signal.SIGTERM, _terminated)
    try:
        asyncio.run(run.run(Console(highlight=False, markup=False)))
    except KeyboardInterrupt:
        click.echo("msp-bridge: interrupted; every process has been ended", err=True)
        context.exit(INTERRUPTED)
    finally:
        if run.discovered:
            outputs.write(options.root, run.report)
    if not outputs.reached(Score.of(run.results.values())):
        context.exit(BELOW_THRESHOLD)


def _terminated(*_: object) -> None:
    """So CI systems stop a job: as Ctrl-C, which a shell has those ignore that its script starts in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


@frozen
class Wanted:
    """Which mutants to test."""

    selection: Selection
    since: str | None
    shard: Shard | None
    paths: str  # as the user wrote them

    @property
    def nothing(self) -> str:
        """What to say when there are none."""
        where = "" if self.shard is None else f" in part {self.shard.number}/{self.shard.of}"
        if self.since is not None:
            where += f" on lines that have changed since {self.since}"
        if self.paths:
            where += f" in {self.paths}"
        return f"no mutants{where}" if where else "no mutants; `msp-bridge doctor` says where they were looked for"


@define
class Run:
    """One run. It knows what has come of each mutant so far, for an interrupted run has a report too."""

    options: Options
    wanted: Wanted
    live: bool
    discovered: bool = False
    results: dict[Mutant, Result] = field(factory=dict)
    _failures: list[BridgeError] = field(factory=list)
    _config: dict[str, Any] = field(factory=dict)

    @property
    def report(self) -> Report:
        """In the standard format."""
        return report(self.options.root, tuple(self.results.values()), self._config)

    async def run(self, console: Console) -> None:
        """Test, and show it on `console`. Raises BridgeError, when what could be tested has been."""
        options = self.options
        async with contextlib.aclosing(Workspace.open(options.root, options.configuration, options.named)) as workspace:
            changes = await self._changes()
            selection = self._selection(changes)
            tools = ", ".join(tool.label for tool in workspace.tools_for(selection) or workspace.tools)
            with console.status(Text(f"{tools}: looking for mutants")):
                mutants = await self._mutants(workspace, selection, changes)
            console.print(f"{tools}: {counted_mutants(mutants) if mutants else self.wanted.nothing}", soft_wrap=True)
            self.results = {mutant: Result(mutant, Status.PENDING, status_reason=PENDING) for mutant in mutants}
            self.discovered = True
            if mutants:
                await self._test(workspace, console)
        if self._failures:
            raise SeveralErrors(self._failures)

    async def _changes(self) -> Changes | None:
        return None if self.wanted.since is None else await Changes.since(self.options.root, self.wanted.since)

    def _selection(self, changes: Changes | None) -> Selection:
        if changes is None or self.wanted.selection.targets is not None:
            return self.wanted.selection
        return Selection(targets=tuple(Target(path) for path in changes.lines))

    async def _mutants(self, workspace: Workspace, selection: Selection, changes: Changes | None) -> list[Mutant]:
        wanted = self.wanted
        mutants = []
        with self._kept():
            async with contextlib.aclosing(workspace.discover(selection)) as discovered:
                async for mutant in discovered:
                    if changes is None or changes.touch(mutant):
                        mutants.append(mutant)  # noqa: PERF401  (a comprehension would lose them in a failure)
        if wanted.shard is None:
            return mutants
        self._config = wanted.shard.config(mutants)
        part = wanted.shard.take(mutants)
        return [mutant for mutant in mutants if mutant in part]

    async def _test(self, workspace: Workspace, console: Console) -> None:
        async with contextlib.AsyncExitStack() as stack:
            page = await stack.enter_async_context(live_page(self.options.root, self.report)) if self.live else None
            terminal = stack.enter_context(TerminalReport(self.options.root, console, len(self.results)))
            stack.callback(terminal.summary)
            selection = Selection(mutants=tuple(_known(self.results)))
            stack.enter_context(self._kept())
            tested = await stack.enter_async_context(contextlib.aclosing(workspace.test(selection)))
            async for result in tested:
                self.results[result.mutant] = result
                terminal.show(result)
                if page is not None:
                    page.show(outcome(result))

    @contextlib.contextmanager
    def _kept(self) -> Iterator[None]:
        """What failed in one project of several is told at the end: the others do their part."""
        try:
            yield
        except BridgeError as error:
            if not (self._failures or isinstance(error, PartlyFailed)):
                raise
            known = set(map(str, self._failures))
            found = error.errors if isinstance(error, SeveralErrors) else (error,)
            self._failures += [each for each in found if str(each) not in known]


def _known(mutants: Iterable[Mutant]) -> Iterable[KnownMutant]:
    return (KnownMutant(mutant.path, mutant.location, mutant.mutator, mutant.replacement) for mutant in mutants)

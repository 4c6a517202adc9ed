"""`msp-bridge run` and `msp-bridge discover`: test or list mutants without an editor."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from attrs import define, evolve, field, frozen
from rich.console import Console

from msp_bridge.adapter import HasThreshold
from msp_bridge.cli import Exit, show, show_failing_tests
from msp_bridge.cli.options import CLUSTER, Options, bridge_options, outside, with_options
from msp_bridge.cli.outputs import Outputs, check_live, live_page, output_options
from msp_bridge.errors import BridgeError, SeveralErrors
from msp_bridge.model import Mutant, Result, Status
from msp_bridge.notices import FailingTest, ProjectFailure, Told, UnusableFile
from msp_bridge.phases import without_notices
from msp_bridge.reports.merging import Shard
from msp_bridge.reports.results import Score
from msp_bridge.reports.standard import Report, outcome, report
from msp_bridge.reports.terminal import PhaseLines, TerminalReport, discovery_status, is_terminal, mutant_table
from msp_bridge.text import counted, counted_mutants
from msp_bridge.workspace.selection import Selection
from msp_bridge.workspace.targets import Selected, select
from msp_bridge.workspace.workspace import Workspace

PENDING = "not tested: the run ended before"
UNBOUNDED = 10_000  # columns of a file or pipe, whose reader wants all of a path


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
    help="Only part K of N, for N CI jobs; `merge` joins their reports.",
)
@click.option("--incremental", is_flag=True, help="Reuse verdicts of earlier runs for which nothing has changed.")
@click.option("--force", is_flag=True, help="With --incremental: test every mutant, and keep the verdicts.")
@click.option(
    "--store", type=click.Path(dir_okay=False), metavar="FILE", help="Keep these verdicts in FILE, as for a CI's cache."
)
@click.option("--live", is_flag=True, help="Show the report in a browser while it fills.")
@click.option("--verify", type=click.IntRange(1), metavar="N", help="Test N random mutants again, in fresh processes.")
@click.option("--verify-command", metavar="COMMAND", help="The tests' command for --verify.  [default: the tool's own]")
@output_options
@with_options([CLUSTER])
@bridge_options
@click.pass_context
def run(
    context: click.Context,
    /,
    paths: tuple[str, ...],
    since: str | None,
    shard: Shard | None,
    incremental: bool,
    force: bool,
    store: str | None,
    live: bool,
    verify: int | None,
    verify_command: str | None,
    **values: Any,
) -> None:
    """Test mutants and show what the tests miss.

    PATHS are files, directories, lines of files (`cart.py:12`, `cart.py:10-20`), or single mutants (`cart.py:12:5`);
    without any, the whole project. Each mutant that survives is shown as a diff, as soon as it is known.

    With --since main, only what you have changed since you left main is tested: your commits, what is not yet
    committed, and new files.

    With --incremental, a mutant is tested only if something has changed that its verdict could depend on: a file, the
    tool, an installed package. The summary says how many verdicts are those of an earlier run. With --store FILE, which
    implies it, they are kept in FILE, which a CI can keep between jobs.

    With --cluster, the workers of a Dask cluster test, where there are more than eight mutants for each job of this
    machine.

    With --verify 20, twenty of the verdicts are checked: each mutant is written into a fresh copy of the project, and
    the tests run in a fresh process. Verdicts that differ are shown.

    \b
    Exit codes; stderr has the reason:
      0    done
      1    the mutation score is below the threshold, or a verdict that
           --verify checked differs
      2    the command line or the configuration is wrong, or a report can't be
           written
      3    there are no verdicts, or not of every test and file: tests fail
           without any mutant, a file can't be parsed, or a tool can't run
      130  interrupted; a report has what was not tested as Pending
    """
    options, outputs = Options.of(values, search=True), Outputs.of(values)
    options.check()
    kept = outside(options.root, store, "--store")
    if incremental or kept is not None:
        options = evolve(options, configuration=evolve(options.configuration, incremental=True, store=kept))
    options.start_logging("warning")
    if live:
        check_live()
    if shard is None:  # the threshold is that of the whole
        outputs = outputs.with_defaults(options.root, options.named)
    config = RunSelection(select(options.root, paths), since, shard, ", ".join(map(click.format_filename, paths)))
    session = TerminalRun(options, config, live, force=force, verify=verify, verify_command=verify_command)
    console = _console(stderr=outputs.uses_stdout)
    signal.signal(signal.SIGTERM, _terminated)
    code, errors = Exit.FINE, []
    try:
        asyncio.run(session.run(console))
    except KeyboardInterrupt:
        click.echo("msp-bridge: interrupted; every process has been ended", err=True)
        code = Exit.INTERRUPTED
    except BridgeError as error:
        code, errors = Exit.of(error), [*(error.errors if isinstance(error, SeveralErrors) else (error,))]
    finally:
        unwritten = outputs.write(session.report) if session.discovered else []
    context.exit(_concluded(session, outputs, code, errors, unwritten))


def _concluded(
    session: TerminalRun, outputs: Outputs, code: Exit, errors: list[BridgeError], unwritten: list[BridgeError]
) -> Exit:
    """Say what is wrong, and return the exit code: `code`, or else that of the first thing that is wrong."""
    unusable = [file.error for file in session.told.of(UnusableFile)]
    show([*errors, *unusable, *unwritten])
    if failing := session.told.of(FailingTest):
        tests = counted(len(failing), "test")
        click.echo(f"msp-bridge: {tests} failed without any mutant and are excluded: fix the tests first", err=True)
        show_failing_tests([one.test for one in failing], failing[0].output)
    if unusable or failing:
        code = code or Exit.NO_VERDICTS
    if unwritten:
        code = code or Exit.USAGE
    if outputs.threshold is None:
        outputs = evolve(outputs, threshold=session.threshold)
    if not outputs.reached(Score.of(session.results.values())):
        code = code or Exit.BELOW_THRESHOLD
    return code


@click.command("discover", context_settings={"show_default": True})
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATHS]…")
@click.option("--json", "as_json", is_flag=True, help="Print what MSP's `discover` answers instead of a table.")
@bridge_options
def discover(paths: tuple[str, ...], as_json: bool, **values: Any) -> None:
    """List mutants without testing them.

    PATHS are files, directories, lines of files (`cart.py:12`, `cart.py:10-20`), or single mutants (`cart.py:12:5`);
    without any, the whole project.

    \b
    Exit codes; stderr has the reason:
      0    done
      2    the command line or the configuration is wrong
      3    a tool can't run, or a file can't be parsed
      130  interrupted
    """
    options = Options.of(values, search=True)
    options.check()
    options.start_logging("warning")
    selected = select(options.root, paths)
    told = Told()
    mutants = asyncio.run(_discover(options, selected, told))
    mutants.sort(key=lambda mutant: mutant.path)  # several tools' files come in any order
    if as_json:
        from msp_bridge.dialects.msp import Wire

        wire = Wire()
        answer = wire.files((mutant.path, wire.discovered(mutant)) for mutant in mutants)
        click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        console = _console()
        if not console.is_terminal:
            console.width = UNBOUNDED
        if mutants and not options.quiet:
            console.print(mutant_table(options.root, mutants))
        console.print(counted_mutants(mutants))
    if failures := [*told.failures, *(file.error for file in told.of(UnusableFile))]:
        raise SeveralErrors(failures)


async def _discover(options: Options, selected: Selected, told: Told) -> list[Mutant]:
    async with contextlib.aclosing(Workspace.open(options.root, options.configuration, options.named)) as workspace:
        return await _mutants(workspace, selected, told)


async def _mutants(workspace: Workspace, selected: Selected, told: Told) -> list[Mutant]:
    found = without_notices(workspace.discover(selected.selection), told.tell)
    async with contextlib.aclosing(found):
        return [mutant async for batch in found for mutant in batch if selected.takes(mutant)]


def _console(*, stderr: bool = False) -> Console:
    return Console(highlight=False, markup=False, stderr=stderr)


def _terminated(*_: object) -> None:
    """So CI systems stop a job: as Ctrl-C, which a shell has those ignore that its script starts in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


@frozen
class RunSelection:
    """Which mutants to test."""

    selected: Selected
    since: str | None
    shard: Shard | None
    paths: str  # as the user wrote them

    @property
    def nothing(self) -> str:
        """Say that there are none, and why."""
        where = "" if self.shard is None else f" in part {self.shard.number}/{self.shard.of}"
        if self.since is not None:
            where += f" on lines that have changed since {self.since}"
        if self.paths:
            where += f" in {self.paths}"
        return f"no mutants{where}" if where else "no mutants; `msp-bridge doctor` shows where they were looked for"


@define
class TerminalRun:
    """One run, with the result of each mutant so far: an interrupted run has a report too."""

    options: Options
    config: RunSelection
    live: bool
    force: bool = False
    verify: int | None = None
    verify_command: str | None = None
    discovered: bool = False
    threshold: float | None = None  # of the tool's own configuration
    results: dict[Mutant, Result] = field(factory=dict)
    told: Told = field(factory=Told)
    _fields: dict[str, Any] = field(factory=dict)  # of the report's `config`

    @property
    def report(self) -> Report:
        """In the standard format."""
        return report(self.options.root, tuple(self.results.values()), self._fields)

    async def run(self, console: Console) -> None:
        """Test, and show it on `console`. Raises BridgeError, when what could be tested has been."""
        options, config = self.options, self.config
        if options.configuration.cluster is not None:  # which few mutants would never ask
            from msp_bridge.cluster.connection import check_scheduler

            await check_scheduler(options.configuration.cluster)
        async with contextlib.aclosing(Workspace.open(options.root, options.configuration, options.named)) as workspace:
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
                await verify_results(workspace, results, self.verify, self.verify_command, console)
        if self.told.failures:
            raise SeveralErrors(self.told.failures)

    async def _mutants(self, workspace: Workspace, selected: Selected) -> list[Mutant]:
        shard = self.config.shard
        mutants = await _mutants(workspace, selected, self.told)
        if shard is None:
            return mutants
        self._fields = shard.config(mutants)
        part = shard.take(mutants)
        return [mutant for mutant in mutants if mutant in part]

    async def _test(self, workspace: Workspace, console: Console, lines: PhaseLines | None) -> None:
        root, quiet = self.options.root, self.options.quiet
        async with contextlib.AsyncExitStack() as stack:
            page = await stack.enter_async_context(live_page(root, self.report)) if self.live else None
            terminal = stack.enter_context(TerminalReport(root, console, len(self.results), quiet=quiet))
            self.told.show_phase = terminal.show_phase if lines is None else lines.show
            stack.callback(terminal.summary)
            stack.enter_context(self._collected())
            testing = workspace.test(Selection.of(self.results), anew=self.force)
            tested = await stack.enter_async_context(contextlib.aclosing(without_notices(testing, self.told.tell)))
            async for batch in tested:
                for result in batch:
                    self.results[result.mutant] = result
                    terminal.show(result)
                    if page is not None:
                        page.show(outcome(result))

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

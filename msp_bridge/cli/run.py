"""`msp-bridge run` and `msp-bridge discover`: test or list mutants without an editor."""

import asyncio
import contextlib
import json
import signal
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

import click
from attrs import evolve, fields_dict
from rich.console import Console

from msp_bridge.cli import Exit, show, show_failing_tests, show_remarks
from msp_bridge.cli.apply import UNDO, AppliedMutant
from msp_bridge.cli.options import CLUSTER, Options, bridge_options, outside, with_options
from msp_bridge.cli.outputs import Outputs, check_live, output_options
from msp_bridge.cli.short_runs import OPTIONS as SHORT_OPTIONS
from msp_bridge.cli.short_runs import ShortRun
from msp_bridge.cli.terminal_run import RunSelection, TerminalRun, found_mutants
from msp_bridge.errors import BridgeError, SeveralErrors
from msp_bridge.isolation.left_out import ACCEPTED
from msp_bridge.model import Mutant
from msp_bridge.notices import FailingTest, Told, UnusableFile
from msp_bridge.reports.merging import Shard
from msp_bridge.reports.results import Score
from msp_bridge.reports.terminal import mutant_table
from msp_bridge.rows import mutant_fields
from msp_bridge.text import counted, counted_mutants, one_line
from msp_bridge.workspace.targets import Selected, select

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
@click.option("--all", "every", is_flag=True, help="Show every file in the summary, not the worst ten.")
@with_options(SHORT_OPTIONS)
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
    every: bool,
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

    With --sample 50, fifty mutants are tested, spread over files and mutators: the score is an estimate, and the
    summary has its confidence interval. With --budget 5m, the run stops after five minutes, and says what was not
    tested; what was is kept, so the next such run goes on. With --status Survived, those are tested again that survived
    last time. `msp-bridge docs survivors` says how to go on with them.

    With --cluster, a Dask cluster tests where there are more than eight mutants for each job of this machine.

    With --verify 20, twenty of the verdicts are checked: each mutant is written into a fresh copy of the project, and
    the tests run in a fresh process; PIT's mutants are tested by PIT. Verdicts that differ are shown.

    \b
    Exit codes; stderr has the reason:
      0    done
      1    the mutation score is below the threshold, a survivor is not accepted
           (--no-new-survivors, --fail-fast), or a verdict that --verify checked
           differs
      2    the command line or the configuration is wrong, or a report can't be
           written or uploaded
      3    there are no verdicts, or not of every test and file: tests fail
           without any mutant, a file can't be parsed, or a tool can't run
      130  interrupted; a report has what was not tested as Pending
    """
    options = _options(values, incremental, store)
    outputs = Outputs.of(values, options.root)
    selection = _selection(options.root, paths, since, shard, values)
    outputs.check_dashboard(whole=selection.whole)
    if (applied := AppliedMutant.of(options.root)) is not None:
        click.echo(f"msp-bridge: a mutant is applied in {one_line(applied.path)}: {UNDO}", err=True)
    if live:
        check_live()
    if shard is None:  # the threshold is that of the whole
        outputs = outputs.with_defaults(options.root, options.named)
    context.exit(_tested(TerminalRun(options, selection, live, every, force, verify, verify_command), outputs))


def _options(values: dict[str, Any], incremental: bool, store: str | None) -> Options:
    options = Options.of_command(values, "warning")
    kept = outside(options.root, store, "--store")
    if incremental or kept is not None:
        options = evolve(options, configuration=evolve(options.configuration, incremental=True, store=kept))
    return options


def _selection(
    root: Path, paths: tuple[str, ...], since: str | None, shard: Shard | None, values: Mapping[str, Any]
) -> RunSelection:
    short = ShortRun(**{name: values[name] for name in fields_dict(ShortRun)})
    names = ", ".join(map(click.format_filename, paths))
    return RunSelection(select(root, paths), since, shard, names, short)


def _tested(session: TerminalRun, outputs: Outputs) -> Exit:
    """Run `session`, write its report, and say how it ended."""
    console = Console(highlight=False, markup=False, stderr=outputs.uses_stdout)
    code, errors = Exit.FINE, []
    try:
        asyncio.run(_until_terminated(session.run(console)))
    except (KeyboardInterrupt, asyncio.CancelledError):
        click.echo("msp-bridge: interrupted; every process has been ended", err=True)
        code = Exit.INTERRUPTED
    except BridgeError as error:
        code, errors = Exit.of(error), [*(error.errors if isinstance(error, SeveralErrors) else (error,))]
    finally:
        unwritten = [*outputs.write(session.report), *session.keep()] if session.discovered else []
    if code is Exit.FINE:  # else the report is not complete
        unwritten += outputs.upload(session.report)
    return _concluded(session, outputs, code, errors, unwritten)


def _concluded(
    session: TerminalRun, outputs: Outputs, code: Exit, errors: list[BridgeError], unwritten: list[BridgeError]
) -> Exit:
    """Say what is wrong, and return the exit code: `code`, or else that of the first thing that is wrong."""
    unusable = [file.error for file in session.told.of(UnusableFile)]
    show([*errors, *unusable, *unwritten])
    show_remarks(session.told)
    for gone in session.accepted.gone():
        click.echo(f"msp-bridge: {ACCEPTED} has code that is gone: {one_line(f'{gone.path}: {gone.before}')}", err=True)
    if failing := session.told.of(FailingTest):
        one = len(failing) == 1
        fail, them = ("fails", "is left out: fix it") if one else ("fail", "are left out: fix them")
        tests = counted(len(failing), "test")
        click.echo(f"msp-bridge: {tests} {fail} without any mutant, and {them} first", err=True)
        show_failing_tests([one.test for one in failing], failing[0].output)
    if unusable or failing:
        code = code or Exit.NO_VERDICTS
    if unwritten:
        code = code or Exit.USAGE
    if outputs.threshold is None:
        outputs = evolve(outputs, threshold=session.threshold)
    if not outputs.reached(Score.of(session.judged)):
        code = code or Exit.BELOW_THRESHOLD
    if session.stopped:
        click.echo(f"msp-bridge: {session.stopped}", err=True)
        if session.config.short.fail_fast and Score.of(session.judged).undetected:
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
    options = Options.of_command(values, "warning")
    selected = select(options.root, paths)
    told = Told()
    mutants = asyncio.run(_discover(options, selected, told))
    mutants.sort(key=lambda mutant: mutant.path)  # several tools' files come in any order
    if as_json:
        from msp_bridge.dialects.msp import wire_files

        answer = wire_files((mutant.path, mutant_fields(mutant)) for mutant in mutants)
        click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        console = Console(highlight=False, markup=False)
        if not console.is_terminal:
            console.width = UNBOUNDED
        if mutants and not options.quiet:
            console.print(mutant_table(options.root, mutants))
        console.print(counted_mutants(mutants))
    show_remarks(told)
    if failures := [*told.failures, *(file.error for file in told.of(UnusableFile))]:
        raise SeveralErrors(failures)


async def _discover(options: Options, selected: Selected, told: Told) -> list[Mutant]:
    async with contextlib.aclosing(options.open_workspace()) as workspace:
        return await found_mutants(workspace, selected, told)


async def _until_terminated(work: Coroutine[Any, Any, None]) -> None:
    """Do `work`, and have SIGTERM, by which CI systems stop a job, cancel it, as Ctrl-C does."""
    task = asyncio.create_task(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await task

"""`msp-bridge run`: tests mutants and shows what the tests miss, without an editor."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from msp_bridge.cli.options import Options, bridge_options, log_to_stderr
from msp_bridge.cli.targets import selection_of
from msp_bridge.model import Mutant, Result
from msp_bridge.reports.schema import report
from msp_bridge.reports.score import Score
from msp_bridge.reports.terminal import TerminalReport
from msp_bridge.rpc.json_text import dump
from msp_bridge.workspace.selection import KnownMutant, Selection
from msp_bridge.workspace.workspace import Workspace

BELOW_THRESHOLD = 1
INTERRUPTED = 130  # as shells say of SIGINT


@click.command("run", context_settings={"show_default": True})
@click.argument("paths", nargs=-1, metavar="[PATHS]…")
@click.option("--threshold", type=click.FloatRange(0, 100), metavar="PERCENT", help="Fail below this mutation score.")
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a report in the standard format (mutation-testing-report-schema).",
)
@bridge_options
@click.pass_context
def command(
    context: click.Context, /, paths: tuple[str, ...], threshold: float | None, json_file: Path | None, **values: Any
) -> None:
    """Test mutants and show what the tests miss.

    PATHS are files, directories, or lines of files (`cart.py:12`, `cart.py:10-20`); without any, the whole project.
    Each mutant that survives is shown as a diff, as soon as it is known.

    Exit codes: 0 done; 1 the mutation score is below the threshold, or nothing could be tested, with the reason on
    stderr; 2 the command line is wrong; 130 interrupted.
    """
    options = Options.of(values)
    log_to_stderr(options.log_level or "warning")
    if json_file is not None and not json_file.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no directory {json_file.absolute().parent}", param_hint="--json")
    results: list[Result] = []
    try:
        asyncio.run(_run(options, selection_of(options.root, paths), Console(highlight=False), results))
    except KeyboardInterrupt:
        click.echo("msp-bridge: interrupted; every process has been ended", err=True)
        context.exit(INTERRUPTED)
    finally:
        if json_file is not None:
            json_file.write_bytes(dump(report(options.root, results)))
    percent = Score.of(results).percent
    if threshold is not None and percent is not None and percent < threshold:
        click.echo(
            f"msp-bridge: the mutation score {percent:.1f} % is below the threshold of {threshold:g} %", err=True
        )
        context.exit(BELOW_THRESHOLD)


async def _run(options: Options, selection: Selection, console: Console, results: list[Result]) -> None:
    """Appends to `results` as they come, so that an interrupted run has what was known."""
    async with contextlib.aclosing(Workspace.open(options.root, options.configuration, options.named)) as workspace:
        tools = ", ".join(adapter.name for adapter in workspace.adapters)
        with console.status(f"{tools}: looking for mutants"):
            async with contextlib.aclosing(workspace.discover(selection)) as mutants:
                known = tuple([_known(mutant) async for mutant in mutants])
        files = len({mutant.path for mutant in known})
        console.print(f"{tools}: {len(known)} mutants in {files} files")
        if not known:
            return
        with TerminalReport(options.root, console, len(known)) as terminal:
            try:
                async with contextlib.aclosing(workspace.test(Selection(mutants=known))) as tested:
                    async for result in tested:
                        results.append(result)
                        terminal.show(result)
            finally:
                terminal.summary()


def _known(mutant: Mutant) -> KnownMutant:
    return KnownMutant(mutant.path, mutant.location, mutant.mutator, mutant.replacement)

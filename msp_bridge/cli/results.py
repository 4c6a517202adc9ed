"""`msp-bridge results`, `show` and `accept`: the last results, without testing, and what no test can or should kill."""

from collections.abc import Iterator, Sequence
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from msp_bridge.cli import Exit, show
from msp_bridge.cli.known import MUTATOR, PROJECT_OPTIONS, STATUS, known_results
from msp_bridge.cli.options import with_options
from msp_bridge.cli.outputs import Outputs, output_options
from msp_bridge.errors import CommandLineError
from msp_bridge.isolation.left_out import ACCEPTED
from msp_bridge.last_results import KnownResults
from msp_bridge.model import Status
from msp_bridge.reports.kept import STARTED, LastResult, reported
from msp_bridge.reports.results import ContentIndex, Score
from msp_bridge.reports.standard import Report, entries
from msp_bridge.reports.terminal import SIGNS, UNDETECTED, evidence, missed, show_summary, shown_path
from msp_bridge.source import SourceText, mutant_diff
from msp_bridge.text import counted, one_line, visible


@click.command("results", context_settings={"show_default": True})
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATHS]…")
@with_options([STATUS, MUTATOR])
@click.option("--all", "every", is_flag=True, help="Show mutants of every status, and every file in the table.")
@click.option("-q", "--quiet", is_flag=True, help="Show only the summary.")
@output_options
@with_options(PROJECT_OPTIONS)
@click.pass_context
def results(
    context: click.Context,
    /,
    paths: tuple[str, ...],
    status: frozenset[Status] | None,
    mutator: str | None,
    every: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Show the last results again, without testing.

    `run` keeps what it finds: of each mutant, the last result is shown. One whose lines have changed since is marked
    stale. PATHS are those of `run`. Survivors are listed, or what has the statuses of --status; the reports have all
    that PATHS, --status and --mutator select.

    \b
    Exit codes; stderr has the reason:
      0    done
      1    the mutation score is below --threshold, or there are new survivors
           and --no-new-survivors
      2    the command line is wrong, no run is kept, or a report can't be
           written or uploaded
    """
    known = known_results(values)
    outputs = Outputs.of(values, known.root)
    outputs.check_dashboard(whole=not (paths or status or mutator))
    wanted = known.wanted(paths, status, mutator)
    console = Console(highlight=False, markup=False, stderr=outputs.uses_stdout)
    shown = [] if quiet else [each for each in wanted if every or status or each.result.status in UNDETECTED]
    for last in shown:
        note = f"  {last.result.mutant.id}{'  stale' if last.stale else ''}"
        console.print(missed(known.root, last.result, last.source, note), soft_wrap=True)
    show_summary(console, known.root, [last.result for last in wanted], every=every)
    if not wanted:
        console.print("no mutant is selected: `msp-bridge results --all` lists them with their statuses and mutators")
    if stale := sum(last.stale for last in wanted):
        console.print(f"{counted(stale, 'result')} stale: the lines have changed since; `msp-bridge run` tests them")
    report = reported(known.report, wanted)
    unwritten = [*outputs.write(report), *outputs.upload(report)]
    show(unwritten)
    passed = outputs.reached(Score.of(last.result for last in wanted))
    context.exit(Exit.USAGE if unwritten else Exit.FINE if passed else Exit.BELOW_THRESHOLD)


@click.command("show")
@click.argument("mutants", nargs=-1, required=True, metavar="ID|FILE:LINE[:COL]…")
@with_options(PROJECT_OPTIONS)
def show_command(mutants: tuple[str, ...], **values: Any) -> None:
    """Show mutants of the last results: the diff, the tests, who killed it, the time, the reason and its history.

    A mutant is named by its id, as `msp-bridge results` shows it, or by its place: `cart.py:12:5`, or `cart.py:12` for
    all that lie in that line. Nothing is tested.

    \b
    Exit codes; stderr has the reason:
      0    done
      2    the last results have no such mutant, or no run is kept
    """
    known = known_results(values)
    console = Console(highlight=False, markup=False)
    kept = known.kept.all()
    for last in known.named(mutants):
        console.print(_shown(known, last, list(_history(kept, last))), soft_wrap=True)


@click.command("accept")
@click.argument("mutants", nargs=-1, metavar="[ID|FILE:LINE[:COL]]…")
@click.option("--reason", required=True, help="Why no test can or should kill them, in one sentence.")
@click.option("--all", "every", is_flag=True, help="Accept every survivor of the last results.")
@with_options(PROJECT_OPTIONS)
def accept(mutants: tuple[str, ...], reason: str, every: bool, **values: Any) -> None:
    """Accept survivors that no test can or should kill, such as equivalent mutants.

    They are written to mutants-accepted.toml in the project's root: commit it. An entry is known by its code, so it
    stays when lines move, and ends when its line changes. Accepted survivors count neither for the score nor against
    it, and `run --no-new-survivors` fails for all others. Remove an entry to take it back.

    \b
    Exit codes; stderr has the reason:
      0    done
      2    the last results have no such survivor, no run is kept, or the file
           can't be read or written
    """
    known = known_results(values)
    if bool(mutants) == every:
        raise CommandLineError("name survivors, or take --all of them", "`msp-bridge results` lists them")
    added = known.accept(known.results if every else known.named(mutants), reason)
    entries = "1 entry" if len(added) == 1 else f"{len(added)} entries"
    click.echo(f"{entries} written to {shown_path(known.root, ACCEPTED)}")
    for content in added:
        click.echo(f"  {one_line(content.path)}: {one_line(content.before)} => {one_line(content.after)}")


def _shown(known: KnownResults, last: LastResult, history: Sequence[str]) -> Text:
    result = last.result
    text = missed(known.root, result, None, f"  {result.mutant.id}")
    if last.stale:
        text.append("stale: its lines have changed since; the diff is of the text before\n", style="yellow")
    for line in visible(mutant_diff(last.source, last.mutant)).splitlines():
        text.append(f"{line}\n", style="bold" if line.startswith(("---", "+++")) else SIGNS.get(line[:1], ""))
    text.append_text(evidence(result))
    text.append(f"history  {', '.join(history)}\n")
    return text


def _history(kept: Sequence[Report], last: LastResult) -> Iterator[str]:
    """The status in each kept run that has tested the mutant, newest first."""
    path = last.mutant.path
    for report in kept:
        file = report["files"].get(path)
        if file is None:
            continue
        index = ContentIndex(SourceText(file["source"]))
        for entry in entries({"files": {path: file}}):
            if entry.result.status is Status.PENDING:
                continue
            if entry.result.mutant.mutator == last.mutant.mutator and index.of(entry.result.mutant) == last.content:
                started = report.get("config", {}).get(STARTED)
                yield f"{entry.result.status.value} ({started})" if started else entry.result.status.value
                break

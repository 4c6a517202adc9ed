"""`msp-bridge diff` and `trend`: what has changed between two kept runs, or two reports, and over all kept runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from msp_bridge.cli.known import PROJECT_OPTIONS, known_results
from msp_bridge.cli.merge import read_reports
from msp_bridge.cli.options import with_options
from msp_bridge.errors import CommandLineError, ConfigurationError
from msp_bridge.last_results import KnownResults
from msp_bridge.reports.comparison import Comparison
from msp_bridge.reports.kept import STARTED, WHOLE
from msp_bridge.reports.results import Score
from msp_bridge.reports.standard import Report, ReportedMutant, entries
from msp_bridge.reports.terminal import missed
from msp_bridge.source import SourceText

BADGE = "Write the last score there as JSON for a shields.io endpoint badge."
COLOURS = ((80, "brightgreen"), (60, "yellow"), (0, "red"))  # from this score on
BAR = 2.5  # percent of a character


@click.command("diff", context_settings={"show_default": True})
@click.argument("old", default="2", metavar="[OLD]")
@click.argument("new", default="1", metavar="[NEW]")
@click.option("--markdown", is_flag=True, help="Print Markdown, as for a comment on a pull request.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_options(PROJECT_OPTIONS)
def command(old: str, new: str, markdown: bool, as_json: bool, **values: Any) -> None:
    """Show what has changed between two runs: mutants that newly survive, that are newly killed, and the score.

    OLD and NEW are kept runs (1 is the last one, 2 the one before) or JSON reports, as of `run --json`. Without them,
    the last run is compared with the one before. A mutant is found again by its code, also in another line.

    \b
    Exit codes; stderr has the reason:
      0    done
      2    there is no such run, or a file is no report
    """
    known = known_results(values)
    reports = [_report(known, name) for name in (old, new)]
    comparison = Comparison.of(*reports)
    if as_json:
        click.echo(json.dumps(comparison.json(), indent=2))
    elif markdown:
        click.echo(comparison.markdown(), nl=False)
    else:
        _print(known.root, comparison, reports[1])


@click.command("trend")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--badge", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help=BADGE)
@with_options(PROJECT_OPTIONS)
def trend(as_json: bool, badge: Path | None, **values: Any) -> None:
    """Show the mutation score of each kept run of the whole project, the oldest first.

    \b
    Exit codes; stderr has the reason:
      0    done
      2    no run of the whole project is kept, or the badge can't be written
    """
    known = known_results(values)
    points = [_point(known, report) for report in known.kept.each() if report.get("config", {}).get(WHOLE) is True]
    if not points:
        raise CommandLineError("no run of the whole project is kept", "`msp-bridge run` without PATHS tests it")
    if badge is not None:
        score = points[0]["score"]
        colour = next(name for least, name in COLOURS if (score or 0) >= least)
        content = {"schemaVersion": 1, "label": "mutation score", "color": colour}
        try:
            badge.write_text(json.dumps({**content, "message": "-" if score is None else f"{score:.0f} %"}) + "\n")
        except OSError as error:
            raise ConfigurationError(f"can't write {badge}: {error.strerror}") from None
    points.reverse()
    if as_json:
        click.echo(json.dumps(points, indent=2))
    else:
        for point in points:
            bar = "#" * round((point["score"] or 0) / BAR)
            click.echo(f"{point['started']}  {point['text']:>7}  {point['undetected']:>5} missed  {bar}".rstrip())


def _point(known: KnownResults, report: Report) -> dict[str, Any]:
    score = Score.of(entry.result for entry in entries(known.accepted.judged_report(report)))
    counts = {"detected": score.detected, "undetected": score.undetected, "accepted": score.accepted}
    return {"started": report["config"].get(STARTED), "score": score.percent, "text": score.text, **counts}


def _report(known: KnownResults, name: str) -> Report:
    report = known.kept.number(int(name)) if name.isdecimal() else read_reports([Path(name)])[0].report
    return known.accepted.judged_report(report)


def _print(root: Path, comparison: Comparison, report: Report) -> None:
    console = Console(highlight=False, markup=False)

    def show(entry: ReportedMutant) -> None:
        mutant = entry.result.mutant
        source = SourceText(report["files"][mutant.path]["source"])
        console.print(missed(root, entry.result, source, f"  {mutant.id}"), soft_wrap=True)

    for entry in (*comparison.killed, *comparison.survived):
        show(entry)
    console.print(comparison.title, soft_wrap=True)

"""`msp-bridge diff`, `trend` and `merge`: what differs between two runs, all scores, one report of several."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from msp_bridge.cli import Exit, show
from msp_bridge.cli.known import PROJECT_OPTIONS, known_results
from msp_bridge.cli.options import with_options
from msp_bridge.cli.outputs import Outputs, output_options
from msp_bridge.errors import CommandLineError, ConfigurationError
from msp_bridge.jsonrpc.messages import NotJson, parse
from msp_bridge.last_results import KnownResults
from msp_bridge.model import Status
from msp_bridge.reports.accepted import AcceptedSurvivors
from msp_bridge.reports.comparison import Comparison
from msp_bridge.reports.kept import is_complete
from msp_bridge.reports.merging import NamedReport, Unmergeable, merged
from msp_bridge.reports.results import Score
from msp_bridge.reports.standard import Report, entries, invalid
from msp_bridge.reports.terminal import missed, summary
from msp_bridge.reports.trend import TrendPoint, badge_json, badge_svg, diagram
from msp_bridge.source import SourceText
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.detection import project_root
from msp_bridge.writing import writing_to

PICTURE = click.Path(dir_okay=False, path_type=Path)
BADGE = "Write the last score there: an SVG picture when FILE ends with .svg, else JSON for a shields.io endpoint."


@click.command("diff", context_settings={"show_default": True})
@click.argument("old", default="2", metavar="[OLD]")
@click.argument("new", default="1", metavar="[NEW]")
@click.option("--markdown", is_flag=True, help="Print Markdown, as for a comment on a pull request.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_options(PROJECT_OPTIONS)
def command(old: str, new: str, markdown: bool, as_json: bool, **values: Any) -> None:
    """Show what has changed between two runs: mutants that newly survive, that are newly killed, and the score.

    OLD and NEW are kept runs (1 is the last one, 2 the one before) or JSON reports, as of `run --json`. Without them,
    the last run is compared with the one before. A run of some mutants stands for all results as they were when it
    ended. A mutant is found again by its code, also in another line.

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
@click.option("--svg", type=PICTURE, metavar="FILE", help="Write the scores there as a diagram.")
@click.option("--badge", type=PICTURE, metavar="FILE", help=BADGE)
@with_options(PROJECT_OPTIONS)
def trend(as_json: bool, svg: Path | None, badge: Path | None, **values: Any) -> None:
    """Show the mutation score of each kept run of the whole project, the oldest first, with its date and commit.

    A run that has ended before its last mutant is left out. A `+` after a commit says that files differed from it.

    \b
    Exit codes; stderr has the reason:
      0    done
      2    no run of the whole project is kept, or a file can't be written
    """
    known = known_results(values)
    reports = filter(is_complete, known.kept.each())
    points = [TrendPoint.of(known.accepted.judged_report(report)) for report in reports]
    points.reverse()
    if not points:
        raise CommandLineError("no run of the whole project is kept", "`msp-bridge run` without PATHS tests it")
    if svg is not None:
        with writing_to(svg):
            svg.write_text(diagram(points), "utf-8")
    if badge is not None:
        with writing_to(badge):
            form = badge_svg if badge.suffix.lower() == ".svg" else badge_json
            badge.write_text(form(points[-1].score), "utf-8")
    if as_json:
        click.echo(json.dumps([point.json() for point in points], indent=2))
    else:
        click.echo("\n".join(point.text for point in points))


@click.command("merge", context_settings={"show_default": True})
@click.argument("files", nargs=-1, required=True, metavar="REPORT…", type=click.Path(dir_okay=False, path_type=Path))
@output_options
@click.pass_context
def merge(context: click.Context, /, files: tuple[Path, ...], **values: Any) -> None:
    """Make one report of several, as of the shards of a CI job.

    REPORTs are files in the standard format, as `msp-bridge run --json` writes them, on the same sources. A mutant
    that several of them have counts once: killed, if one of them killed it. When the report of a shard is missing,
    nothing is written.

    The threshold and the accepted survivors are those of the project in the current directory, where none is given.

    \b
    Exit codes; stderr has the reason:
      0    done
      1    the merged mutation score is below the threshold, or a survivor is
           not accepted (--no-new-survivors)
      2    the command line or the configuration is wrong, or the reports can't
           be read, merged, written or uploaded
      130  interrupted
    """
    root = project_root(Path.cwd(), Configuration())
    outputs = Outputs.of(values, root).with_defaults(root)
    try:
        report = AcceptedSurvivors.of(root).judged_report(merged(read_reports(files)))
    except Unmergeable as error:
        raise ConfigurationError(f"can't merge these reports: {error}") from None
    score = Score.of(entry.result for entry in entries(report))
    Console(highlight=False, markup=False, stderr=outputs.uses_stdout).print(summary(score))
    unwritten = [*outputs.write(report), *outputs.upload(report)]
    show(unwritten)
    if pending := score.counts[Status.PENDING]:
        are, their = ("mutant is", "its") if pending == 1 else ("mutants are", "their")
        click.echo(f"msp-bridge: {pending} {are} Pending: a run was interrupted before {their} turn", err=True)
    code = Exit.USAGE if unwritten else Exit.FINE
    if not outputs.reached(score):
        code = code or Exit.BELOW_THRESHOLD
    context.exit(code)


def read_reports(files: Sequence[Path]) -> list[NamedReport]:
    """The reports in `files`. Raises CommandLineError for a missing one, ConfigurationError for what is no report."""
    values = []
    for file in files:
        try:
            values.append(parse(file.read_bytes()))
        except (FileNotFoundError, NotADirectoryError):
            raise CommandLineError(f"there is no file {file}") from None
        except OSError as error:
            raise ConfigurationError(f"can't read {file}: {error.strerror}") from None
        except NotJson as error:
            raise ConfigurationError(f"{file} is not JSON: {error}") from None
    for file, wrong in zip(files, invalid(values), strict=True):
        if wrong is not None:
            raise ConfigurationError(f"{file} is no mutation testing report: {wrong}")
    return [NamedReport(str(file), value) for file, value in zip(files, values, strict=True)]


def _report(known: KnownResults, name: str) -> Report:
    report = known.kept.as_of(int(name)) if name.isdecimal() else read_reports([Path(name)])[0].report
    return known.accepted.judged_report(report)


def _print(root: Path, comparison: Comparison, report: Report) -> None:
    console = Console(highlight=False, markup=False)
    for entry in (*comparison.killed, *comparison.survived):
        mutant = entry.result.mutant
        source = SourceText(report["files"][mutant.path]["source"])
        console.print(missed(root, entry.result, source, f"  {mutant.id}"), soft_wrap=True)
    console.print(comparison.title, soft_wrap=True)

"""`msp-bridge merge`: makes one report of several, as of the shards of a CI job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from msp_bridge.cli import Exit, show
from msp_bridge.cli.outputs import Outputs, output_options
from msp_bridge.errors import CommandLineError, ConfigurationError
from msp_bridge.jsonrpc.messages import NotJson, parse
from msp_bridge.model import Status
from msp_bridge.reports.accepted import AcceptedSurvivors
from msp_bridge.reports.merging import NamedReport, Unmergeable, merged
from msp_bridge.reports.results import Score
from msp_bridge.reports.standard import entries, invalid
from msp_bridge.reports.terminal import summary
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.detection import project_root


@click.command("merge", context_settings={"show_default": True})
@click.argument("files", nargs=-1, required=True, metavar="REPORT…", type=click.Path(dir_okay=False, path_type=Path))
@output_options
@click.pass_context
def command(context: click.Context, /, files: tuple[Path, ...], **values: Any) -> None:
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

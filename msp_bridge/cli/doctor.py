"""`msp-bridge doctor`: what was found, what is wrong, and the command or setting that fixes it."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from typing import Any

import click
from attrs import asdict
from rich.console import Console
from rich.text import Text

from msp_bridge.adapter import Finding
from msp_bridge.cli.options import CLUSTER, Options, bridge_options, command_with, typed_in, with_options
from msp_bridge.phases import heard_by
from msp_bridge.reports.terminal import PhaseLines
from msp_bridge.text import one_line, visible
from msp_bridge.workspace.diagnosis import diagnose, next_command


@click.command("doctor", context_settings={"show_default": True})
@click.option("--json", "as_json", is_flag=True, help='Print JSON: {"good": …, "next": …, "findings": [{"good", …}]}.')
@click.option(
    "--run",
    is_flag=True,
    help="Test one mutant with each tool, and look for unsteady tests: this runs them several times.",
)
@with_options([CLUSTER])
@bridge_options
@click.pass_context
def command(context: click.Context, /, *, as_json: bool, run: bool, **values: Any) -> None:
    """Show what was found (tool, version, interpreter, configuration, tests), what is wrong, and how to fix it.

    The last line has the command to type next: `msp-bridge run` when all is well.
    With --cluster, each worker of that cluster has a line, too: whether it can test this project.

    \b
    Exit codes:
      0    all is well
      1    something is wrong
      2    the command line is wrong, or names what isn't there
      130  interrupted
    """
    options = Options.of_command(values, "error")
    console = Console(highlight=False)
    findings = diagnose(options.root, options.configuration, options.named, run=run)
    with contextlib.nullcontext() if options.quiet else heard_by(PhaseLines().show):
        shown = asyncio.run(_shown(findings, None if as_json else console, only_wrong=options.quiet))
    wrong = [finding for finding in shown if not finding.good]
    cure = next_command(wrong)
    to_type = command_with(values, "run") if not wrong else cure and typed_in(options.root, cure)
    if as_json:
        click.echo(json.dumps({"good": not wrong, "next": to_type, "findings": list(map(asdict, shown))}, indent=2))
    elif wrong or not options.quiet:
        by_hand = f"{command_with(values, 'doctor')}, when this is fixed: {wrong[0].subject}" if wrong else ""
        click.echo(f"Next: {one_line(to_type or by_hand)}")
    if wrong:
        context.exit(1)


async def _shown(
    findings: AsyncGenerator[Finding, None], console: Console | None, *, only_wrong: bool
) -> list[Finding]:
    """All findings, each printed on the console, if there is one, as soon as it is known."""
    shown = []
    async with contextlib.aclosing(findings) as found:
        async for finding in found:
            shown.append(finding)
            if console is not None and not (finding.good and only_wrong):
                console.print(_line(finding), soft_wrap=True)
    return shown


def _line(finding: Finding) -> Text:
    text = Text("ok     " if finding.good else "wrong  ", style="green" if finding.good else "bold red")
    text.append(f"{finding.subject:<15} ", style="bold")
    text.append(visible(finding.text), style="default")
    if finding.remedy is not None:
        indent = " " * 23
        for number, line in enumerate(visible(finding.remedy).splitlines()):
            text.append(f"\n{indent}{'-> ' if number == 0 else '   '}{line}", style="cyan")
    return text

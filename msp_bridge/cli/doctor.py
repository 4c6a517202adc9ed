"""`msp-bridge doctor`: what was found, what is wrong, and the exact command that mends it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from msp_bridge.adapter import Finding
from msp_bridge.cli.options import Options, bridge_options
from msp_bridge.workspace.diagnosis import diagnose


@click.command("doctor", context_settings={"show_default": True})
@bridge_options
@click.pass_context
def command(context: click.Context, /, **values: Any) -> None:
    """Say what was found (tool, version, interpreter, configuration, tests), what is wrong, and how to mend it.

    Exit codes: 0 all is well; 1 something is wrong; 2 the command line is wrong, or names what isn't there.
    """
    options = Options.of(values)
    options.check()
    options.start_logging("error")
    console = Console(highlight=False)
    findings = diagnose(options.root, options.configuration, options.named)
    if not asyncio.run(_all_good(findings, console)):
        context.exit(1)


async def _all_good(findings: AsyncGenerator[Finding, None], console: Console) -> bool:
    good = True
    async with contextlib.aclosing(findings) as found:
        async for finding in found:
            console.print(_line(finding), soft_wrap=True)
            good = good and finding.good
    return good


def _line(finding: Finding) -> Text:
    text = Text("ok     " if finding.good else "wrong  ", style="green" if finding.good else "bold red")
    text.append(f"{finding.subject:<15} ", style="bold")
    text.append(finding.text, style="default")
    if finding.remedy is not None:
        indent = " " * 23
        for number, line in enumerate(finding.remedy.splitlines()):
            text.append(f"\n{indent}{'-> ' if number == 0 else '   '}{line}", style="cyan")
    return text

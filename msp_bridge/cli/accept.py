"""`msp-bridge accept`: writes survivors that no test can or should kill into the project's file of accepted ones."""

from __future__ import annotations

from typing import Any

import click

from msp_bridge.cli.known import PROJECT_OPTIONS, known_results
from msp_bridge.cli.options import with_options
from msp_bridge.errors import CommandLineError
from msp_bridge.isolation.left_out import ACCEPTED
from msp_bridge.reports.terminal import shown_path
from msp_bridge.text import one_line


@click.command("accept")
@click.argument("mutants", nargs=-1, metavar="[ID|FILE:LINE[:COL]]…")
@click.option("--reason", required=True, help="Why no test can or should kill them, in one sentence.")
@click.option("--all", "every", is_flag=True, help="Accept every survivor of the last results.")
@with_options(PROJECT_OPTIONS)
def command(mutants: tuple[str, ...], reason: str, every: bool, **values: Any) -> None:
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

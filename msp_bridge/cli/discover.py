"""`msp-bridge discover`: lists mutants without testing them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import click

from msp_bridge.cli.options import Options, bridge_options
from msp_bridge.cli.targets import selection_of
from msp_bridge.counts import counted_mutants
from msp_bridge.dialects.msp import Msp
from msp_bridge.errors import PartlyFailed
from msp_bridge.model import Mutant
from msp_bridge.workspace.selection import Selection
from msp_bridge.workspace.workspace import Workspace

UNBOUNDED = 10_000  # columns of a file or pipe: whoever reads it wants all of a path


@click.command("discover", context_settings={"show_default": True})
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATHS]…")
@click.option("--json", "as_json", is_flag=True, help="Print what MSP's `discover` answers instead of a table.")
@bridge_options
def command(paths: tuple[str, ...], as_json: bool, **values: Any) -> None:
    """List mutants without testing them.

    PATHS are files, directories, or lines of files (`cart.py:12`, `cart.py:10-20`); without any, the whole project.
    """
    options = Options.of(values)
    options.check()
    options.start_logging("warning")
    mutants: list[Mutant] = []
    failure: PartlyFailed | None = None
    try:
        asyncio.run(_discover(options, selection_of(options.root, paths), mutants))
    except PartlyFailed as error:
        failure = error
    mutants.sort(key=lambda mutant: mutant.path)  # several tools' files come in any order
    if as_json:
        dialect = Msp()
        answer = dialect.files((mutant.path, dialect.discovered(mutant)) for mutant in mutants)
        click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        _print_table(mutants)
    if failure is not None:
        raise failure


async def _discover(options: Options, selection: Selection, found: list[Mutant]) -> None:
    """Appends to `found`, so that a broken project doesn't hide what the others have."""
    async with contextlib.aclosing(Workspace.open(options.root, options.configuration, options.named)) as workspace:
        async with contextlib.aclosing(workspace.discover(selection)) as mutants:
            async for mutant in mutants:
                found.append(mutant)  # noqa: PERF401  (a comprehension would lose them in a failure)


def _print_table(mutants: list[Mutant]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("Location", "Mutator", "Replacement", box=None, padding=(0, 2, 0, 0))
    for mutant in mutants:
        start = mutant.location.start
        first, *more = mutant.replacement.splitlines() or [""]
        table.add_row(
            f"{mutant.path}:{start.line}:{start.column}", mutant.mutator, first.strip() + (" …" if more else "")
        )
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console.width = UNBOUNDED
    if mutants:
        console.print(table)
    console.print(counted_mutants(mutants))

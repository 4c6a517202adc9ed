"""`msp-bridge cache`: what the bridge keeps for each project outside of it, and its removal."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from msp_bridge.cli.options import Choice
from msp_bridge.environment.cache import cache_home
from msp_bridge.errors import ConfigurationError
from msp_bridge.text import one_line
from msp_bridge.toolkit.slot import size_of


@click.command("cache")
@click.argument("action", type=Choice(["show", "clear"]), default="show")
def command(action: str) -> None:
    """Show what is cached for each project, or clear it.

    These are private copies, what was measured, generated mutants, and the results of the last runs. The cache is in
    your user cache directory, or in $MSP_BRIDGE_CACHE. Clearing it loses those results, and time; don't clear it while
    the bridge runs.

    \b
    Exit codes; stderr has the reason:
      0    done
      2    the command line is wrong, or the cache can't be read or cleared
    """
    home = cache_home()
    entries = [(entry, size_of(entry)) for entry in sorted(_entries(home))]
    if action == "clear":
        for entry, _ in entries:
            try:
                shutil.rmtree(entry)
            except OSError as error:
                raise ConfigurationError(f"can't remove {error.filename or entry}: {error.strerror}") from None
    else:
        table = Table("Project", "Size", "Last used", box=None, padding=(0, 2, 0, 0))
        for entry, size in entries:
            used = time.strftime("%Y-%m-%d", time.localtime(entry.stat().st_mtime))
            table.add_row(one_line(entry.name), decimal(size), used)
        if entries:
            Console(highlight=False, markup=False).print(table)
    total = decimal(sum(size for _, size in entries))
    click.echo(f"{total} {'cleared from' if action == 'clear' else 'in'} {home}")


def _entries(home: Path) -> Iterator[Path]:
    try:
        yield from (entry for entry in home.iterdir() if entry.is_dir() and not entry.is_symlink())
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigurationError(f"can't read {home}: {error.strerror}") from None

"""`msp-bridge browse`: the last results in a terminal program, which needs the package `textual`."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from msp_bridge.cli import Exit
from msp_bridge.cli.known import MUTATOR, STATUS
from msp_bridge.cli.options import OPTIONS, Options, with_options
from msp_bridge.errors import CommandLineError
from msp_bridge.model import Status
from msp_bridge.toolkit.install import of_extra

if TYPE_CHECKING:
    from msp_bridge.browse.loading import ResultsOnDisk
    from msp_bridge.browse.results_screen import Browser
    from msp_bridge.reports.kept import LastResult


@click.command("browse", context_settings={"show_default": True})
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATHS]…")
@with_options([STATUS, MUTATOR])
@with_options([option for option in OPTIONS if option.name in ("root", "adapter", "config", "python", "jobs")])
@click.pass_context
def command(
    context: click.Context,
    /,
    paths: tuple[str, ...],
    status: frozenset[Status] | None,
    mutator: str | None,
    **values: Any,
) -> None:
    """Work through the last results in the terminal, by keys alone.

    Files are listed with their scores, the worst first; below each are its mutants, the survivors first. The mutant
    under the cursor is shown in its source, with its tests and its reason. One whose lines have changed since is marked
    stale. What is tested again is shown as it comes; so is a run in another terminal, and an edit. PATHS are
    those of `run`; --status says what is shown first.

    \b
    Keys; ? shows all of them:
      up, down, n, p    move; to the next mutant, and the one before
      t, f, T, x        test the mutant, its file, or all that is shown; stop
      e                 open the file at the mutant in $EDITOR
      a                 accept the survivor, with a reason
      v                 the whole source, with the change
      s, /              choose a status; search
      y                 copy the id, for other commands
      q                 end

    \b
    Exit codes; stderr has the reason:
      0    done
      2    the command line is wrong, no run is kept, this is no terminal, or
           textual is not installed
      130  ended by a signal
    """
    with of_extra("browse", "`browse` needs textual"):
        from msp_bridge.browse.results_screen import Browser
    from msp_bridge.browse.loading import ResultsOnDisk

    options = Options.of(values, search=True)
    options.check()
    disk = ResultsOnDisk(options.root, paths, mutator)
    results = disk.load()
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandLineError("`browse` needs a terminal", "`msp-bridge results` prints the last results anywhere")
    context.exit(asyncio.run(_browse(Browser, options, disk, results, status)))


async def _browse(
    browser: type[Browser],
    options: Options,
    disk: ResultsOnDisk,
    results: Sequence[LastResult],
    status: frozenset[Status] | None,
) -> int:
    from msp_bridge.browse.listing import Filter
    from msp_bridge.browse.retesting import Retesting

    async with contextlib.aclosing(Retesting(options.root, options.open_workspace)) as retesting:
        program = browser(disk, results, retesting, Filter() if status is None else Filter(status))
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, partial(program.exit, return_code=Exit.INTERRUPTED))
        await program.run_async()
        return program.return_code or Exit.FINE

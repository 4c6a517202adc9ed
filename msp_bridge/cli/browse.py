"""`msp-bridge browse`: the last results in a terminal program, which needs the package `textual`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from msp_bridge.cli.known import MUTATOR, PROJECT_OPTIONS, STATUS, known_results
from msp_bridge.cli.options import with_options
from msp_bridge.errors import CommandLineError, ConfigurationError
from msp_bridge.model import Status
from msp_bridge.toolkit.install import own_install

if TYPE_CHECKING:
    from msp_bridge.browse.app import Browser


@click.command("browse", context_settings={"show_default": True})
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATHS]…")
@with_options([STATUS, MUTATOR])
@with_options(PROJECT_OPTIONS)
def command(paths: tuple[str, ...], status: frozenset[Status] | None, mutator: str | None, **values: Any) -> None:
    """Look through the last results in the terminal, by keys alone.

    Files are listed with their scores, the worst first; below each are its mutants, the survivors first.
    The mutant under the cursor is shown in its source, with its tests and its reason. One whose lines have changed
    since is marked stale. PATHS are those of `run`; --status says what is shown first.

    \b
    Keys; ? shows all of them:
      up, down, n, p    move; to the next mutant, and the one before
      v                 the whole source, with the change
      s, /              choose a status; search
      y                 copy the id, for other commands
      q                 end

    \b
    Exit codes; stderr has the reason:
      0    done
      2    the command line is wrong, no run is kept, this is no terminal, or
           textual is not installed
    """
    browser = _browser_class()
    from msp_bridge.browse.listing import Filter, Listing

    known = known_results(values)
    listing = Listing(known.wanted(paths, mutator=mutator))
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandLineError("`browse` needs a terminal", "`msp-bridge results` prints the last results anywhere")
    browser(known.root, listing, Filter() if status is None else Filter(status)).run()


def _browser_class() -> type[Browser]:
    try:
        from msp_bridge.browse.app import Browser
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"`browse` needs a package that is not installed: {error.name}", own_install("msp-bridge[browse]")
        ) from None
    return Browser

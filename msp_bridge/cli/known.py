"""Options of the commands that show or use the last results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from msp_bridge.cli.options import OPTIONS, Options
from msp_bridge.errors import suggestion
from msp_bridge.last_results import KnownResults
from msp_bridge.model import Status

PROJECT_OPTIONS = [option for option in OPTIONS if option.name in ("root", "adapter", "config")]
NAMES = [str(option.name) for option in OPTIONS]
STATUSES = {status.value.casefold(): status for status in Status}


def statuses(_: click.Context, __: click.Parameter, value: str | None) -> frozenset[Status] | None:
    """The value of `--status`: names with commas between them."""
    if value is None:
        return None
    names = [name.strip() for name in value.split(",")]
    for name in names:
        if name.casefold() not in STATUSES:
            known = [status.value for status in Status]
            raise click.BadParameter(f"there is no status {name!r}; {suggestion(name.title(), known)}")
    return frozenset(STATUSES[name.casefold()] for name in names)


STATUS = click.Option(
    ["--status"], callback=statuses, metavar="STATUS,…", help="Only mutants with these statuses in the last results."
)
MUTATOR = click.Option(["--mutator"], metavar="NAME", help="Only mutants of the mutators with NAME in their name.")


def known_results(values: Mapping[str, Any]) -> KnownResults:
    """The last results of the project of a command, from click's values by name. Raises ConfigurationError."""
    return KnownResults(Options.of({**dict.fromkeys(NAMES), **values}, search=True).root)

"""Options of the commands that show or use the last results."""

from collections.abc import Mapping
from typing import Any

import click

from msp_bridge.cli.options import OPTIONS, Options
from msp_bridge.errors import ConfigurationError
from msp_bridge.last_results import KnownResults, statuses_named
from msp_bridge.model import Status

PROJECT_OPTIONS = [option for option in OPTIONS if option.name in ("root", "adapter", "config")]


def statuses(_: click.Context, __: click.Parameter, value: str | None) -> frozenset[Status] | None:
    """The value of `--status`: names with commas between them."""
    if value is None:
        return None
    try:
        return statuses_named([name.strip() for name in value.split(",")])
    except ConfigurationError as error:
        raise click.BadParameter(f"{error.problem}; {error.remedy}") from None


STATUS = click.Option(
    ["--status"], callback=statuses, metavar="STATUS,…", help="Only mutants with these statuses in the last results."
)
MUTATOR = click.Option(["--mutator"], metavar="NAME", help="Only mutants of the mutators with NAME in their name.")


def known_results(values: Mapping[str, Any]) -> KnownResults:
    """The last results of the project of a command, from click's values by name. Raises ConfigurationError."""
    return KnownResults(Options.of(values, search=True).root)

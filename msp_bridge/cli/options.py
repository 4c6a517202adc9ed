"""The options that every command has: which project, which tool, and how loud."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from attrs import frozen

from msp_bridge.errors import ConfigurationError
from msp_bridge.workspace.adapters import installed
from msp_bridge.workspace.configuration import Configuration, check_adapters

Command = TypeVar("Command", bound=Callable[..., Any])
LEVELS = ["debug", "info", "warning", "error"]

OPTIONS: list[click.Parameter] = [
    click.Option(
        ["--root"], type=click.Path(file_okay=False), help="The project's directory.  [default: where you are]"
    ),
    click.Option(["--adapter"], metavar="NAME", help="The tool to use, when a project has several: mutmut, …"),
    click.Option(["--config"], metavar="FILE", help="A configuration file: the tool's, or the bridge's own."),
    click.Option(
        ["--python"], metavar="PATH", help="The project's interpreter or virtual environment.  [default: found]"
    ),
    click.Option(
        ["--jobs"], type=click.IntRange(1), metavar="N", help="Mutants to test at once.  [default: one per core]"
    ),
    click.Option(["--log-level"], type=click.Choice(LEVELS), help="What to log on stderr."),
]


@frozen
class Options:
    """The values of these options."""

    root: Path
    named: str | None  # a configuration file
    configuration: Configuration
    log_level: str | None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Options:
        """From click's values by name. Raises ConfigurationError."""
        root = Path(os.path.abspath(values["root"] or "."))
        if not root.is_dir():
            raise ConfigurationError(f"--root: there is no directory {root}")
        return cls(
            root=root,
            named=values["config"] and os.path.abspath(values["config"]),
            configuration=Configuration(
                adapters=check_adapters((values["adapter"],), "--adapter", installed()) if values["adapter"] else None,
                python=Path(os.path.abspath(Path(values["python"]).expanduser())) if values["python"] else None,
                jobs=values["jobs"],
            ),
            log_level=values["log_level"],
        )


def bridge_options(command: Command) -> Command:
    """Gives a command these options, as one keyword argument each."""
    for option in reversed(OPTIONS):
        command.__dict__.setdefault("__click_params__", []).append(option)
    return command


def log_to_stderr(level: str) -> None:
    """One line for each event. stdout is never touched."""
    logging.basicConfig(
        stream=sys.stderr, level=level.upper(), format="msp-bridge: %(levelname)s: %(message)s", force=True
    )

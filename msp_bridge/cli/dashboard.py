"""The options for an upload to a Stryker dashboard, and where that is: from the options, the environment and git."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from msp_bridge.errors import CommandLineError
from msp_bridge.reports.dashboard import BASE, KEY_VARIABLE, URL_VARIABLE, Dashboard, ci_version, project_of
from msp_bridge.workspace.git import Revision, origin

OPTIONS: list[click.Parameter] = [
    click.Option(
        ["--dashboard"], is_flag=True, help=f"Upload the report to a Stryker dashboard, with the key in {KEY_VARIABLE}."
    ),
    click.Option(
        ["--dashboard-project"],
        metavar="PROJECT",
        help="The project's name there, such as github.com/OWNER/NAME.  [default: that of git's remote `origin`]",
    ),
    click.Option(
        ["--dashboard-version"],
        metavar="VERSION",
        help="The version that the report is of.  [default: that of the CI's job, or the branch]",
    ),
    click.Option(
        ["--dashboard-module"], metavar="MODULE", help="The module that the report is of, of several of a version."
    ),
]


def dashboard_of(values: Mapping[str, Any], root: Path) -> Dashboard | None:
    """The place for the report of the project at `root`, from click's values by name; None when none was asked for.

    Takes the key out of the environment, which the project's tests inherit. Raises ConfigurationError.
    """
    project, version, module = (values[f"dashboard_{name}"] for name in ("project", "version", "module"))
    if not values["dashboard"]:
        if project or version or module:
            raise click.UsageError("--dashboard-project, -version and -module are for --dashboard")
        return None
    key = os.environ.pop(KEY_VARIABLE, "").strip()
    version = version or ci_version(os.environ)
    if not (project and version):
        project, version = asyncio.run(_in_git(root, project, version))
    if not project:
        raise CommandLineError("no remote of git says which project this is", "name it with --dashboard-project")
    if not version:
        raise CommandLineError("no branch of git is checked out", "name the version with --dashboard-version")
    return Dashboard(os.environ.get(URL_VARIABLE) or BASE, key, project, version, module)


async def _in_git(root: Path, project: str | None, version: str | None) -> tuple[str | None, str | None]:
    """Fill in what is missing, as far as git says it."""
    if not project:
        project = project_of(await origin(root) or "")
    if not version and (revision := await Revision.of(root)) is not None:
        version = revision.branch
    return project, version

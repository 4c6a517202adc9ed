"""`msp-bridge init`: shows what a project lacks for its first run, and writes what the user has agreed to.

A file that is there is never written to: what it lacks is shown, to be added by hand. Nothing is installed: the command
for that is the last line.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from textwrap import indent
from typing import Any

import click
from attrs import frozen

from msp_bridge.cli.ci_jobs import proposals
from msp_bridge.cli.options import OPTIONS, Options, command_with, typed_in, with_options
from msp_bridge.environment.plugins import installed
from msp_bridge.errors import ConfigurationError
from msp_bridge.text import counted, one_line, visible
from msp_bridge.workspace.configuration import PYPROJECT, Configuration, load_configuration, settings_file
from msp_bridge.workspace.detection import detect_projects
from msp_bridge.workspace.setting_up import ToolSetup, tool_setups
from msp_bridge.writing import create, writing_to


@click.command("init")
@click.option("-y", "--yes", is_flag=True, help="Write without asking.")
@with_options([option for option in OPTIONS if option.name in ("root", "adapter", "python")])
def command(yes: bool, **values: Any) -> None:
    """Set a project up: propose a tool for each language that has tests, show what it needs, ask once, and write it.

    That is the configuration of a tool that needs one, and a workflow where .github/workflows is in use. No file that
    is there is changed: what to add to it is shown, as for .gitlab-ci.yml and .pre-commit-config.yaml. Without a
    terminal nothing is written but with --yes. Nothing is installed: the last line is the command to type next.

    \b
    Exit codes; stderr has the reason:
      0    done, or there is nothing to write
      2    there is no project with tests, its configuration is wrong, or a file
           can't be written
      130  interrupted
    """
    options = Options.of_command(values, "error")
    tools = tool_setups(detect_projects(options.root, options.configuration))
    if not tools:
        raise ConfigurationError(
            f"there is no project with tests in {options.root} for any of the tools",
            "name its directory with `--root`; `msp-bridge doctor` says what each tool needs",
        )
    plan = Plan(options.root, tools, options.configuration)
    plan.show()
    agreed = bool(plan.new) and (yes or (sys.stdin.isatty() and click.confirm(plan.question, default=True)))
    if agreed:
        plan.write()
    to_type = command_with(values, "init", "--yes") if plan.new and not agreed else plan.next_command(values)
    click.echo(f"Next: {one_line(to_type)}")


@frozen
class Plan:
    """The files to write for `tools` in the project at `root`; `options` are the command line's settings."""

    root: Path
    tools: Sequence[ToolSetup]
    options: Configuration

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """The text of each file that is proposed, relative to the root; for one that exists, the entry to add."""
        found: dict[str, str] = {}
        configurations = (pair for one in self.tools for pair in one.texts.items())
        for path, text in (*configurations, *self._settings(), *proposals(self.root, self.tools)):
            found[path] = f"{found[path]}\n{text}" if path in found else text
        return found

    @cached_property
    def new(self) -> Mapping[str, str]:
        """The files that are not there, as they are written."""
        return {path: text for path, text in self.texts.items() if not os.path.lexists(self.root / path)}

    @property
    def question(self) -> str:
        """The one question to the user."""
        return f"Write {counted(len(self.new), 'file')}?"

    def show(self) -> None:
        """Print the tools and the texts."""
        width = max(len(one.name) for one in self.tools)
        for one in self.tools:
            place = f" in {one.folder}" if one.folder else ""
            click.echo(one_line(f"{one.name:<{width}}  {counted(one.files, 'file')}{place}: {_state(one)}"))
        for path, text in self.texts.items():
            heading = "to be written" if path in self.new else "exists and is left as it is; add:"
            click.echo(f"\n{one_line(path)} {heading}\n{visible(indent(text, '    '))}", nl=False)
        if self.texts:
            click.echo()

    def write(self) -> None:
        """Write the new files. Raises ConfigurationError for one that can't be written, or is there by now."""
        for path, text in self.new.items():
            with writing_to(self.root / path):
                create(self.root / path, text)
            click.echo(f"{one_line(path)} is written")

    def next_command(self, values: Mapping[str, Any]) -> str:
        """The command that installs what is lacking, or else the first run; with what is to be done by hand before."""
        install = dict.fromkeys(one.install for one in self.tools if one.install is not None)
        to_type = typed_in(self.root, " && ".join(install)) if install else command_with(values, "run")
        needed = {path for one in self.tools for path in one.texts} | {path for path, _ in self._settings()}
        by_hand = sorted(needed.difference(self.new))
        return f"{to_type}, when you have added what is shown to {' and '.join(by_hand)}" if by_hand else to_type

    def _settings(self) -> Iterator[tuple[str, str]]:
        """The bridge's own file of each folder that needs one, and what to write there."""
        tables: dict[str, list[tuple[str, Mapping[str, str]]]] = {}
        python = self.options.python
        if python is not None and load_configuration(self.root, None, installed()).python is None:
            within = python.is_relative_to(self.root)  # later commands would not find it
            tables[""] = [("", {"python": str(python.relative_to(self.root) if within else python)})]
        for one in self.tools:
            if one.setup.settings:
                tables.setdefault(one.folder, []).append((one.name, one.setup.settings))
        for folder, written in tables.items():
            name = settings_file(self.root / folder)
            above = "tool.msp-bridge" if name == PYPROJECT else ""
            yield f"{folder}{name}", "\n".join(_table(above, *each) for each in written)


def _table(above: str, name: str, settings: Mapping[str, str]) -> str:
    """The table `name`, or the one above it, as TOML, whose strings are like JSON's."""
    heading = ".".join(filter(None, (above, name)))
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in settings.items()]
    return "".join([*([f"[{heading}]\n"] if heading else []), *lines])


def _state(one: ToolSetup) -> str:
    lacking = [
        *(["a configuration"] if one.setup.files or one.setup.settings else []),
        *(["installing"] if one.setup.install else []),
    ]
    return f"needs {' and '.join(lacking)}" if lacking else "is set up"

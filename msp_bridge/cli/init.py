"""`msp-bridge init`: shows what a project lacks for its first run, and writes what the user has agreed to.

A file that is there is never written to: what it lacks is shown, to be added by hand. Nothing is installed: the command
for that is the last line.

The jobs of CI that it proposes, and the hook of pre-commit: docs/how-to/ci.md has more of both. Commands are written as
block scalars: no text of theirs can break the YAML.
"""

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

from msp_bridge import reading
from msp_bridge.cli.options import OPTIONS, Options, command_with, typed_in, with_options
from msp_bridge.environment.distributions import installed
from msp_bridge.errors import ConfigurationError
from msp_bridge.text import counted, one_line, visible
from msp_bridge.workspace.configuration import PYPROJECT, Configuration, load_configuration, settings_file
from msp_bridge.workspace.detection import detect_projects
from msp_bridge.workspace.diagnosis import ToolSetup, tool_setups
from msp_bridge.writing import create, writing_to

WORKFLOWS, GITLAB, PRE_COMMIT = ".github/workflows", ".gitlab-ci.yml", ".pre-commit-config.yaml"
WORKFLOW = f"{WORKFLOWS}/mutants.yml"
ACTIONS = {  # of GitHub, by toolchain; Rust is on its machines
    "node": ("actions/setup-node@v5", 'node-version: "22"'),
    "dotnet": ("actions/setup-dotnet@v5", 'dotnet-version: "10.0.x"'),
    "go": ("actions/setup-go@v6", 'go-version: "stable"'),
    "java": ("actions/setup-java@v5", 'java-version: "21"\n          distribution: "temurin"'),
}
IMAGES = {"python": "python:3.13", "node": "node:22", "rust": "rust:1", "go": "golang:1", "java": "maven:3"}
NO_IMAGE = "name-an-image-with-the-tools-of-the-project"
GITHUB_JOB = """\
name: mutation testing
on: pull_request

jobs:
  mutants:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
        with:
          fetch-depth: 0 # the history, for --since
      - uses: actions/setup-python@v6
        with:
          python-version: "3.13"
{actions}\
      - uses: actions/cache@v4
        with:
          path: ~/mutants.sqlite
          key: mutants-${{{{ github.run_id }}}} # a new one each time: a cache is never written again
          restore-keys: mutants-
{commands}\
      - run: pip install msp-bridge
      - run: >
          msp-bridge run --since origin/${{{{ github.base_ref }}}}
          --incremental --store ~/mutants.sqlite --threshold 80 --github
"""
ACTION = """\
      - uses: {action}
        with:
          {setting}
"""
GITLAB_JOB = """\
mutants of {name}:
  image: {image}
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
  variables:
    GIT_DEPTH: 0 # the history, for --since
  script:
{commands}\
    - >
      msp-bridge run --adapter {name} --since $CI_MERGE_REQUEST_DIFF_BASE_SHA
      --threshold 80 --gitlab quality.json
  artifacts:
    when: always
    reports:
      codequality: quality.json
"""
WITHOUT_PIP = (  # in an image of another language
    "apt-get update && apt-get install -y pipx",
    "pipx install msp-bridge && ln -s ~/.local/bin/msp-bridge /usr/local/bin/",
)
HOOK = """\
  - repo: local
    hooks:
      - id: msp-bridge # before a push: the mutants on the lines that you haven't pushed yet
        name: mutation testing of what has changed
        entry: msp-bridge run --since @{upstream} --threshold 80
        language: python
        additional_dependencies: [msp-bridge]
        pass_filenames: false
        always_run: true
        stages: [pre-push]
"""


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


def proposals(root: Path, tools: Sequence[ToolSetup]) -> Iterator[tuple[str, str]]:
    """A job for each CI that the project uses, and a hook where it uses pre-commit; none where one is there already.

    The path of a file, and its text: a new file, or an entry for one that the service has all of its jobs in.
    """
    workflows = sorted((root / WORKFLOWS).glob("*.y*ml"))
    if (root / WORKFLOWS).is_dir() and not any(map(_names_bridge, workflows)):
        yield WORKFLOW, github_job(tools)
    for name, text in ((GITLAB, gitlab_jobs(tools)), (PRE_COMMIT, HOOK)):
        if (root / name).is_file() and not _names_bridge(root / name):
            yield name, text


def github_job(tools: Sequence[ToolSetup]) -> str:
    """A workflow that tests what a pull request changes."""
    needed = dict.fromkeys(one.setup.toolchain for one in tools)
    known = (ACTIONS[name] for name in needed if name in ACTIONS)
    actions = (ACTION.format(action=action, setting=setting) for action, setting in known)
    commands = dict.fromkeys(command for one in tools for command in one.checkout)
    steps = "".join(f"      - run: |\n{indent(command, ' ' * 10)}\n" for command in commands)
    return GITHUB_JOB.format(actions="".join(actions), commands=steps)


def gitlab_jobs(tools: Sequence[ToolSetup]) -> str:
    """A job for each tool, as each needs an image of its language."""
    commands: dict[str, dict[str, None]] = {}
    toolchains = {one.name: one.setup.toolchain for one in tools}
    for one in tools:
        commands.setdefault(one.name, {}).update(dict.fromkeys(one.checkout))
    jobs = []
    for name, toolchain in toolchains.items():
        typed = (*commands[name], *(("pip install msp-bridge",) if toolchain == "python" else WITHOUT_PIP))
        lines = "".join(f"    - |\n{indent(command, ' ' * 6)}\n" for command in typed)
        jobs.append(GITLAB_JOB.format(name=name, image=IMAGES.get(toolchain, NO_IMAGE), commands=lines))
    return "\n".join(jobs)


def _names_bridge(file: Path) -> bool:
    return "msp-bridge" in reading.text_or_empty(file)

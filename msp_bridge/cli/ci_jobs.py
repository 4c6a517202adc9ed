"""Jobs of CI: `msp-bridge init` proposes one for the CI that is in use, and a hook of pre-commit.

docs/how-to/ci.md has more of both. Commands are written as block scalars: no text of theirs can break the YAML.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import indent

from msp_bridge import reading
from msp_bridge.workspace.setting_up import ToolSetup

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

"""What docs/how-to/ci.md and docs/reference/reports.md say to type does what they say."""

import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest
from support.command_line import command, environment, script
from test_run_since import TEXT, clean_environment, commit, git

from msp_bridge.cli.compare import merge as merge_command
from msp_bridge.cli.run import run as run_command

__all__ = ["clean_environment"]  # a fixture for every test

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
COMMAND = re.compile(r"msp-bridge (?:run|merge) .*?(?=\n *- |\n *artifacts:|\n\n)", re.DOTALL)
VARIABLES = {
    "${{ matrix.shard }}": "{shard}",
    "$CI_NODE_INDEX": "{shard}",
    "$CI_NODE_TOTAL": "4",
    "origin/${{ github.base_ref }}": "main",
    "$CI_MERGE_REQUEST_DIFF_BASE_SHA": "main",
}


@pytest.mark.parametrize("name", ["how-to/ci.md", "reference/reports.md"])
def test_every_option_exists(name: str) -> None:
    commands: list[click.Command] = [run_command, merge_command]
    ours = {option for command in commands for parameter in command.params for option in parameter.opts}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", (DOCS / name).read_text("utf-8")))
    assert named <= ours


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository on a branch that has changed something."""
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    script(root, surroundings={})
    (root / "msp-bridge.toml").write_text('adapter = "scripted"\n')
    commit(root, a=TEXT, b=TEXT)
    git(root, "checkout", "--quiet", "-b", "branch")
    commit(root, a=TEXT.replace("1", "1 + 1"))
    return root


def commands(block: int) -> list[str]:
    """Of a block of the page, with our words for what its service fills in."""
    found = "\0".join(COMMAND.findall(BLOCK.findall((DOCS / "how-to/ci.md").read_text("utf-8"))[block] + "\n\n"))
    for theirs, ours in VARIABLES.items():
        found = found.replace(theirs, ours)
    assert "$" not in found
    return found.split("\0")


@pytest.mark.parametrize("block", [1, 3], ids=["GitHub", "GitLab"])
def test_the_commands_of_the_examples_make_up_one_report(root: Path, block: int) -> None:
    run, merge = commands(block)
    for shard in ("1", "2", "3", "4"):
        assert typed(root, run.replace("{shard}", shard)).returncode == 0
    done = typed(root, merge)
    assert done.stderr.endswith("msp-bridge: the mutation score 33.3 % is below the threshold of 80 %\n")
    assert done.returncode == 1
    assert "a.py" in (root / "mutants.html").read_text()
    assert "b.py" not in (root / "mutants.html").read_text()


def test_the_first_example_tests_what_a_branch_has_changed_once(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    [run] = commands(0)
    first, second = typed(root, run), typed(root, run)
    assert "reused" not in first.stdout
    assert "reused" in second.stdout
    assert first.returncode == second.returncode == 1


def typed(root: Path, line: str) -> subprocess.CompletedProcess[str]:
    """`line` in a shell, for it has patterns of file names."""
    line = " ".join(line.split()).replace("msp-bridge", shlex.join(command()), 1)
    return subprocess.run(
        ["sh", "-c", line], cwd=root, env=environment(root), capture_output=True, text=True, timeout=60
    )

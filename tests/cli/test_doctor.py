"""`msp-bridge doctor` shows findings to people as lines, and to programs as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.scripted_trees import Tree

from msp_bridge.cli.doctor import command


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    tree = Tree(tmp_path / "tree")
    tree.project("")
    return tree


def doctor(tree: Tree, *arguments: str) -> Result:
    return CliRunner().invoke(command, ["--root", str(tree.root), "--adapter", "scripted", *arguments])


def test_all_is_well(tree: Tree) -> None:
    done = doctor(tree, "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (
        0,
        {
            "good": True,
            "findings": [
                {"good": True, "subject": "project", "text": str(tree.root), "remedy": None},
                {"good": True, "subject": "msp-bridge", "text": "configuration of the command line", "remedy": None},
                {"good": True, "subject": "script", "text": "found", "remedy": None},
            ],
        },
    )


def test_what_is_wrong_stands_beside_its_remedy(tree: Tree) -> None:
    tree.write("msp-bridge.toml", "jbos = 1\n")
    problem, remedy = "msp-bridge.toml: unknown key 'jbos'", "did you mean 'jobs'?"
    done = doctor(tree, "--json")
    wrong = json.loads(done.stdout)
    assert (done.exit_code, wrong["good"]) == (1, False)
    assert wrong["findings"][-1] == {"good": False, "subject": "msp-bridge", "text": problem, "remedy": remedy}
    done = doctor(tree)
    assert done.exit_code == 1
    assert done.stdout.splitlines()[-2:] == [f"wrong  msp-bridge      {problem}", f"{' ' * 23}-> {remedy}"]


def test_a_mutant_is_tested_on_request(tree: Tree) -> None:
    tree.write("a.py", "1")
    done = doctor(tree, "--run", "--json")
    last = json.loads(done.stdout)["findings"][-1]
    assert (done.exit_code, last["good"], last["subject"]) == (0, True, "run")
    assert last["text"].startswith("a.py:1:1 was tested within ")


def test_a_tool_that_can_test_no_mutant_is_wrong(tree: Tree) -> None:
    """Its own findings are all good: only a run shows it."""
    tree.project("", testing={"raises": ["ToolError", "the plugin of the test runner is missing", "install it"]})
    tree.write("a.py", "1")
    assert doctor(tree).exit_code == 0
    done = doctor(tree, "--run")
    assert done.exit_code == 1
    assert "wrong  run             the plugin of the test runner is missing\n" in done.stdout
    assert done.stdout.endswith("-> install it\n")

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

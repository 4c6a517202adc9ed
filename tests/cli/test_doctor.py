"""`msp-bridge doctor` shows findings to people as lines, and to programs as JSON."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.scripted_trees import Tree

from msp_bridge.adapter import Finding
from msp_bridge.cli.doctor import command
from msp_bridge.phases import BASELINE, report_phase


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
            "next": f"msp-bridge run --root {tree.root} --adapter scripted",
            "findings": [
                {"good": True, "subject": "project", "text": str(tree.root), "remedy": None},
                {"good": True, "subject": "msp-bridge", "text": "configuration of the command line", "remedy": None},
                {"good": True, "subject": "script", "text": "found", "remedy": None},
            ],
        },
    )
    shown = [line.split()[:2] for line in doctor(tree).stdout.splitlines()]
    assert shown == [["ok", "project"], ["ok", "msp-bridge"], ["ok", "script"], ["Next:", "msp-bridge"]]


def test_what_is_wrong_stands_beside_its_remedy(tree: Tree) -> None:
    tree.write("msp-bridge.toml", "jbos = 1\n")
    problem, remedy = "msp-bridge.toml: unknown key 'jbos'", "did you mean 'jobs'?"
    done = doctor(tree, "--json")
    wrong = json.loads(done.stdout)
    assert (done.exit_code, wrong["good"], wrong["next"]) == (1, False, None)
    assert wrong["findings"][-1] == {"good": False, "subject": "msp-bridge", "text": problem, "remedy": remedy}
    done = doctor(tree)
    assert done.exit_code == 1
    assert done.stdout.splitlines()[-3:] == [
        f"wrong  msp-bridge      {problem}",
        f"{' ' * 23}-> {remedy}",
        f"Next: msp-bridge doctor --root {tree.root} --adapter scripted, when this is fixed: msp-bridge",
    ]
    first, *rest = doctor(tree, "--quiet").stdout.splitlines()
    assert first.startswith("wrong")
    assert not [line for line in rest if line.startswith("ok")]


def test_a_wait_is_explained_on_stderr(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    async def diagnose(*_: object, **__: object) -> AsyncGenerator[Finding, None]:
        report_phase(BASELINE, 0, 9)
        report_phase(BASELINE, 3, 9, "t.py::test_b", begins=False)
        yield Finding(True, "tests", "9 tests")

    monkeypatch.setattr("msp_bridge.cli.doctor.diagnose", diagnose)
    said = [f"msp-bridge: {BASELINE} …", f"msp-bridge: {BASELINE}: 3 of 9; t.py::test_b takes long …"]
    assert doctor(tree).stderr.splitlines() == doctor(tree, "--json").stderr.splitlines() == said
    assert doctor(tree, "--quiet").stderr == ""


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
    assert "-> install it\n" in done.stdout


def last_line(*arguments: str) -> str:
    return CliRunner().invoke(command, arguments).stdout.splitlines()[-1]


def test_the_last_line_is_the_command_to_type_next(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write("a.py", "1")
    monkeypatch.chdir(tree.root)
    assert last_line() == "Next: msp-bridge run"
    assert CliRunner().invoke(command, ["-q"]).stdout == ""
    assert (
        last_line("--adapter", "cargo-mutants")
        == "Next: msp-bridge doctor --adapter cargo-mutants, when this is fixed: cargo-mutants"
    )


def test_without_a_tool_it_installs_the_one_that_most_files_are_for(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of mutmut and cosmic-ray, the one that needs no file besides. The tool is installed into the project."""
    (tree.root / "scripted.json").unlink()
    for name in ("a.py", "b.py", "one.rs", "uv.lock", ".venv/pyvenv.cfg"):
        tree.write(name)
    tree.write(".venv/bin/python").chmod(0o755)
    to_type = "uv add --dev 'mutmut>=3.8.1,<4' 'pytest>=9.2'"
    monkeypatch.chdir(tree.root)
    assert last_line() == f"Next: {to_type}"
    monkeypatch.chdir(tree.root.parent)
    assert last_line("--root", "tree") == f"Next: cd {tree.root} && {to_type}"


def test_what_a_folder_lacks_is_installed_there(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write("web app/package.json", '{"devDependencies": {"@stryker-mutator/core": "9"}}')
    monkeypatch.chdir(tree.root)
    assert last_line() == "Next: (cd 'web app/' && npm install)"

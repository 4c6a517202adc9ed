"""`run --verify` tests mutants again in fresh processes, and says what differs."""

import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest
from support.command_line import bridge, command, environment, script
from support.files import written

FINDS_MINUS = "sh -c '! grep -q -e - a.py b.py'"  # kills what the scripted adapter says is killed, and nothing else


def test_verdicts_that_agree_are_counted(project: Path) -> None:
    done = bridge(project, "run", "--verify", "3", "--verify-command", FINDS_MINUS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "verified 3 mutants in fresh processes: 0 differ"
    assert done.stderr.splitlines()[-1] == "msp-bridge: testing mutants again in fresh processes …"


def test_verdicts_that_differ_are_shown_and_fail_the_run(project: Path) -> None:
    done = bridge(project, "run", "--verify", "9", "--verify-command", "true")
    assert done.returncode == 1
    shown = done.stdout.splitlines()[-3:]
    assert sorted(shown[:2]) == [
        "a.py:1:7 plus ('-'): Killed, but Survived in a fresh process (the tests pass)",
        "b.py:1:7 plus ('-'): Killed, but Survived in a fresh process (the tests pass)",
    ]
    assert shown[2] == "verified 4 mutants in fresh processes: 2 differ"
    assert "2 of 4 verdicts differ from those of a fresh process" in done.stderr


def test_an_interrupt_says_how_many_differ_so_far(project: Path) -> None:
    """Each of the four verdicts differs, and takes three goes of a fifth of a second."""
    tests = "grep -q '[2-]' a.py b.py && sleep 0.2; ! grep -q 2 a.py"
    argv = command("run", "--verify", "4", "--jobs", "1", "--verify-command", shlex.join(["sh", "-c", tests]))
    env = environment(project) | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen([*argv, "--adapter", "scripted"], cwd=project, env=env, stdout=-1, text=True) as running:
        assert running.stdout is not None
        while "in a fresh process" not in (line := running.stdout.readline()):
            assert line, "it ended"
        running.send_signal(signal.SIGINT)
        left = running.stdout.read()
    assert running.returncode == 130
    said = re.search(r"^scripted: testing mutants again in fresh processes: (\d) of 4; (\d) differ$", left, re.M)
    assert said is not None, left
    assert said[1] == said[2] == str(1 + left.count("in a fresh process"))


def test_a_tool_without_a_known_test_command_needs_one(project: Path) -> None:
    done = bridge(project, "run", "--verify", "1")
    assert done.returncode == 2
    assert "--verify-command" in done.stderr


def test_a_tool_whose_mutants_are_no_text_is_asked_itself(project: Path) -> None:
    script(project, fresh={"plus": "Timeout", "digit": "Survived"})
    done = bridge(project, "run", "--verify", "9", "--verify-command", "false")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-2:] == [
        "scripted: the tool itself says what is right, not --verify-command",
        "verified 4 mutants in fresh processes: 0 differ",
    ]
    assert "msp-bridge: asking the tool again …\n" in done.stderr
    script(project, fresh={"plus": "Survived"})
    done = bridge(project, "run", "--verify", "9")
    assert done.returncode == 1
    said = "Killed, but Survived in a fresh process (by the tool itself)"
    assert f"a.py:1:7 plus ('-'): {said}" in done.stdout
    assert "but Ignored in a fresh process (the tool does not list it)" in done.stdout


CHECKS = """from m import add


def test_add():
    assert add(2, 3) == 5


def test_red():
    assert add(2, 3) == 6
"""
M = """def add(a, b):
    return a + b


def unused(a):  # its mutants have no verdict before all tests are known
    return a + 1
"""
MUTMUT = """
[tool.mutmut]
source_paths = ["m.py"]
also_copy = ["checks.py"]
pytest_add_cli_args_test_selection = ["checks.py"]
"""
COSMIC_RAY = """
[cosmic-ray]
module-path = "m.py"
timeout = 60
test-command = "python -m pytest checks.py"
"""


@pytest.mark.parametrize(
    ("configuration", "content"),
    [("pyproject.toml", MUTMUT), ("cosmic-ray.toml", COSMIC_RAY)],
    ids=["mutmut", "cosmic-ray"],
)
def test_the_tests_are_those_that_the_tools_configuration_selects(
    tmp_path: Path, configuration: str, content: str
) -> None:
    """Without those that fail, as in the run; also in a folder of the workspace, where their names begin with it."""
    files = {
        f"library/{configuration}": content,
        "library/m.py": M,
        "library/checks.py": CHECKS,  # no name that pytest looks for
        "msp-bridge.toml": "[folders.library]\n",
        "library/test_other.py": "def test_other():\n    assert False, 'it is no test of this configuration'\n",
    }
    project = written(tmp_path / "project", files)
    argv = command("run", "--verify", "3")
    done = subprocess.run(argv, cwd=project, env=environment(project), capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert re.search(r"verified [1-3] mutants? in fresh processes: 0 differ", done.stdout), done.stdout
    assert "1 test fails without any mutant, and is left out: fix it first" in done.stderr


def test_tests_that_fail_without_a_mutant_verify_nothing(project: Path) -> None:
    done = bridge(project, "run", "--verify", "1", "--verify-command", "false")
    assert done.returncode == 3
    assert "`false` fails in a fresh copy" in done.stderr
    assert "or name, with --verify-command, a command in which they pass" in " ".join(done.stderr.split())
    test = "tests/test_not_there.py::test_it"
    done = bridge(project, "run", "--verify", "1", "--verify-command", f"python -m pytest -x {test}")
    said = " ".join(done.stderr.split())
    assert f"a command that leaves them out: python -m pytest -x {test} --deselect TEST" in said

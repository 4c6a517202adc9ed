"""`run --verify` tests mutants again in fresh processes, and says what differs."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import bridge, make_project, script

FINDS_MINUS = "sh -c '! grep -q -e - a.py b.py'"  # kills what the scripted adapter says is killed, and nothing else


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = make_project(tmp_path / "project")
    script(project)
    return project


def test_verdicts_that_agree_are_counted(project: Path) -> None:
    done = bridge(project, "run", "--verify", "3", "--verify-command", FINDS_MINUS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "verified 3 mutants in fresh processes: 0 differ"


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


def test_a_tool_without_a_known_test_command_needs_one(project: Path) -> None:
    done = bridge(project, "run", "--verify", "1")
    assert done.returncode == 2
    assert "--verify-command" in done.stderr


def test_tests_that_fail_without_a_mutant_verify_nothing(project: Path) -> None:
    done = bridge(project, "run", "--verify", "1", "--verify-command", "false")
    assert done.returncode == 3
    assert "`false` fails in a fresh copy" in done.stderr

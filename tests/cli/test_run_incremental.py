"""`run --incremental`: verdicts of earlier runs, marked as such; the reports have them as all others."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.command_line import bridge, make_project, script


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = make_project(tmp_path / "project")
    script(root, surroundings={})
    return root


def mutants(file: Path) -> list[dict[str, Any]]:
    report = json.loads(file.read_text())
    return [mutant for entry in report["files"].values() for mutant in entry["mutants"]]


def reused(project: Path, *arguments: str) -> str:
    """The line of the summary that says it; "" when nothing was reused."""
    done = bridge(project, "run", *arguments)
    assert done.returncode == 0, done.stderr
    return next((line for line in done.stdout.splitlines() if line.startswith("reused")), "")


def test_the_second_run_reuses_and_its_report_is_complete(project: Path, tmp_path: Path) -> None:
    reports = [tmp_path / "1.json", tmp_path / "2.json"]
    assert reused(project, "--incremental", "--json", str(reports[0])) == ""
    line = reused(project, "--incremental", "--json", str(reports[1]))
    assert line.split() == ["reused", "4", "(unchanged)"]
    first, second = map(mutants, reports)
    assert first == second
    assert len(second) == 4


def test_force_tests_every_mutant_and_keeps_the_verdicts(project: Path) -> None:
    assert reused(project, "--incremental", "--force") == ""
    assert reused(project, "--incremental", "--force") == ""
    assert "4" in reused(project, "--incremental")
    assert reused(project) == ""


def test_a_store_is_a_file_that_another_checkout_can_use(project: Path, tmp_path: Path) -> None:
    store = tmp_path / "store" / "verdicts.sqlite"
    assert reused(project, "--store", str(store)) == ""
    project.rename(tmp_path / "elsewhere")
    assert "4" in reused(tmp_path / "elsewhere", "--store", str(store))
    assert reused(tmp_path / "elsewhere", "--incremental") == ""


def test_a_store_in_the_project_is_refused(project: Path) -> None:
    done = bridge(project, "run", "--store", "verdicts.sqlite")
    assert done.returncode == 2
    assert "--store" in done.stderr
    assert not (project / "verdicts.sqlite").exists()


def test_only_some_lines_use_what_a_run_of_all_has_found(project: Path) -> None:
    assert reused(project, "--incremental") == ""
    assert "2" in reused(project, "--incremental", "a.py:1")


def test_the_setting_holds_for_run_too_and_a_wrong_one_is_refused(project: Path) -> None:
    (project / "msp-bridge.toml").write_text("incremental = true\n")
    assert reused(project) == ""
    assert "4" in reused(project)
    (project / "msp-bridge.toml").write_text('incremental = "yes"\n')
    done = bridge(project, "run")
    assert done.returncode == 2
    assert "incremental must be true or false" in done.stderr

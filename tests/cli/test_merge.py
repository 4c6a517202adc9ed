"""`msp-bridge merge` as a CI job sees it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.command_line import in_process
from support.viewers import SCHEMA

MUTANT = {
    "mutatorName": "plus",
    "replacement": "-",
    "location": {"start": {"line": 1, "column": 7}, "end": {"line": 1, "column": 8}},
}


def report(path: str, status: str, **changes: Any) -> str:
    file = {"language": "python", "source": "a = b + c\n", "mutants": [{"id": path, "status": status, **MUTANT}]}
    made = {"schemaVersion": "2", "thresholds": {"high": 80, "low": 60}, "files": {path: file}, **changes}
    jsonschema.validate(made, SCHEMA)
    return json.dumps(made)


def merge(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return in_process(directory, directory, "merge", *arguments)


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    directory = tmp_path / "reports"
    directory.mkdir()
    (directory / "1.json").write_text(report("a.py", "Killed"))
    (directory / "2.json").write_text(report("b.py", "Survived"))
    return directory


def test_it_shows_the_score_of_the_whole(reports: Path) -> None:
    done = merge(reports, "1.json", "2.json")
    assert done.returncode == 0, done.stderr
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["Killed", "1"],
        ["Survived", "1"],
        ["mutation", "score", "50.0", "%"],
    ]


def test_it_writes_every_form(reports: Path) -> None:
    done = merge(
        reports, "1.json", "2.json", "--json", "all.json", "--html", "all.html", "--junit", "all.xml", "--github"
    )
    assert done.returncode == 0, done.stderr
    made = json.loads((reports / "all.json").read_text())
    jsonschema.validate(made, SCHEMA)
    assert list(made["files"]) == ["a.py", "b.py"]
    assert "b.py" in (reports / "all.html").read_text()
    assert 'tests="2" failures="1"' in (reports / "all.xml").read_text()
    assert "::warning file=b.py," in done.stdout


@pytest.mark.parametrize(("threshold", "code"), [(("--threshold", "50"), 0), (("--threshold", "50.1"), 1), ((), 1)])
def test_it_fails_below_the_threshold_of_the_whole(reports: Path, threshold: tuple[str, ...], code: int) -> None:
    (reports / "msp-bridge.toml").write_text("threshold = 50.1\n")
    done = merge(reports, "1.json", "2.json", *threshold, "--json", "all.json")
    assert done.returncode == code
    assert (code == 1) == ("the mutation score 50.0 % is below the threshold of 50.1 %" in done.stderr)
    assert (reports / "all.json").exists()


def test_mutants_that_were_not_tested_are_counted(reports: Path) -> None:
    (reports / "3.json").write_text(report("c.py", "Pending"))
    done = merge(reports, "1.json", "3.json")
    assert done.returncode == 0
    assert done.stderr == "msp-bridge: 1 mutant is Pending: a run was interrupted before its turn\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "bad.json is not JSON: "),
        ("[]", "bad.json is no mutation testing report: the report must be object"),
        (report("a.py", "Killed").replace('"Killed"', '"Dead"'), "files.a.py.mutants[0].status must be one of"),
        (
            report("c.py", "Killed", config={"shard": {"number": 1, "of": 2, "of mutants": "x"}}),
            "can't merge these reports: the report of shard 2/2 is missing",
        ),
    ],
)
def test_what_can_not_be_merged_is_one_line_and_nothing_is_written(reports: Path, text: str, says: str) -> None:
    (reports / "bad.json").write_text(text)
    done = merge(reports, "1.json", "bad.json", "--json", "all.json")
    assert done.returncode == 2
    assert done.stderr.startswith("msp-bridge: ")
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert not (reports / "all.json").exists()


@pytest.mark.parametrize(
    ("name", "says"),
    [("gone.json", "there is no file gone.json"), ("x" * 300, f"can't read {'x' * 300}: File name too long")],
    ids=["not there", "can't be read"],
)
def test_a_file_that_can_not_be_had_is_one_line(reports: Path, name: str, says: str) -> None:
    done = merge(reports, name)
    assert (done.returncode, done.stderr) == (2, f"msp-bridge: {says}\n")


def test_without_a_report_the_command_line_is_wrong(reports: Path) -> None:
    assert merge(reports).returncode == 2


@pytest.mark.parametrize("shard", [{}, {"number": 1}, {"number": "1", "of": "2", "of mutants": 3}, [], "1/2"])
def test_another_tools_idea_of_a_shard_is_no_fault_of_ours(reports: Path, shard: Any) -> None:
    (reports / "other.json").write_text(report("c.py", "Killed", config={"shard": shard}))
    done = merge(reports, "1.json", "other.json")
    assert done.returncode == 0, done.stderr

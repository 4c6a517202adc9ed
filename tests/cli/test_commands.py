"""The commands as a person in a terminal, or a CI job, sees them."""

import json
import re
import signal
from pathlib import Path
from xml.etree import ElementTree as ET

import click
import jsonschema
import pytest
from support.command_line import GATED, bridge, in_process, interrupted, script
from support.viewers import SCHEMA

import msp_bridge
from msp_bridge.cli import COMMANDS
from msp_bridge.reports.dashboard import KEY_VARIABLE, URL_VARIABLE


def test_run_shows_each_survivor_as_a_diff_and_sums_up(project: Path) -> None:
    done = bridge(project, "run")
    assert done.returncode == 0, done.stderr
    assert "scripted: 4 mutants in 2 files" in done.stdout
    assert "Survived  a.py:1:9  digit\n    - x = y + 1\n    + x = y + 2\n" in done.stdout
    assert "Survived  a.py:2:5  digit\n    - z = 1\n    + z = 2\n" in done.stdout
    assert "b.py" not in done.stdout.split("4 mutants in 2 files")[1]  # what is killed is only counted
    *counts, time, following = [line.split() for line in done.stdout.splitlines()[-5:]]
    assert counts == [["Killed", "2"], ["Survived", "2"], ["mutation", "score", "50.0", "%"]]
    assert (time[0], following) == ("time", ["next:", "msp-bridge", "show", "a.py:1:9"])


def test_the_summary_has_the_files_in_which_most_is_missed(project: Path) -> None:
    rows = [line.split() for line in bridge(project, "run", "-q").stdout.splitlines()]
    assert rows[1:3] == [
        ["File", "Mutants", "Killed", "Survived", "No", "coverage", "Score"],
        ["a.py", "3", "1", "2", "0", "33.3", "%"],
    ]
    assert rows[3] == ["…", "1", "more", "file:", "--all", "shows", "every", "file"]
    assert "b.py" in bridge(project, "run", "-q", "--all").stdout


@pytest.mark.parametrize(
    ("paths", "count"),
    [
        (["b.py"], "1 mutant in 1 file"),
        (["a.py:2"], "1 mutant in 1 file"),
        (["a.py:1-2"], "3 mutants in 1 file"),
        (["."], "4 mutants in 2 files"),
        (["a.py", "b.py"], "4 mutants in 2 files"),
    ],
)
def test_run_takes_files_directories_and_lines(project: Path, paths: list[str], count: str) -> None:
    assert bridge(project, "run", *paths).stdout.startswith(f"scripted: {count}\n")


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (["a.py:3"], " in a.py:3"),
        (["--shard", "9/9"], " in part 9/9"),
        (["a.py:3", "--shard", "1/2"], " in part 1/2 in a.py:3"),
    ],
)
def test_run_says_where_there_are_no_mutants(project: Path, arguments: list[str], where: str) -> None:
    done = bridge(project, "run", *arguments)
    assert (done.returncode, done.stdout) == (0, f"scripted: no mutants{where}\n")


def test_run_without_any_mutant_names_the_doctor(project: Path) -> None:
    script(project, mutations=[])
    assert bridge(project, "run").stdout.endswith(
        ": no mutants; `msp-bridge doctor` shows where they were looked for\n"
    )


def test_run_fails_below_the_threshold_of_the_tool_where_no_other_is_set(project: Path) -> None:
    script(project, threshold=50.1)
    done = bridge(project, "run")
    assert done.returncode == 1
    assert "the mutation score 50.0 % is below the threshold of 50.1 %" in done.stderr
    assert bridge(project, "run", "--threshold", "50").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["a.py:77"], "a.py:77: the file has "),
        (["--json", "gone/report.json"], "there is no directory"),
        (["--html", "gone/report.html"], "there is no directory"),
        (["--junit", "gone/report.xml"], "there is no directory"),
        (["--shard", "3/2"], "'3/2' is not K/N"),
        (["--threshold", "101"], "--threshold"),
        (["--jobs", "0"], "--jobs"),
        (["--json", "-", "--sarif", "-"], "only one report can go to standard output"),
        (["--status", "survived"], "no run of this project is kept"),
        (["--dashboard-project", "p"], "are for --dashboard"),
    ],
)
def test_run_says_what_is_wrong_with_its_arguments(project: Path, arguments: list[str], text: str) -> None:
    done = bridge(project, "run", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr


@pytest.fixture
def three(project: Path) -> Path:
    """A tree with three projects; the tests of two fail."""
    (project / "scripted.json").unlink()
    for name, faults in {
        "api": {},
        "mail": {"raises": ["ToolError", "x"]},
        "web": {"raises": ["ToolError", "y"]},
    }.items():
        (project / name).mkdir()
        (project / name / "b.py").write_text("w = v + u\n")
        script(project / name, testing=faults)
    return project


def test_run_names_the_tools_that_have_a_part(three: Path) -> None:
    assert bridge(three, "run", "api").stdout.startswith("scripted in api/: 1 mutant in 1 file\n")
    assert bridge(three, "run", "b.py").stdout.startswith("scripted in api/, scripted in mail/, scripted in web/: no ")


def test_what_fails_in_several_projects_is_a_line_each(three: Path) -> None:
    done = bridge(three, "run")
    assert done.returncode == 3
    assert done.stderr == "msp-bridge: scripted in mail/: x\nmsp-bridge: scripted in web/: y\n"
    assert "Killed          1" in done.stdout


def test_failures_of_discovery_are_shown_also_when_no_test_runs(three: Path) -> None:
    script(three / "api", discovery={"raises": ["ToolError", "x"]})
    script(three / "mail", discovery={"raises": ["ToolError", "y"]})
    done = bridge(three, "run")
    assert done.returncode == 3
    lines = "msp-bridge: scripted in api/: x\nmsp-bridge: scripted in mail/: y\nmsp-bridge: scripted in web/: y\n"
    assert done.stderr == lines


def test_without_a_tool_the_error_names_the_doctor(project: Path) -> None:
    (project / "scripted.json").unlink()
    done = bridge(project, "run")
    assert done.returncode == 2
    assert done.stderr.startswith("msp-bridge: scripted is not set up in ")
    assert "msp-bridge doctor" in done.stderr


@pytest.mark.parametrize("name", ["run", "discover", "doctor", "editors"])
@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--root", "--root: there is no directory {}"),
        ("--config", "--config: there is no file {}"),
        ("--python", "--python: there is no interpreter {}"),
    ],
)
def test_an_option_that_names_nothing_is_a_usage_error(project: Path, name: str, option: str, message: str) -> None:
    editor = ["helix"] if name == "editors" else []
    done = bridge(project, name, *editor, option, "no/such")
    assert done.returncode == 2
    assert done.stderr == f"msp-bridge: {message.format(project / 'no/such')}\n"
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("number", "shell"),
    [
        (signal.SIGINT, []),
        (signal.SIGTERM, []),
        (signal.SIGTERM, ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"]),
    ],
    ids=["a person", "a CI system", "a script that has it in the background"],
)
def test_an_interrupted_run_sums_up_and_leaves_no_process(
    project: Path, tmp_path: Path, number: signal.Signals, shell: list[str]
) -> None:
    events = tmp_path / "events"
    events.mkdir()
    script(project, mutations=GATED, events=str(events), tool="hang")
    reports = ["--json", str(tmp_path / "report.json"), "--junit", str(tmp_path / "report.xml")]
    upload = ["--dashboard", "--dashboard-project", "p", "--dashboard-version", "v"]
    variables = {KEY_VARIABLE: "key", URL_VARIABLE: "http://127.0.0.1:1"}
    code, out, err = interrupted(project, number, "run", *reports, *upload, shell=shell, **variables)
    assert code == 130, err
    assert "interrupted; every process has been ended" in err
    assert "WARNING" not in err
    assert "dashboard" not in err, "nothing is uploaded"
    assert "Killed" in out
    assert "adapter closed" in (events / "log").read_text()
    report = json.loads((tmp_path / "report.json").read_text())
    jsonschema.validate(report, SCHEMA)
    pending = [
        fields for file in report["files"].values() for fields in file["mutants"] if fields["status"] == "Pending"
    ]
    assert [fields["statusReason"] for fields in pending] == ["not tested: the run ended before"] * 3
    suites = ET.parse(tmp_path / "report.xml").getroot()
    assert sum(int(suite.get("skipped", "0")) for suite in suites) == 3


def test_discover_lists_mutants(project: Path) -> None:
    done = bridge(project, "discover", "a.py")
    assert done.returncode == 0, done.stderr
    assert "a.py:1:7" in done.stdout
    assert done.stdout.rstrip().endswith("3 mutants in 1 file")


def test_discover_prints_what_the_protocol_answers(project: Path) -> None:
    answer = json.loads(bridge(project, "discover", "--json", "b.py").stdout)
    (mutant,) = answer["files"]["b.py"]["mutants"]
    assert mutant.pop("id").isdecimal()
    assert mutant == {
        "location": {"start": {"line": 1, "column": 7}, "end": {"line": 1, "column": 8}},
        "mutatorName": "plus",
        "replacement": "-",
    }


@pytest.mark.parametrize(
    "arguments", [["run", "--root", ""], ["run", "--html="], ["serve", "stdio", "--", "--config", ""]]
)
def test_the_empty_value_of_an_option_is_an_error(project: Path, arguments: list[str]) -> None:
    done = bridge(project, *arguments)
    assert done.returncode == 2
    assert re.search(r"the value of --\w+ is empty", done.stderr)


def test_the_version_is_the_packages(project: Path) -> None:
    done = in_process(project, project, "--version")
    assert done.stdout == f"msp-bridge, version {msp_bridge.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_fits_into_80_columns_and_has_its_exit_codes_and_where_there_is_more(
    name: str, tmp_path: Path
) -> None:
    done = in_process(tmp_path, tmp_path, name, "--help", COLUMNS="80")
    text = done.stdout
    assert done.returncode == 0
    assert re.match(rf"Usage: .+ {name} ", text)
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert re.search(r"^  Exit codes.*:\n    \d", text, re.MULTILINE)
    assert f"More: msp-bridge docs {COMMANDS[name][2]}\n" in text
    found = msp_bridge.cli.msp_bridge.get_command(click.Context(msp_bridge.cli.msp_bridge), name)
    assert found is not None
    shown = [option for option in found.params if isinstance(option, click.Option) and not option.hidden]
    assert [option.name for option in shown if not option.help] == []

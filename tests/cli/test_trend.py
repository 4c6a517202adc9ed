"""`trend`: the scores of kept runs with date and commit, as text, JSON, a diagram and a badge."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from support.command_line import bridge
from support.kept import KeptProject
from support.repositories import commit, git, isolate

from msp_bridge.errors import ConfigurationError
from msp_bridge.model import Status
from msp_bridge.reports.kept import CHANGED, COMMIT, STARTED
from msp_bridge.workspace.targets import Revision

KILLED, SURVIVED, IGNORED = Status.KILLED, Status.SURVIVED, Status.IGNORED
SVG = "{http://www.w3.org/2000/svg}"
COMMIT_1, COMMIT_2 = "0123456789" * 4, "abcdef0123" * 4


def keep(project: KeptProject, plus: Status, times: Status, **facts: Any) -> None:
    mutants = project.mutant("a.py", "+", "-"), project.mutant("a.py", "*", "/")
    project.keep(dict(zip(mutants, (plus, times), strict=True)), facts)


def test_the_trend_is_of_runs_of_the_whole_project(kept: KeptProject) -> None:
    plus, times = kept.mutant("a.py", "+", "-"), kept.mutant("a.py", "*", "/")
    assert "no run of the whole project is kept" in str(kept.call("trend").exception)
    kept.keep({plus: SURVIVED, times: KILLED})
    kept.keep({plus: SURVIVED}, whole=False)
    kept.keep({plus: KILLED, times: KILLED})
    points = json.loads(kept.call("trend", "--json", "--badge", "badge.json").output)
    assert [point["score"] for point in points] == [50.0, 100.0]
    badge = json.loads(Path("badge.json").read_text())
    assert (badge["message"], badge["color"]) == ("100 %", "brightgreen")
    assert " 50.0 %      1 missed  ####################\n" in kept.call("trend").output


def test_a_run_is_shown_with_its_date_and_commit_as_far_as_they_are_known(kept: KeptProject) -> None:
    keep(kept, KILLED, SURVIVED)
    keep(kept, KILLED, SURVIVED, **{STARTED: "yesterday", COMMIT: 7, CHANGED: "no"})
    keep(kept, IGNORED, IGNORED, **{STARTED: "2026-01-31 14:05", COMMIT: COMMIT_1, CHANGED: False})
    keep(kept, KILLED, KILLED, **{STARTED: "2026-02-01T09:30:00+01:00", COMMIT: COMMIT_2, CHANGED: True})
    lines = kept.call("trend").output.splitlines()
    assert [line.split() for line in lines] == [
        ["-", "-", "50.0", "%", "1", "missed", "#" * 20],
        ["-", "-", "50.0", "%", "1", "missed", "#" * 20],
        ["2026-01-31", "14:05", "0123456", "-", "0", "missed"],
        ["2026-02-01", "09:30", "abcdef0+", "100.0", "%", "0", "missed", "#" * 40],
    ]
    points = json.loads(kept.call("trend", "--json").output)
    assert [(point["started"], point["commit"], point["changed"], point["score"]) for point in points] == [
        (None, None, None, 50.0),
        (None, None, None, 50.0),
        ("2026-01-31 14:05", COMMIT_1, False, None),
        ("2026-02-01 09:30", COMMIT_2, True, 100.0),
    ]


def test_the_diagram_has_each_run_and_a_gap_where_there_is_no_score(kept: KeptProject) -> None:
    for day in range(1, 9):
        keep(kept, KILLED, SURVIVED, **{STARTED: f"2026-01-0{day} 10:00", COMMIT: COMMIT_1})
    keep(kept, IGNORED, IGNORED)
    keep(kept, KILLED, KILLED, **{STARTED: "2026-01-31 14:05", COMMIT: COMMIT_2, CHANGED: True})
    assert kept.call("trend", "--svg", "trend.svg").exit_code == 0
    svg = ET.parse("trend.svg").getroot()
    names = {element.get("id"): element.text for element in svg.iter()}
    assert svg.get("aria-labelledby") == "title desc"
    assert names["title"] == "Mutation score of 10 runs"
    assert str(names["desc"]).splitlines()[-2:] == ["-", "100.0 %, 2026-01-31 14:05, abcdef0+"]
    assert len(svg.findall(f"{SVG}circle")) == 9
    assert len([path for path in svg.iter(f"{SVG}path") if path.get("class") == "line"]) == 2
    labels = [text.text for text in svg.iter(f"{SVG}text") if text.get("class") == "date" and text.text]
    assert labels[:4] == ["2026-01-31", "abcdef0+", "2026-01-08", "0123456"]
    text = Path("trend.svg").read_text()
    assert "prefers-color-scheme:dark" in text
    assert text.count("http") == 1, "the name of SVG itself: nothing is loaded"


@pytest.mark.parametrize(("status", "message"), [(KILLED, "100 %"), (SURVIVED, "0 %"), (IGNORED, "-")])
def test_a_badge_may_be_a_picture(kept: KeptProject, status: Status, message: str) -> None:
    keep(kept, status, status)
    assert kept.call("trend", "--badge", "badge.svg").exit_code == 0
    svg = ET.parse("badge.svg").getroot()
    assert [text.text for text in svg.iter(f"{SVG}text")] == ["mutation score", message]
    assert svg.findtext(f"{SVG}title") == f"mutation score: {message}"


@pytest.mark.parametrize("option", ["--svg", "--badge"])
def test_a_file_that_can_not_be_written_is_an_error(kept: KeptProject, option: str) -> None:
    keep(kept, KILLED, KILLED)
    error = kept.call("trend", option, "none/trend.svg").exception
    assert isinstance(error, ConfigurationError)
    assert str(error) == "can't write none/trend.svg: No such file or directory"


def test_a_run_is_kept_with_the_commit_that_was_checked_out(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolate(monkeypatch)
    bridge(project, "run")
    git(project, "init", "--quiet", "--initial-branch=main")
    bridge(project, "run")
    commit(project)
    head = git(project, "rev-parse", "HEAD").strip()
    (project / "untracked.py").write_text("")
    bridge(project, "run")
    (project / "a.py").write_text("z = 1\n")
    bridge(project, "run")
    points = json.loads(bridge(project, "trend", "--json").stdout)
    assert [(point["commit"], point["changed"]) for point in points] == [
        (None, None),
        (None, None),
        (head, False),
        (head, True),
    ]


async def test_a_revision_has_the_branch_unless_head_is_detached(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolate(monkeypatch)
    git(project, "init", "--quiet", "--initial-branch=feat/a")
    commit(project)
    head = git(project, "rev-parse", "HEAD").strip()
    assert await Revision.of(project) == Revision(head, changed=False, branch="feat/a")
    git(project, "checkout", "--quiet", "--detach")
    assert await Revision.of(project) == Revision(head, changed=False, branch=None)
    monkeypatch.setenv("PATH", str(project))
    assert await Revision.of(project) is None

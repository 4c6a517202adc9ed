"""`run` for CI and browsers: shards, pages, JUnit, annotations, and what an interrupted run leaves."""

import asyncio
import contextlib
import json
import re
import signal
import subprocess
import sys
import webbrowser
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import aiohttp
import jsonschema
import pytest
from support.command_line import (
    GATED,
    SCRIPT,
    bridge,
    command,
    environment,
    in_process,
    script,
)
from support.viewers import SCHEMA

from msp_bridge.cli.outputs import live_page
from msp_bridge.reports.standard import report as standard_report
from msp_bridge.toolkit.install import own_install


def read(file: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(file.read_text())
    jsonschema.validate(report, SCHEMA)
    return report


def ids(report: dict[str, Any]) -> list[str]:
    return [fields["id"] for file in report["files"].values() for fields in file["mutants"]]


def test_a_page_holds_the_report(project: Path) -> None:
    done = bridge(project, "run", "--html", "report.html", "--json", "report.json", "--junit", "report.xml")
    assert done.returncode == 0, done.stderr
    suites = ET.parse(project / "report.xml").getroot()
    assert (suites.get("tests"), suites.get("failures")) == ("4", "2")
    page = (project / "report.html").read_text()
    assert "<title>Mutation report of project</title>" in page
    held = re.search(r'<script type="application/json" id="report">(.*?)</script>', page)
    assert held is not None
    report = read(project / "report.json")
    assert json.loads(held[1]) == report
    mutants = [(path, mutant) for path, file in report["files"].items() for mutant in file["mutants"]]
    assert sorted(mutant["status"] for _, mutant in mutants) == ["Killed", "Killed", "Survived", "Survived"]
    assert [mutant["duration"] for path, mutant in mutants if path == "b.py"] == [1.5]


def test_github_gets_annotations_and_a_summary(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    assert "::warning" not in bridge(project, "run").stdout
    assert not (tmp_path / "summary.md").exists()
    (tmp_path / "summary.md").write_text("of another step\n")
    done = bridge(project, "run", "--github")
    warnings = [line for line in done.stdout.splitlines() if line.startswith("::warning ")]
    assert [line.split(",")[0] for line in warnings] == ["::warning file=project/a.py"] * 2
    assert (tmp_path / "summary.md").read_text().startswith("of another step\n### Mutation score: 50.0 %\n")


def test_the_shards_are_the_whole(project: Path) -> None:
    bridge(project, "run", "--json", "whole.json")
    for number in (1, 2, 3):
        done = bridge(project, "run", "--shard", f"{number}/3", "--json", f"{number}.json")
        assert done.returncode == 0, done.stderr
    parts = [ids(read(project / f"{number}.json")) for number in (1, 2, 3)]
    assert sorted(len(part) for part in parts) == [1, 1, 2]
    assert sorted(found for part in parts for found in part) == sorted(ids(read(project / "whole.json")))
    done = in_process(project, project, "merge", "1.json", "2.json", "3.json", "--json", "merged.json")
    assert done.returncode == 0, done.stderr
    whole, merged = read(project / "whole.json"), read(project / "merged.json")
    assert merged["files"] == whole["files"]


def test_a_shard_without_a_mutant_has_a_report(project: Path) -> None:
    done = bridge(project, "run", "--shard", "5/5", "--json", "5.json", "b.py")
    assert done.returncode == 0, done.stderr
    report = read(project / "5.json")
    assert report["files"] == {}
    assert report["config"]["shard"]["number"] == 5


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_one_report_that_can_not_be_written_loses_no_other(project: Path) -> None:
    done = bridge(project, "run", "--html", "/dev/full", "--json", "report.json", "--junit", "/dev/full")
    assert done.returncode == 2
    assert done.stderr == "msp-bridge: can't write /dev/full: No space left on device\n" * 2
    assert len(ids(read(project / "report.json"))) == 4
    assert "mutation score  50.0 %" in done.stdout


def test_a_report_on_standard_output_is_alone_there(project: Path) -> None:
    done = bridge(project, "run", "--json", "-")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    jsonschema.validate(report, SCHEMA)
    assert len(ids(report)) == 4
    assert "mutation score  50.0 %" in done.stderr


def test_places_for_gitlab_lead_from_its_repository(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_PROJECT_DIR", str(tmp_path))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project))
    assert bridge(project, "run", "--gitlab", "quality.json", "--sarif", "sarif.json").returncode == 0
    issues = json.loads((project / "quality.json").read_text())
    assert [issue["location"]["path"] for issue in issues] == ["project/a.py"] * 2
    (run,) = json.loads((project / "sarif.json").read_text())["runs"]
    places = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]]
    assert places == ["a.py"] * 2


@pytest.mark.parametrize(("threshold", "code"), [("50", 0), ("51", 1), ("'x'", 2)])
def test_the_threshold_may_be_in_the_configuration(project: Path, threshold: str, code: int) -> None:
    (project / "msp-bridge.toml").write_text(f"threshold = {threshold}\n")
    done = bridge(project, "run")
    assert done.returncode == code, done.stderr
    assert bridge(project, "run", "--threshold", "1").returncode == (0 if code < 2 else 2)


def test_the_threshold_of_the_configuration_is_not_that_of_a_shard(project: Path) -> None:
    (project / "msp-bridge.toml").write_text("threshold = 100\n")
    assert bridge(project, "run", "--shard", "1/1").returncode == 0
    assert bridge(project, "run", "--shard", "1/1", "--threshold", "100").returncode == 1


def test_a_run_that_found_no_mutants_for_a_fault_writes_no_report(project: Path) -> None:
    script(project, discovery={"raises": ["ToolError", "broken"]})
    done = bridge(project, "run", "--json", "report.json")
    assert (done.returncode, done.stderr) == (3, "msp-bridge: broken\n")
    assert not (project / "report.json").exists()


@pytest.mark.parametrize("phase", ["discovery", "testing"])
def test_a_project_that_fails_keeps_no_other_from_its_report(project: Path, phase: str) -> None:
    for name in ("one", "two"):
        (project / name).mkdir()
        (project / name / "a.py").write_text("x = y + 1\n")
    (project / "scripted.json").unlink()
    script(project / "one")
    script(project / "two", **{phase: {"raises": ["ToolError", "broken"]}})
    done = bridge(project, "run", "--json", "report.json")
    assert done.returncode == 3
    assert "broken" in done.stderr
    assert done.stderr.count("\n") == 1
    statuses = {
        path: {(fields["status"], fields.get("statusReason")) for fields in file["mutants"]}
        for path, file in read(project / "report.json")["files"].items()
    }
    assert statuses.pop("one/a.py") == {("Killed", None), ("Survived", None)}
    assert statuses == (
        {} if phase == "discovery" else {"two/a.py": {("Ignored", "not tested: scripted in two/: broken")}}
    )


@contextlib.asynccontextmanager
async def live_run(project: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """A run with a live page, and the address of that."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    argv = command("run", "--adapter", "scripted", "--live")
    running = await asyncio.create_subprocess_exec(*argv, cwd=project, env=environment(project), **pipes)
    assert running.stderr is not None
    line = (await running.stderr.readline()).decode()
    yield running, line.removeprefix("msp-bridge: the report fills at ").strip()
    await running.communicate()


async def events_of(url: str) -> AsyncIterator[str]:
    """The names of the page's events, to the last."""
    async with aiohttp.ClientSession() as session, session.get(f"{url}events") as response:
        async for event in response.content:
            if event.startswith(b"event: "):
                yield (name := event.decode().split()[1])
                if name == "finished":
                    return


async def test_an_interrupted_run_lets_its_live_page_go(project: Path, tmp_path: Path) -> None:
    script(project, mutations=GATED, events=str(tmp_path))
    names = []
    async with live_run(project) as (running, url):
        async for name in events_of(url):
            names.append(name)
            if names == ["mutant-tested"]:
                running.send_signal(signal.SIGINT)  # once: a second one would not wait for the page
    assert running.returncode == 130
    assert names == ["mutant-tested", "finished"]


async def test_the_live_page_has_all_mutants_at_once_and_results_as_they_come(project: Path, tmp_path: Path) -> None:
    gated = [SCRIPT["mutations"][0], SCRIPT["mutations"][1] | {"after": "gate"}]
    script(project, mutations=gated, events=str(tmp_path))
    names = []
    async with live_run(project) as (running, url):
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            assert (await response.text()).count('"status":"Pending"') == 4
        async for name in events_of(url):
            names.append(name)
            (tmp_path / "gate").touch()
    assert running.returncode == 0
    assert names == ["mutant-tested"] * 4 + ["finished"]


def test_without_the_web_server_live_says_what_to_install(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    monkeypatch.delitem(sys.modules, "msp_bridge.reports.live", raising=False)
    done = bridge(project, "run", "--live")
    assert done.returncode == 2
    why = "import of aiohttp halted; None in sys.modules"
    install = own_install("msp-bridge[live]")
    assert done.stderr == f"msp-bridge: --live needs the web server aiohttp ({why}): {install}\n"
    assert done.stdout == ""
    done = bridge(project, "run", "--html", "report.html")
    assert done.returncode == 0, done.stderr


OPENING = 0.1  # s: nobody will come


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    urls: list[str] = []

    def browse(url: str) -> bool:
        urls.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("DISPLAY", ":0")
    return urls


async def shown(root: Path) -> str:
    async with live_page(root, standard_report(root, ())) as live:
        live._opening = OPENING
        return live.url


@pytest.mark.parametrize(("terminal", "screen"), [(True, True), (False, True), (True, False)])
async def test_only_in_a_terminal_with_a_screen_the_page_opens(
    tmp_path: Path,
    opened: list[str],
    terminal: bool,
    screen: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without a screen nothing takes the terminal."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    if not screen:
        monkeypatch.delenv("DISPLAY")
        monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    url = await shown(tmp_path)
    assert opened == [url] * (terminal and screen)
    assert capsys.readouterr().err == f"msp-bridge: the report fills at {url}\n"

"""`run` for CI and browsers: shards, pages, JUnit, annotations, and what an interrupted run leaves."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import aiohttp
import jsonschema
import pytest
from test_commands import SCHEMA, SCRIPT, bridge, command, environment, script


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.py").write_text("x = y + 1\nz = 1\n")
    (root / "b.py").write_text("w = v + u\n")
    script(root)
    return root


def read(file: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(file.read_text())
    jsonschema.validate(report, SCHEMA)
    return report


def ids(report: dict[str, Any]) -> list[str]:
    return [fields["id"] for file in report["files"].values() for fields in file["mutants"]]


def test_a_page_holds_the_report(project: Path) -> None:
    done = bridge(project, "run", "--html", "report.html", "--json", "report.json")
    assert done.returncode == 0, done.stderr
    page = (project / "report.html").read_text()
    assert "<title>Mutation report of project</title>" in page
    held = re.search(r'<script type="application/json" id="report">(.*?)</script>', page)
    assert held is not None
    assert json.loads(held[1]) == read(project / "report.json")


def test_a_page_that_needs_the_network_is_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    assert bridge(project, "run", "--html", "report.html").stderr == (
        "msp-bridge: report.html needs the network for its viewer; "
        "to have it in the page: npm install --global mutation-testing-elements\n"
    )


def test_a_viewer_in_the_project_goes_into_the_page(project: Path) -> None:
    package = project / "node_modules" / "mutation-testing-elements"
    (package / "dist").mkdir(parents=True)
    (package / "dist" / "mutation-test-elements.js").write_text("viewer()")
    (package / "package.json").write_text('{"version": "3.9.0"}')
    assert bridge(project, "run", "--html", "report.html").stderr == ""
    assert base64.b64encode(b"viewer()") in (project / "report.html").read_bytes()


def test_junit_counts_what_is_missed(project: Path) -> None:
    assert bridge(project, "run", "--junit", "report.xml").returncode == 0
    suites = ET.parse(project / "report.xml").getroot()
    assert (suites.get("tests"), suites.get("failures")) == ("4", "2")


def test_github_gets_annotations_and_a_summary(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    (tmp_path / "summary.md").write_text("of another step\n")
    done = bridge(project, "run", "--github")
    warnings = [line for line in done.stdout.splitlines() if line.startswith("::warning ")]
    assert [line.split(",")[0] for line in warnings] == ["::warning file=project/a.py"] * 2
    assert (tmp_path / "summary.md").read_text().startswith("of another step\n### Mutation score: 50.0 %\n")


def test_without_the_flag_nothing_is_annotated(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    assert "::warning" not in bridge(project, "run").stdout
    assert not (tmp_path / "summary.md").exists()


def test_the_shards_are_the_whole(project: Path) -> None:
    bridge(project, "run", "--json", "whole.json")
    for number in (1, 2, 3):
        done = bridge(project, "run", "--shard", f"{number}/3", "--json", f"{number}.json")
        assert done.returncode == 0, done.stderr
    parts = [ids(read(project / f"{number}.json")) for number in (1, 2, 3)]
    assert sorted(len(part) for part in parts) == [1, 1, 2]
    assert sorted(found for part in parts for found in part) == sorted(ids(read(project / "whole.json")))
    done = bridge_merge(project, "1.json", "2.json", "3.json", "--json", "merged.json")
    assert done.returncode == 0, done.stderr
    whole, merged = read(project / "whole.json"), read(project / "merged.json")
    assert merged["files"] == whole["files"]


def bridge_merge(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = command("merge", *arguments)
    return subprocess.run(argv, cwd=project, env=environment(project), capture_output=True, text=True, timeout=60)


def test_a_shard_without_a_mutant_has_a_report(project: Path) -> None:
    done = bridge(project, "run", "--shard", "5/5", "--json", "5.json", "b.py")
    assert done.returncode == 0, done.stderr
    report = read(project / "5.json")
    assert report["files"] == {}
    assert report["config"]["shard"]["number"] == 5


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--shard", "3/2"], "'3/2' is not K/N"),
        (["--html", "gone/report.html"], "there is no directory"),
        (["--junit", "gone/report.xml"], "there is no directory"),
    ],
)
def test_wrong_arguments_are_told_before_anything_runs(project: Path, arguments: list[str], text: str) -> None:
    done = bridge(project, "run", *arguments)
    assert done.returncode == 2
    assert text in done.stderr
    assert done.stdout == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_report_that_can_not_be_written_is_one_line(project: Path) -> None:
    done = bridge(project, "run", "--html", "/dev/full")
    assert done.returncode == 1
    assert done.stderr == "msp-bridge: can't write /dev/full: No space left on device\n"


def test_a_run_that_found_no_mutants_for_a_fault_writes_no_report(project: Path) -> None:
    script(project, discovery={"raises": ["ToolError", "broken"]})
    done = bridge(project, "run", "--json", "report.json")
    assert (done.returncode, done.stderr) == (1, "msp-bridge: broken\n")
    assert not (project / "report.json").exists()


def test_an_interrupted_run_reports_the_rest_as_pending(project: Path, tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    gated = [SCRIPT["mutations"][0], SCRIPT["mutations"][1] | {"after": "never"}]
    script(project, mutations=gated, events=str(events))
    argv = command("run", "--adapter", "scripted", "--json", "report.json", "--junit", "report.xml")
    running = subprocess.Popen(
        argv, cwd=project, env=environment(project), stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    while "waiting for never" not in (events / "log").read_text() if (events / "log").exists() else True:
        assert running.poll() is None
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130
    files = read(project / "report.json")["files"]
    pending = [fields for file in files.values() for fields in file["mutants"] if fields["status"] == "Pending"]
    assert len(pending) == 3
    assert {fields["statusReason"] for fields in pending} == {"not tested: the run ended before"}
    assert ET.parse(project / "report.xml").getroot().get("skipped") == "3"


@pytest.mark.parametrize("phase", ["discovery", "testing"])
def test_a_project_that_fails_keeps_no_other_from_its_report(project: Path, phase: str) -> None:
    for name in ("one", "two"):
        (project / name).mkdir()
        (project / name / "a.py").write_text("x = y + 1\n")
    (project / "scripted.json").unlink()
    script(project / "one")
    script(project / "two", **{phase: {"raises": ["ToolError", "broken"]}})
    done = bridge(project, "run", "--json", "report.json")
    assert done.returncode == 1
    assert "broken" in done.stderr
    assert done.stderr.count("\n") == 1
    statuses = {
        path: {(fields["status"], fields.get("statusReason")) for fields in file["mutants"]}
        for path, file in read(project / "report.json")["files"].items()
    }
    assert statuses.pop("one/a.py") == {("Killed", None), ("Survived", None)}
    assert statuses == ({} if phase == "discovery" else {"two/a.py": {("Ignored", "not tested: broken")}})


async def test_an_interrupted_run_lets_its_live_page_go(project: Path, tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    gated = [SCRIPT["mutations"][0], SCRIPT["mutations"][1] | {"after": "never"}]
    script(project, mutations=gated, events=str(events))
    argv = command("run", "--adapter", "scripted", "--live")
    running = await asyncio.create_subprocess_exec(
        *argv, cwd=project, env=environment(project), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert running.stderr is not None
    url = (await running.stderr.readline()).decode().split()[-1]
    names = []
    async with aiohttp.ClientSession() as session, session.get(f"{url}events") as response:
        async for event in response.content:
            if event.startswith(b"event: "):
                names.append(event.decode().split()[1])
                if names == ["mutant-tested"]:
                    running.send_signal(signal.SIGINT)  # once: a second one would not wait for the page
            if names[-1:] == ["finished"]:
                break
    await running.communicate()
    assert running.returncode == 130
    assert names == ["mutant-tested", "finished"]


async def test_the_live_page_has_all_mutants_at_once_and_results_as_they_come(project: Path, tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    script(project, mutations=[SCRIPT["mutations"][0], SCRIPT["mutations"][1] | {"after": "gate"}], events=str(events))
    argv = command("run", "--adapter", "scripted", "--live")
    running = await asyncio.create_subprocess_exec(
        *argv, cwd=project, env=environment(project), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert running.stderr is not None
    line = (await running.stderr.readline()).decode()
    url = line.removeprefix("msp-bridge: the report fills at ").strip()
    names = []
    async with aiohttp.ClientSession() as session:
        async with session.get(url) as response:
            page = await response.text()
        assert page.count('"status":"Pending"') == 4
        async with session.get(f"{url}events") as response:
            async for event in response.content:
                if event.startswith(b"event: "):
                    names.append(event.decode().split()[1])
                    (events / "gate").touch()
                if names[-1:] == ["finished"]:
                    break
    await running.communicate()
    assert running.returncode == 0
    assert names == ["mutant-tested"] * 4 + ["finished"]


def test_without_the_web_server_live_says_what_to_install(project: Path, tmp_path: Path) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "aiohttp.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'aiohttp'\", name='aiohttp')\n"
    )
    variables = environment(project)
    variables["PYTHONPATH"] = os.pathsep.join([str(tmp_path / "hidden"), variables["PYTHONPATH"]])
    argv = [sys.executable, "-m", "msp_bridge", "run", "--adapter", "scripted", "--live"]
    done = subprocess.run(argv, cwd=project, env=variables, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == (
        "msp-bridge: --live needs a web server, and aiohttp is not installed: pip install 'msp-bridge[live]'\n"
    )
    assert done.stdout == ""

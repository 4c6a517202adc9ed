"""`--dashboard` of `run`, `results` and `merge`."""

import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from support.command_line import bridge, in_process, script
from support.dashboards import HREF, FakeDashboard, dashboard, http

from msp_bridge.cli import Exit
from msp_bridge.reports.dashboard import KEY_VARIABLE, URL_VARIABLE

TO = ("--dashboard", "--dashboard-project", "github.com/shop/cart", "--dashboard-version", "main")


@pytest.fixture
def server() -> Iterator[FakeDashboard]:
    with dashboard() as running:
        yield running


def call(server: FakeDashboard, project: Path, *arguments: str) -> CompletedProcess[str]:
    variables = {KEY_VARIABLE: "key", URL_VARIABLE: server.url}
    adapter = ("--adapter", "scripted") if arguments[0] == "run" else ()
    return in_process(project, project, *arguments, *adapter, **variables)


def test_a_run_says_where_its_report_is(server: FakeDashboard, project: Path) -> None:
    done = call(server, project, "run", *TO, "--json", "-")
    assert done.returncode == Exit.FINE, done.stderr
    assert f"msp-bridge: the report is at {HREF}\n" in done.stderr
    assert server.requests[0].report["files"] == json.loads(done.stdout)["files"]


def test_an_upload_that_fails_loses_nothing_and_results_sends_it_again(server: FakeDashboard, project: Path) -> None:
    server.answer = http("503 Service Unavailable")
    done = call(server, project, "run", *TO)
    assert done.returncode == Exit.USAGE
    assert "has answered with status 503" in done.stderr
    server.answer = http("200 OK", json.dumps({"href": HREF}))
    assert call(server, project, "results", *TO).returncode == Exit.FINE
    first, second = (request.report["files"] for request in server.requests)
    assert first == second


@pytest.mark.parametrize(
    "part",
    ["run --shard 1/1", "run a.py", "run --since HEAD", "run --sample 1", "results a.py", "results --mutator plus"],
)
def test_a_part_is_refused_for_it_would_take_the_place_of_the_whole(
    part: str, server: FakeDashboard, project: Path
) -> None:
    bridge(project, "run")
    done = call(server, project, *part.split(), *TO)
    assert done.returncode == Exit.USAGE
    assert "--dashboard is for the whole project: a part would take the place" in done.stderr
    assert server.requests == []


def test_merged_shards_are_uploaded(server: FakeDashboard, project: Path) -> None:
    bridge(project, "run", "--json", "report.json")
    assert call(server, project, "merge", "report.json", *TO).returncode == Exit.FINE
    assert len(server.requests) == 1


def test_the_report_of_a_run_that_fails_is_not_sent(server: FakeDashboard, project: Path) -> None:
    script(project, testing={"raises": ["ToolError", "the tool has crashed"]})
    assert call(server, project, "run", *TO).returncode == Exit.NO_VERDICTS
    assert server.requests == []

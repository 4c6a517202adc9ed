"""The upload to a Stryker dashboard: what is sent, to whom, and what each answer means."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.dashboards import HREF, FakeDashboard, dashboard, http
from support.repositories import commit, git, isolate

from msp_bridge.cli.outputs import dashboard_of
from msp_bridge.errors import CommandLineError, ConfigurationError
from msp_bridge.model import Location, Mutant, Position, Result, Status
from msp_bridge.reports import dashboard as module
from msp_bridge.reports.dashboard import (
    CI_VERSIONS,
    KEY_VARIABLE,
    MAX_ANSWER,
    URL_VARIABLE,
    Dashboard,
    UploadFailed,
    ci_version,
    project_of,
)
from msp_bridge.reports.standard import report

MUTANT = Mutant("a.py", "plus", Location(Position(1, 3), Position(1, 4)), "-")
KEY = "3fa9b7c2-key"


@pytest.fixture
def server() -> Iterator[FakeDashboard]:
    with dashboard() as running:
        yield running


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of which origin is at GitHub, outside of a CI's job."""
    isolate(monkeypatch)
    for name in ("GITHUB_REF", *CI_VERSIONS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    git(tmp_path, "init", "--quiet", "--initial-branch=feat/ä")
    git(tmp_path, "remote", "add", "origin", "https://me:secret@github.com/shop/cart.git")
    commit(tmp_path, a="x + 1\n")
    return tmp_path


def place(base: str, **changes: Any) -> Dashboard:
    return Dashboard(**{"base": base, "key": KEY, "project": "github.com/shop/cart", "version": "main", **changes})


def upload(base: str, status: Status = Status.KILLED, root: Path = Path("/nowhere"), **changes: Any) -> str:
    return place(base, **changes).upload(report(root, [Result(MUTANT, status)]))


def failure(base: str, **changes: Any) -> UploadFailed:
    with pytest.raises(UploadFailed) as raised:
        upload(base, **changes)
    return raised.value


def values(**changes: Any) -> dict[str, Any]:
    names = ("dashboard_project", "dashboard_version", "dashboard_module")
    return {"dashboard": True, **dict.fromkeys(names), **changes}


def test_the_report_is_put_with_the_key_and_without_the_place_of_the_project(
    server: FakeDashboard, tmp_path: Path
) -> None:
    (tmp_path / "a.py").write_text("x + 1\n")
    assert upload(server.url, root=tmp_path, version="feat/a b", module="the cart") == HREF
    [request] = server.requests
    assert request.line == "PUT /api/reports/github.com/shop/cart/feat/a%20b?module=the%20cart HTTP/1.1"
    assert request.headers["X-Api-Key"] == KEY
    assert request.headers["Content-Type"] == "application/json"
    assert request.report["files"]["a.py"]["mutants"][0]["status"] == "Killed"
    assert str(tmp_path) not in request.body.decode()


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (http("401 Unauthorized", "no"), "does not accept the key for github.com/shop/cart"),
        (http("200 OK", "null"), "has no project github.com/shop/cart"),
        (http("500 Oh", "a\x1b[31m\nb"), r"has answered with status 500: a\x1b[31m\nb"),
        (http("200 OK", "<html>"), "does not answer as a dashboard: <html>"),
        (http("200 OK", '{"href": 7}'), 'does not answer as a dashboard: {"href": 7}'),
        (http("200 OK", "[" * MAX_ANSWER), "does not answer as a dashboard: [["),
        (http("200 OK", '{"href": "' + "x" * 2 * MAX_ANSWER + '"}'), 'does not answer as a dashboard: {"href": "xx'),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "can't send the report to "),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", "does not answer as a dashboard: {"),
        (b"", "can't send the report to "),
    ],
)
def test_any_other_answer_is_an_error_that_says_what_came(server: FakeDashboard, answer: bytes, problem: str) -> None:
    server.answer = answer
    assert problem in failure(server.url).problem


def test_a_dashboard_that_is_not_there_is_an_error() -> None:
    with dashboard() as gone:
        pass
    assert "can't send the report to" in failure(gone.url).problem


def test_a_dashboard_that_does_not_answer_is_not_waited_for(
    server: FakeDashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TOTAL_S", 0.1)
    server.answer = None
    assert "has not answered within 0.1 s" in failure(server.url).problem


def test_the_key_follows_no_redirect(server: FakeDashboard) -> None:
    with dashboard() as other:
        server.answer = http("307 Temporary Redirect", headers=f"Location: {other.url}/x\r\n")
        assert f"redirects to {other.url}/x" in failure(server.url).problem
        assert other.requests == []


def test_a_proxy_is_used_and_no_tls_is_warned_of_but_for_this_machine(
    server: FakeDashboard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with dashboard() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert upload(server.url) == HREF
        assert proxy.requests == []
        assert caplog.text == ""
        assert upload("http://dashboard.invalid") == HREF
        assert proxy.requests[0].line.startswith("PUT http://dashboard.invalid/api/reports/github.com/")
        assert "the report and the key go to http://dashboard.invalid unencrypted" in caplog.text


def test_a_report_with_mutants_that_were_not_tested_is_not_sent(server: FakeDashboard) -> None:
    assert "1 mutant was not tested" in failure(server.url, status=Status.PENDING).problem
    assert server.requests == []


def test_the_key_is_taken_out_of_the_environment_and_is_in_no_repr(project: Path) -> None:
    made = dashboard_of(values(), project)
    assert made is not None
    assert made.key == KEY
    assert KEY not in repr(made)
    assert KEY_VARIABLE not in os.environ


def test_project_and_version_are_those_of_git_where_no_option_or_job_says_another(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(**changes: Any) -> str:
        monkeypatch.setenv(KEY_VARIABLE, KEY)
        made = dashboard_of(values(**changes), project)
        assert made is not None
        return made.url

    base = "https://dashboard.stryker-mutator.io/api/reports"
    assert found() == f"{base}/github.com/shop/cart/feat/%C3%A4"
    monkeypatch.setenv("GITHUB_REF", "refs/pull/12/merge")
    assert found() == f"{base}/github.com/shop/cart/PR-12"
    monkeypatch.setenv(URL_VARIABLE, "https://own.example/stryker/api/reports/")
    options = {"dashboard_project": "gitlab.com/a/b", "dashboard_version": "v1", "dashboard_module": "m"}
    assert found(**options) == "https://own.example/stryker/api/reports/gitlab.com/a/b/v1?module=m"


def test_without_a_remote_or_a_branch_an_option_is_asked_for(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(project, "checkout", "--quiet", "--detach")
    with pytest.raises(CommandLineError, match="--dashboard-version"):
        dashboard_of(values(), project)
    git(project, "remote", "remove", "origin")
    with pytest.raises(CommandLineError, match="--dashboard-project"):
        dashboard_of(values(), project)


@pytest.mark.parametrize(
    "changes",
    [
        {"key": ""},
        {"key": "a\nX-Other: b"},
        {"key": "schlüssel"},
        {"project": "github.com/../cart"},
        {"version": ""},
        {"version": "a//b"},
        *(
            {"base": base}
            for base in ("", "dashboard.example", "ftp://a", "http://a:b", "http://u@a", "http://a?b", "http://a\nb")
        ),
    ],
)
def test_what_can_not_be_right_is_an_error_before_the_tests_run(changes: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        place(**{"base": "https://dashboard.example", **changes})


@pytest.mark.parametrize(
    ("remote", "found"),
    [
        ("https://github.com/shop/cart", "github.com/shop/cart"),
        ("https://me:secret@github.com:443/shop/cart.git/", "github.com/shop/cart"),
        ("git@github.com:shop/cart.git", "github.com/shop/cart"),
        ("ssh://git@gitlab.com:22/a/b/cart.git", "gitlab.com/a/b/cart"),
        ("/srv/git/cart.git", None),
        ("file:///srv/git/cart.git", None),
        ("../cart", None),
        ("", None),
    ],
)
def test_a_project_is_named_by_its_remote(remote: str, found: str | None) -> None:
    assert project_of(remote) == found


@pytest.mark.parametrize(
    ("environment", "version"),
    [
        ({}, None),
        ({"GITHUB_REF": "refs/heads/feat/a"}, "feat/a"),
        ({"GITHUB_REF": "refs/tags/v1"}, "v1"),
        ({"CIRCLE_PR_NUMBER": "", "CIRCLE_BRANCH": "main"}, "main"),
        ({"TRAVIS_PULL_REQUEST_BRANCH": "fix", "TRAVIS_BRANCH": "main"}, "fix"),
        ({"CI_COMMIT_REF_NAME": "main"}, "main"),
    ],
)
def test_a_job_of_a_ci_says_the_version(environment: dict[str, str], version: str | None) -> None:
    assert ci_version(environment) == version

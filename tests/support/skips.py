"""The skips that CI expects: another one fails a run with `--ci`. A plug-in of pytest."""

import os
import shutil

import pytest

# Skips that CI permits, by parts of their reasons: what the machine, its user or its kernel do not have.
EXPECTED_SKIPS = (
    "PIT is not installed",  # where a JDK, Maven or its repository is not there
    "Maven can't reach its repository",  # for what only `make test-all` needs of it
    "another test has mounted something",
    "before Linux 6.14",
    "files have no such",
    "gremlins is not installed",  # where go, or its proxy, is not there
    "hadolint is not installed",  # where it is not on PATH; `make lint` runs it
    "it is no repository",
    "may not mount",  # a disk
    "needs /dev/full",
    "no compiler",
    "no interpreter that user",
    "not permitted",
    "nothing is ",  # closed to root, unreadable to it
    "only root",
    "permissions don't bind this user",
    "permits no ",  # isolation, namespaces
    "sys.monitoring is there from Python 3.12",
    "that is always full",
    "the tests' own user is unprivileged",
    "this machine has no IPv6",
    "trees are watched on Linux only",
    "without namespaces",
)
PROGRAMS = (
    "is not installed",
    "needs ",
    "no pypy3",
    "this Emacs has no eglot",
)  # CI installs them: PROGRAMS in Makefile
if os.environ.get("CI") != "true":
    EXPECTED_SKIPS += PROGRAMS
if shutil.which("cargo") is None:  # with it `make test` installs both
    EXPECTED_SKIPS += ("cargo-mutants is not installed", "cargo-nextest is not installed")
if "DOTNET_ROOT" not in os.environ:  # nothing has activated a .NET
    EXPECTED_SKIPS += ("the real Stryker.NET is not here",)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--ci", action="store_true", help="fail if a test is skipped that CI does not expect to be")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.exitstatus == pytest.ExitCode.OK and session.config.option.ci and _unexpected_skips(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.option.ci and (unexpected := _unexpected_skips(config)):
        terminalreporter.section("skips that CI does not expect (EXPECTED_SKIPS in tests/support/skips.py)", red=True)
        for line in unexpected:
            terminalreporter.line(line)


def _unexpected_skips(config: pytest.Config) -> list[str]:
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is None:  # a worker of pytest-xdist
        return []
    found = []
    for report in reporter.stats.get("skipped", []):
        reason = str(report.longrepr[2]).removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else ""
        if not any(part in reason for part in EXPECTED_SKIPS):
            found.append(f"{report.nodeid}: {reason}")
    return found

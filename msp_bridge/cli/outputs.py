"""Where the results of a command go: files, GitHub's job, a live page, a dashboard; and which score is enough.

Each form is written for itself: one that can't be written keeps no other from being written.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve, field, frozen

from msp_bridge.cli import StdoutFailed
from msp_bridge.cli.options import with_options
from msp_bridge.environment.distributions import installed
from msp_bridge.errors import BridgeError, CommandLineError, ConfigurationError
from msp_bridge.jsonrpc.messages import dump
from msp_bridge.reports import ci, html
from msp_bridge.reports.dashboard import (
    BASE,
    KEY_VARIABLE,
    URL_VARIABLE,
    Dashboard,
    UploadFailed,
    ci_version,
    project_of,
)
from msp_bridge.reports.results import Score
from msp_bridge.reports.standard import Report
from msp_bridge.toolkit.install import of_extra
from msp_bridge.workspace.configuration import load_configuration
from msp_bridge.workspace.targets import Revision, origin

if TYPE_CHECKING:
    from msp_bridge.reports.live import LivePage

DASHBOARD_OPTIONS: list[click.Parameter] = [
    click.Option(
        ["--dashboard"], is_flag=True, help=f"Upload the report to a Stryker dashboard, with the key in {KEY_VARIABLE}."
    ),
    click.Option(
        ["--dashboard-project"],
        metavar="PROJECT",
        help="The project's name there, such as github.com/OWNER/NAME.  [default: that of git's remote `origin`]",
    ),
    click.Option(
        ["--dashboard-version"],
        metavar="VERSION",
        help="The version that the report is of.  [default: that of the CI's job, or the branch]",
    ),
    click.Option(
        ["--dashboard-module"], metavar="MODULE", help="The module that the report is of, of several of a version."
    ),
]
FILE = click.Path(dir_okay=False, allow_dash=True, path_type=Path)
STDOUT = Path("-")


def dashboard_of(values: Mapping[str, Any], root: Path) -> Dashboard | None:
    """The place for the report of the project at `root`, from click's values by name; None when none was asked for.

    Takes the key out of the environment, which the project's tests inherit. Raises ConfigurationError.
    """
    project, version, module = (values[f"dashboard_{name}"] for name in ("project", "version", "module"))
    if not values["dashboard"]:
        if project or version or module:
            raise click.UsageError("--dashboard-project, -version and -module are for --dashboard")
        return None
    key = os.environ.pop(KEY_VARIABLE, "").strip()
    version = version or ci_version(os.environ)
    if not (project and version):
        project, version = asyncio.run(_in_git(root, project, version))
    if not project:
        raise CommandLineError("no remote of git says which project this is", "name it with --dashboard-project")
    if not version:
        raise CommandLineError("no branch of git is checked out", "name the version with --dashboard-version")
    return Dashboard(os.environ.get(URL_VARIABLE) or BASE, key, project, version, module)


async def _in_git(root: Path, project: str | None, version: str | None) -> tuple[str | None, str | None]:
    """Fill in what is missing, as far as git says it."""
    if not project:
        project = project_of(await origin(root) or "")
    if not version and (revision := await Revision.of(root)) is not None:
        version = revision.branch
    return project, version


@frozen
class Form:
    """How a report is written. `make` takes the report and the path from the repository's root to the project's."""

    make: Callable[[Report, str], bytes]
    help: str
    repository: str = "GITHUB_WORKSPACE"  # the variable of a CI job with the repository's root


def _page(report: Report, _: str) -> bytes:
    return html.page(dump(report), f"Mutation report of {_project(report).name}")


FORMS: Mapping[str, Form] = {  # by option
    "html": Form(_page, "Write a page that shows the report in a browser, also offline."),
    "json": Form(
        lambda report, _: dump(report), "Write a report in the standard format (mutation-testing-report-schema)."
    ),
    "junit": Form(lambda report, _: ci.junit(report), "Write JUnit XML, where a missed mutant is a failed test."),
    "sarif": Form(ci.sarif, "Write SARIF, for GitHub's code scanning and others."),
    "gitlab": Form(
        ci.code_quality, "Write a Code Quality report, for GitLab's merge requests.", repository="CI_PROJECT_DIR"
    ),
}
OPTIONS: list[click.Parameter] = [
    click.Option(
        ["--threshold"],
        type=click.FloatRange(0, 100),
        metavar="PERCENT",
        help="Fail below this mutation score.  [default of run and merge: the configuration's]",
    ),
    click.Option(["--no-new-survivors"], is_flag=True, help="Fail if a mutant survives that is not accepted."),
    *(click.Option([f"--{name}"], type=FILE, metavar="FILE", help=form.help) for name, form in FORMS.items()),
    click.Option(
        ["--github"],
        is_flag=True,
        help="In GitHub Actions: annotate the lines that the tests miss, and summarise the job.",
    ),
    *DASHBOARD_OPTIONS,
]


@frozen
class Outputs:
    """The values of these options."""

    threshold: float | None
    github: bool
    no_new_survivors: bool = False
    files: Mapping[str, Path] = field(factory=dict)  # by the name of the form; `-` is standard output
    dashboard: Dashboard | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any], root: Path) -> Outputs:
        """Make them from click's values by name, for the project at `root`.

        Raises UsageError when a file could not be written at the end, ConfigurationError when no upload is possible.
        """
        files = {name: values[name] for name in FORMS if values[name] is not None}
        for name, file in files.items():
            if file != STDOUT and not file.absolute().parent.is_dir():
                raise click.BadParameter(f"there is no directory {file.absolute().parent}", param_hint=f"--{name}")
        if list(files.values()).count(STDOUT) + (STDOUT in files.values() and values["github"]) > 1:
            raise click.UsageError("only one report can go to standard output")
        dashboard = dashboard_of(values, root)
        return cls(values["threshold"], values["github"], values["no_new_survivors"], files, dashboard)

    def with_defaults(self, root: Path, named: str | None = None) -> Outputs:
        """Take the threshold from the configuration of the project at `root`, unless one was given.

        `named` is the configuration file that the user named. Raises ConfigurationError.
        """
        if self.threshold is not None:
            return self
        return evolve(self, threshold=load_configuration(root, named, installed()).threshold)

    def check_dashboard(self, *, whole: bool) -> None:
        """Raises CommandLineError when what is to be uploaded is not of the `whole` project."""
        if self.dashboard is not None and not whole:
            raise CommandLineError(
                "--dashboard is for the whole project: a part would take the place of its report there",
                "leave out what selects a part; `run --incremental` is short, and `merge --dashboard` joins shards",
            )

    @property
    def uses_stdout(self) -> bool:
        """Whether a report goes to standard output, where nothing else may be then."""
        return STDOUT in self.files.values()

    def write(self, report: Report) -> list[BridgeError]:
        """Every form of `report` that was asked for; returns why some could not be written."""
        project = _project(report)
        errors: list[BridgeError] = []
        for name, file in self.files.items():
            form = FORMS[name]
            with _collected(errors, file):
                data = form.make(report, _prefix(project, os.environ.get(form.repository)))
                if file == STDOUT:
                    sys.stdout.buffer.write(data)
                    sys.stdout.buffer.flush()
                else:
                    file.write_bytes(data)
        if self.github:
            with _collected(errors, Path("the annotations")):
                for line in ci.warnings(report, _prefix(project, os.environ.get("GITHUB_WORKSPACE"))):
                    click.echo(line)
            if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
                with _collected(errors, Path(summary)), open(summary, "ab") as opened:  # other steps write there too
                    opened.write(ci.summary(report).encode("utf-8", "backslashreplace"))
        return errors

    def upload(self, report: Report) -> list[BridgeError]:
        """Upload `report` where that was asked for, and say where it is; returns why it could not be uploaded."""
        if self.dashboard is not None:
            try:
                click.echo(f"msp-bridge: the report is at {self.dashboard.upload(report)}", err=True)
            except UploadFailed as error:
                return [error]
        return []

    def reached(self, score: Score) -> bool:
        """Whether `score` is enough, and no survivor is new; if not, says so on stderr."""
        new = score.undetected if self.no_new_survivors else 0
        if new:
            survivors = "1 survivor is" if new == 1 else f"{new} survivors are"
            click.echo(f"msp-bridge: {survivors} not accepted: write tests, or `msp-bridge accept`", err=True)
        if self.threshold is None or score.percent is None or score.percent >= self.threshold:
            return not new
        click.echo(
            f"msp-bridge: the mutation score {score.percent:.1f} % is below the threshold of {self.threshold:g} %",
            err=True,
        )
        return False


output_options = with_options(OPTIONS)


@contextlib.asynccontextmanager
async def live_page(root: Path, report: Report) -> AsyncIterator[LivePage]:
    """A page that shows `report`, on a loopback port while the block runs. Its URL is on stderr.

    A browser opens it where somebody can see that.
    """
    page = html.page(dump(report), f"Mutation report of {root.name}", live=True)
    async with _live_class()(page) as live:
        click.echo(f"msp-bridge: the report fills at {live.url}", err=True)
        if _has_screen():
            live.awaited = await asyncio.to_thread(webbrowser.open, live.url)
        yield live


def check_live() -> None:
    """Raises ConfigurationError when what `--live` needs is not installed."""
    _live_class()


def _live_class() -> type[LivePage]:
    with of_extra("live", "--live needs the web server aiohttp"):
        from msp_bridge.reports.live import LivePage
    return LivePage


def _has_screen() -> bool:
    """Whether this is a terminal with a screen: a browser without one would take the terminal itself."""
    if not sys.stderr.isatty():
        return False
    return sys.platform == "darwin" or bool({"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys())


def _project(report: Report) -> Path:
    return Path(report.get("projectRoot") or Path.cwd())


@contextlib.contextmanager
def _collected(errors: list[BridgeError], file: Path) -> Iterator[None]:
    try:
        yield
    except StdoutFailed as error:
        errors.append(error)
    except OSError as error:
        errors.append(ConfigurationError(f"can't write {file}: {error.strerror}"))


def _prefix(project: Path, repository: str | None) -> str:
    """The path from the repository's root, to which places are relative in a CI job, to the project's."""
    if not repository or not project.is_relative_to(repository):
        return ""
    path = project.relative_to(repository).as_posix()
    return "" if path == "." else f"{path}/"

"""The options of the commands that end in a report: where it goes, in which forms, and which score is enough."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from attrs import frozen

from msp_bridge.cli.options import with_options
from msp_bridge.errors import ConfigurationError
from msp_bridge.jsonrpc.json_text import dump
from msp_bridge.reports import github, html, junit
from msp_bridge.reports.score import Score
from msp_bridge.reports.viewer import PACKAGE, Viewer

FILE = click.Path(dir_okay=False, path_type=Path)
Report = Mapping[str, Any]
NEEDS_NETWORK = f"needs the network for its viewer; to have it in the page: npm install --global {PACKAGE}"

OPTIONS: list[click.Parameter] = [
    click.Option(
        ["--threshold"], type=click.FloatRange(0, 100), metavar="PERCENT", help="Fail below this mutation score."
    ),
    click.Option(["--html"], type=FILE, metavar="FILE", help="Write a page that shows the report in a browser."),
    click.Option(
        ["--json"],
        type=FILE,
        metavar="FILE",
        help="Write a report in the standard format (mutation-testing-report-schema).",
    ),
    click.Option(
        ["--junit"], type=FILE, metavar="FILE", help="Write JUnit XML, where a missed mutant is a failed test."
    ),
    click.Option(
        ["--github"],
        is_flag=True,
        help="In GitHub Actions: annotate the lines that the tests miss, and summarise the job.",
    ),
]


@frozen
class Outputs:
    """The values of these options."""

    threshold: float | None
    html: Path | None
    json: Path | None
    junit: Path | None
    github: bool

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Outputs:
        """From click's values by name. Raises BadParameter when a file could not be written at the end."""
        for name in ("html", "json", "junit"):
            file = values[name]
            if file is not None and not file.absolute().parent.is_dir():
                raise click.BadParameter(f"there is no directory {file.absolute().parent}", param_hint=f"--{name}")
        return cls(*(values[name] for name in ("threshold", "html", "json", "junit", "github")))

    def write(self, root: Path, report: Report) -> None:
        """Every form of `report` that was asked for; the viewer is looked for at `root`. Raises ConfigurationError."""
        project = Path(report.get("projectRoot", root))
        _write(self.json, lambda: dump(report))
        if self.html is not None:
            viewer = Viewer.find(root)
            _write(self.html, lambda: html.page(dump(report), viewer, f"Mutation report of {project.name}"))
            if viewer.needs_network:
                click.echo(f"msp-bridge: {self.html} {NEEDS_NETWORK}", err=True)
        _write(self.junit, lambda: junit.document(report))
        if self.github:
            _to_github(project, report)

    def reached(self, score: Score) -> bool:
        """Whether `score` is enough; if not, says so on stderr."""
        if self.threshold is None or score.percent is None or score.percent >= self.threshold:
            return True
        click.echo(
            f"msp-bridge: the mutation score {score.percent:.1f} % is below the threshold of {self.threshold:g} %",
            err=True,
        )
        return False


output_options = with_options(OPTIONS)


def _write(file: Path | None, content: Callable[[], bytes], mode: str = "wb") -> None:
    if file is not None:
        data = content()
        try:
            with file.open(mode) as opened:
                opened.write(data)
        except OSError as error:
            raise ConfigurationError(f"can't write {file}: {error.strerror}") from None


def _to_github(project: Path, report: Report) -> None:
    """Annotations are lines of the job's log; the summary goes to the file that the job's environment names."""
    for line in github.warnings(report, _prefix(project)):
        click.echo(line.encode("utf-8", "backslashreplace"))
    if file := os.environ.get("GITHUB_STEP_SUMMARY"):
        text = github.summary(report).encode("utf-8", "backslashreplace")
        _write(Path(file), lambda: text, "ab")  # other steps write there too


def _prefix(project: Path) -> str:
    """The way from the repository's root, to which annotations are relative, to the project's."""
    repository = os.environ.get("GITHUB_WORKSPACE")
    if not repository or not project.is_relative_to(repository):
        return ""
    way = project.relative_to(repository).as_posix()
    return "" if way == "." else f"{way}/"

"""KnownResults: what kept runs say of a project's mutants, for the commands that show or use it. No tool is started."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import click
from attrs import frozen

from msp_bridge.cli.options import OPTIONS, Options
from msp_bridge.environment.cache import cache_of
from msp_bridge.errors import CommandLineError, suggestion
from msp_bridge.model import Mutant, Status
from msp_bridge.reports.accepted import AcceptedSurvivors
from msp_bridge.reports.kept import FOLDER, KeptReports, LastResult, last_results
from msp_bridge.reports.standard import Report
from msp_bridge.reports.terminal import Sources
from msp_bridge.workspace.targets import select

NO_RUN = "no run of this project is kept"
PROJECT_OPTIONS = [option for option in OPTIONS if option.name in ("root", "adapter", "config")]
NAMES = [str(option.name) for option in OPTIONS]
STATUSES = {status.value.casefold(): status for status in Status}


def kept_reports(root: Path) -> KeptReports:
    """The kept runs of the project at `root`."""
    return KeptReports(cache_of(root) / FOLDER)


def statuses(_: click.Context, __: click.Parameter, value: str | None) -> frozenset[Status] | None:
    """The value of `--status`: names with commas between them."""
    if value is None:
        return None
    names = [name.strip() for name in value.split(",")]
    for name in names:
        if name.casefold() not in STATUSES:
            known = [status.value for status in Status]
            raise click.BadParameter(f"there is no status {name!r}; {suggestion(name.title(), known)}")
    return frozenset(STATUSES[name.casefold()] for name in names)


STATUS = click.Option(
    ["--status"], callback=statuses, metavar="STATUS,…", help="Only mutants with these statuses in the last results."
)
MUTATOR = click.Option(["--mutator"], metavar="NAME", help="Only mutants of the mutators with NAME in their name.")


def of_mutator(mutant: Mutant, name: str | None) -> bool:
    """Whether `mutant` is of a mutator with `name` in its name; case doesn't count."""
    return name is None or name.casefold() in mutant.mutator.casefold()


@frozen(slots=False)
class KnownResults:
    """The last results of the project at `root`; accepted survivors are Ignored in them."""

    root: Path

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> KnownResults:
        """The project of a command, from click's values by name. Raises ConfigurationError."""
        return cls(Options.of({**dict.fromkeys(NAMES), **values}, search=True).root)

    @cached_property
    def kept(self) -> KeptReports:
        """The kept runs."""
        return kept_reports(self.root)

    @cached_property
    def accepted(self) -> AcceptedSurvivors:
        """The accepted survivors. Raises ConfigurationError."""
        return AcceptedSurvivors.of(self.root)

    @cached_property
    def report(self) -> Report:
        """The last result of each mutant. Raises CommandLineError when no run is kept."""
        report = self.kept.last()
        if report is None:
            raise CommandLineError(f"{NO_RUN} ({self.root})", "`msp-bridge run` tests it")
        return self.accepted.judged_report(report)

    @cached_property
    def results(self) -> list[LastResult]:
        """The last results, file by file."""
        return last_results(self.report, Sources(self.root).of)

    def wanted(
        self, paths: Sequence[str] = (), only: Collection[Status] | None = None, mutator: str | None = None
    ) -> list[LastResult]:
        """The last results with these statuses, at these places, of this mutator. Raises ConfigurationError."""
        selected = select(self.root, paths)
        selection = selected.selection.within(self.root)
        return [
            last
            for last in self.results
            if (only is None or last.result.status in only)
            and of_mutator(last.mutant, mutator)
            and (not paths or (selection.takes(last.mutant) and selected.takes(last.mutant)))
        ]

    def named(self, names: Sequence[str]) -> list[LastResult]:
        """The last results of these mutants, each an id or FILE:LINE[:COL]. Raises ConfigurationError."""
        found: dict[str, LastResult] = {}
        for name in names:
            ids = [last for last in self.results if name in (last.entry.result.mutant.id, last.mutant.id)]
            here = ids or ([] if name.isdecimal() else self.wanted([name]))
            if not here:
                raise CommandLineError(
                    f"the last results have no mutant {name}", "`msp-bridge results --all` lists them with their ids"
                )
            found |= {last.entry.result.mutant.id: last for last in here}
        return list(found.values())

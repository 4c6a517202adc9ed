"""KnownResults: what kept runs say of a project's mutants, for whatever shows or uses it. No tool is started."""

import time
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path

from attrs import define, field, frozen

from msp_bridge.environment.cache import cache_of, make_private
from msp_bridge.errors import CommandLineError, ConfigurationError, suggestion
from msp_bridge.model import Mutant, Result, Status
from msp_bridge.reports.accepted import AcceptedSurvivors
from msp_bridge.reports.kept import FOLDER, STARTED, WHOLE, KeptReports, LastResult, joined, last_results, started
from msp_bridge.reports.results import MutantContent
from msp_bridge.reports.standard import Report, report
from msp_bridge.reports.terminal import Sources
from msp_bridge.workspace.targets import select

MAX_NAME = 100  # characters of a wrong name that an error shows
NO_RUN = "no run of this project is kept"


def kept_reports(root: Path) -> KeptReports:
    """The kept runs of the project at `root`."""
    return KeptReports(cache_of(root) / FOLDER)


def of_mutator(mutant: Mutant, name: str | None) -> bool:
    """Whether `mutant` is of a mutator with `name` in its name; case doesn't count."""
    return name is None or name.casefold() in mutant.mutator.casefold()


def statuses_named(names: Collection[str]) -> frozenset[Status]:
    """The statuses with these names; case doesn't count. Raises ConfigurationError."""
    known = {status.value.casefold(): status for status in Status}
    for name in names:
        if name.casefold() not in known:
            remedy = suggestion(name[:MAX_NAME].title(), [status.value for status in Status])
            raise ConfigurationError(f"there is no status {name[:MAX_NAME]!r}", remedy)
    return frozenset(known[name.casefold()] for name in names)


@frozen(slots=False)
class KnownResults:
    """The last results of the project at `root`; accepted survivors are Ignored in them."""

    root: Path

    @cached_property
    def kept(self) -> KeptReports:
        """The kept runs."""
        return kept_reports(self.root)

    def keep(self, report: Report, instead: Path | None = None) -> Path:
        """Keep `report` of a run, in place of the kept one in the file `instead`. Raises ConfigurationError."""
        cache = cache_of(self.root)
        try:
            make_private(cache, self.root)
            return self.kept.keep(report, instead)
        except OSError as error:
            raise ConfigurationError(f"can't keep the results in {cache}: {error.strerror}") from None

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
        takes = select(self.root, paths).takes
        return [
            last
            for last in self.results
            if (only is None or last.result.status in only) and of_mutator(last.mutant, mutator) and takes(last.mutant)
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

    def accept(self, chosen: Sequence[LastResult], reason: str) -> list[MutantContent]:
        """Accept the survivors among `chosen`; return the new entries. Raises ConfigurationError."""
        if not reason.strip():
            raise CommandLineError("the reason is empty", "say why no test can or should kill them")
        survivors = [last for last in chosen if last.result.status.undetected]
        if not survivors:
            raise CommandLineError("no survivor is selected", "`msp-bridge results` lists them")
        return self.accepted.accept([self._entry(last) for last in survivors], reason.strip())

    def _entry(self, last: LastResult) -> tuple[MutantContent, str]:
        """The content in the file as it is now, and the mutator. Raises CommandLineError when the mutant is stale."""
        content = None if last.stale else self.accepted.content(last.mutant)
        if content is None:
            raise CommandLineError(f"{last.mutant.path} has changed since", "`msp-bridge run` tests its mutants again")
        return content, last.mutant.mutator


@define(eq=False)
class KeptRun:
    """The kept run of a program that tests again and again: it grows."""

    root: Path
    _report: Report | None = field(default=None, repr=False)
    _file: Path | None = None

    def add(self, results: Sequence[Result]) -> None:
        """Add `results`, which take the place of earlier ones. Raises ConfigurationError."""
        if results:
            new = report(self.root, results, {STARTED: started(time.time()), WHOLE: False})
            self._report = new if self._report is None else joined([new, self._report])
            assert self._report is not None
            self._file = KnownResults(self.root).keep(self._report, self._file)

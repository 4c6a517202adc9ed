"""ResultsOnDisk: the kept results, read again when a run has been kept, a source was edited or a survivor accepted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import define

from msp_bridge.errors import CommandLineError
from msp_bridge.isolation.left_out import ACCEPTED
from msp_bridge.last_results import KnownResults
from msp_bridge.model import Result
from msp_bridge.reports.kept import LastResult, last_results
from msp_bridge.reports.standard import report
from msp_bridge.reports.terminal import Sources

Look = tuple[object, ...]


@define(eq=False)
class ResultsOnDisk:
    """The last results of the project at `root`, of these paths and of this mutator."""

    root: Path
    paths: Sequence[str] = ()
    mutator: str | None = None
    _sources: tuple[Path, ...] = ()
    _seen: Look | None = None

    def load(self) -> list[LastResult]:
        """Read them. Raises ConfigurationError."""
        known, self._seen = KnownResults(self.root), self._look()
        self._sources = tuple(self.root / path for path in known.report["files"])
        self._seen = self._look()  # before the files are read: what comes later is seen by the next look
        return known.wanted(self.paths, mutator=self.mutator)

    def fresh(self, results: Sequence[Result]) -> list[LastResult]:
        """Results that have just come, as `load` would have them. Raises ConfigurationError."""
        judged = KnownResults(self.root).accepted.judged_report(report(self.root, results))
        return last_results(judged, Sources(self.root).of)

    def changed(self) -> bool:
        """Whether `load` could find other results than the last time."""
        return self._look() != self._seen

    def accept(self, last: LastResult, reason: str) -> None:
        """Accept a survivor. Raises ConfigurationError."""
        if not KnownResults(self.root).accept([last], reason):
            raise CommandLineError("it is accepted already")

    def _look(self) -> Look:
        runs = KnownResults(self.root).kept.directory
        return tuple(_state(file) for file in (runs, self.root / ACCEPTED, *self._sources))


def _state(file: Path) -> Look:
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino

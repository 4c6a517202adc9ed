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
        known, kept = KnownResults(self.root), self._look_at_kept()
        self._seen = kept + self._look_at_sources()
        self._sources = tuple(self.root / path for path in known.report["files"])
        self._seen = kept + self._look_at_sources()  # each before it is read: the next look sees what comes later
        return known.wanted(self.paths, mutator=self.mutator)

    def fresh(self, results: Sequence[Result]) -> list[LastResult]:
        """Results that have just come, as `load` would have them. Raises ConfigurationError."""
        judged = KnownResults(self.root).accepted.judged_report(report(self.root, results))
        return last_results(judged, Sources(self.root).of)

    def changed(self) -> bool:
        """Whether `load` could find other results than the last time."""
        return self._look_at_kept() + self._look_at_sources() != self._seen

    def accept(self, last: LastResult, reason: str) -> None:
        """Accept a survivor. Raises ConfigurationError."""
        if not KnownResults(self.root).accept([last], reason):
            raise CommandLineError("it is accepted already")

    def _look_at_kept(self) -> Look:
        return _state(KnownResults(self.root).kept.directory), _state(self.root / ACCEPTED)

    def _look_at_sources(self) -> Look:
        return tuple(map(_state, self._sources))


def _state(file: Path) -> Look:
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino

"""Results in the terminal: a bar while they come, each surviving mutant as a small diff, and a summary."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from msp_bridge.model import Mutant, Result, Status
from msp_bridge.reports.diff import Diff
from msp_bridge.reports.score import Score
from msp_bridge.source import SourceText

COLOURS = {
    Status.KILLED: "green",
    Status.TIMEOUT: "green",
    Status.SURVIVED: "red",
    Status.NO_COVERAGE: "yellow",
    Status.COMPILE_ERROR: "magenta",
    Status.RUNTIME_ERROR: "magenta",
    Status.IGNORED: "dim",
    Status.PENDING: "dim",
}
REASON_LINES = 4  # of the message of an error: enough to know it again


class TerminalReport:
    """Use as a context manager; call `show` with each result, then `summary`."""

    def __init__(self, root: Path, console: Console, total: int) -> None:
        self._root, self._console = root, console
        self._score = Score()
        self._sources: dict[str, SourceText | None] = {}
        self._progress = Progress(
            TextColumn("testing"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._bar = self._progress.add_task("", total=total, counts="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, result: Result) -> None:
        """Count a result, and print it if the tests didn't kill its mutant."""
        self._score.add(result)
        self._progress.update(self._bar, advance=1, counts=self._counts())
        if result.status not in (Status.KILLED, Status.TIMEOUT, Status.IGNORED, Status.COMPILE_ERROR):
            self._console.print(self._missed(result), soft_wrap=True)

    def summary(self) -> None:
        """Of the results so far."""
        self._console.print(summary(self._score))

    def _counts(self) -> str:
        shown = ((status, self._score.counts[status]) for status in Status)
        return "  ".join(f"[{COLOURS[status]}]{status.value} {count}[/]" for status, count in shown if count)

    def _missed(self, result: Result) -> Text:
        mutant, status = result.mutant, result.status
        start = mutant.location.start
        text = Text()
        text.append(f"{status.value}", style=f"bold {COLOURS[status]}")
        text.append(f"  {mutant.path}:{start.line}:{start.column}  ")
        text.append(f"{mutant.mutator}\n", style="dim")
        for sign, line in self._diff(mutant):
            text.append(f"    {sign} {line}\n", style={"-": "red", "+": "green"}.get(sign, "dim"))
        if status is Status.RUNTIME_ERROR and result.status_reason:
            for line in result.status_reason.strip().splitlines()[-REASON_LINES:]:
                text.append(f"    {line}\n", style="dim")
        return text

    def _diff(self, mutant: Mutant) -> Sequence[tuple[str, str]]:
        if mutant.path not in self._sources:
            try:
                self._sources[mutant.path] = SourceText.read(self._root / mutant.path)
            except (OSError, UnicodeDecodeError):
                self._sources[mutant.path] = None
        source = self._sources[mutant.path]
        try:
            return [] if source is None else list(Diff.of(source, mutant).lines())
        except ValueError:  # edited during the run
            return []


def summary(score: Score) -> Table:
    """The count of each status, and the mutation score."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for status in Status:
        if count := score.counts[status]:
            table.add_row(Text(status.value, style=COLOURS[status]), str(count))
    table.add_row("mutation score", "-" if score.percent is None else f"{score.percent:.1f} %", style="bold")
    return table

"""Results in the terminal: a bar while they come, each surviving mutant as a small diff, and a summary.

Names and messages of projects and tools are shown with `visible`: no control character reaches the terminal.
"""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column, Table
from rich.text import Text

from msp_bridge.model import Mutant, Result, Status
from msp_bridge.notices import PhaseReport
from msp_bridge.phases import DISCOVERING
from msp_bridge.reports.results import Score, changed_lines, most_telling, replacement_of, worst_first
from msp_bridge.source import SourceText
from msp_bridge.text import counted, first_of, one_line, visible

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
PREPARING = PhaseReport("preparing")  # until a tool says what it is doing
TESTING = "testing"
AGAIN_S = 30.0
UNTESTED = (Status.IGNORED, Status.COMPILE_ERROR)  # may be known before the tests have run at all
UNDETECTED = (Status.SURVIVED, Status.NO_COVERAGE)
PATHS = partial(Column, overflow="fold")  # what a path ends with tells it from others
COLUMNS = ("Mutants", "Killed", "Survived", "No coverage", "Score")
SIGNS = {"-": "red", "+": "green"}
MAX_TESTS = 20  # names of tests that are shown
MAX_FILES = 10  # in the table of a summary
REASON_LINES = 4  # of the message of an error: enough to recognise it


def is_terminal(console: Console) -> bool:
    """Whether lines can be drawn over. FORCE_COLOR asks for colours in a file, too, but not for a bar."""
    return console.is_terminal and console.file.isatty()


class PhaseLines:
    """Says each phase in a line on stderr, for a run whose output is no terminal: a CI's log, or a pipe."""

    def __init__(self) -> None:
        self._due = dict[str, float]()  # by the phase's name

    def show(self, phase: PhaseReport) -> None:
        """Say the phase once, as several mutants' phases may alternate; then how far it has come, twice a minute."""
        now, begins = time.monotonic(), phase.name not in self._due
        said = begins or phase.test or (phase.done and now >= self._due[phase.name])
        if said:
            sys.stderr.write(f"msp-bridge: {one_line(str(phase) if phase.test or not begins else phase.name)} …\n")
            sys.stderr.flush()
        if said or not phase.done:
            self._due[phase.name] = now + AGAIN_S


@contextlib.contextmanager
def discovery_status(console: Console, tools: str) -> Iterator[Callable[[PhaseReport], None]]:
    """Show on a terminal what is done until the mutants are known. What it yields takes the phases."""
    text = f"{one_line(tools)}: {DISCOVERING}"
    if not is_terminal(console):
        yield lambda _: None
        return
    with console.status(Text(text)) as status:
        yield lambda phase: status.update(Text(f"{text} ({phase.done}/{phase.total})" if phase.total else text))


class _Steps(MofNCompleteColumn):
    """`12/40`; nothing where nobody knows how many there are."""

    def render(self, task: Task) -> Text:
        return Text() if task.total is None else super().render(task)


class TerminalReport:
    """Use as a context manager; call `show` with each result, then `summary`. A `quiet` one shows no mutants.

    Paths are shown relative to the current directory, as a terminal and an editor can open them.
    """

    def __init__(self, root: Path, console: Console, total: int, *, quiet: bool = False) -> None:
        self._root, self._console, self._quiet = root, console, quiet
        self._score, self._results = Score(), list[Result]()
        self._sources, self._started = Sources(root), time.monotonic()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            _Steps(),
            TextColumn("{task.fields[counts]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=quiet or not is_terminal(console),
            transient=True,
        )
        self._total = total
        self._begin(PREPARING)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._progress.disable:  # rich before 14.3 prints a line: https://github.com/Textualize/rich/pull/3905
            self._progress.stop()

    def show_phase(self, phase: PhaseReport) -> None:
        """Show the phase before the first result, with a bar and a time of its own. From any thread.

        A test that may hang is named in a line of its own, also later.
        """
        if phase.test and not self._quiet:
            self._console.print(Text(one_line(str(phase))), soft_wrap=True)
        if any(status not in UNTESTED for status in self._score.counts):
            return
        if phase.name != self._phase:
            self._begin(phase)
        self._progress.update(self._bar, total=phase.total, completed=phase.done)

    def show(self, result: Result) -> None:
        """Count a result, and print it if the tests didn't kill its mutant."""
        self._score.add(result)
        self._results.append(result)
        if self._phase != TESTING:  # what is left is estimated from what mutants take, not from the preparation
            self._begin(PhaseReport(TESTING, 0, self._total))
        self._progress.update(self._bar, completed=self._score.counts.total(), counts=self._counts())
        hidden = (Status.KILLED, Status.TIMEOUT, Status.IGNORED, Status.COMPILE_ERROR)
        if not self._quiet and result.status not in hidden:
            self._console.print(missed(self._root, result, self._sources.of(result.mutant.path)), soft_wrap=True)

    def _begin(self, phase: PhaseReport) -> None:
        """A bar of its own: how long the phase takes is estimated from what its own steps take."""
        for bar in self._progress.task_ids:
            self._progress.remove_task(bar)
        self._phase = phase.name
        self._bar = self._progress.add_task(phase.name, total=phase.total, completed=phase.done or 0, counts="")

    def summary(self, *, every: bool = False) -> None:
        """Summarize the results so far; by file, the worst ten, or `every` one."""
        show_summary(self._console, self._root, self._results, every=every)
        taken = time.strftime("%H:%M:%S", time.gmtime(time.monotonic() - self._started))
        self._console.print(Text(f"time            {taken}", style="dim"))
        if telling := most_telling(self._results):
            self._console.print(f"next: msp-bridge show {_place(self._root, telling[0].mutant)}", soft_wrap=True)

    def _counts(self) -> str:
        shown = ((status, self._score.counts[status]) for status in Status)
        return "  ".join(f"[{COLOURS[status]}]{status.value} {count}[/]" for status, count in shown if count)


def missed(root: Path, result: Result, source: SourceText | None, note: str = "") -> Text:
    """A mutant as a small diff of `source`, with its status, place, and why it has no verdict."""
    mutant, status = result.mutant, result.status
    text = Text()
    text.append(f"{status.value}", style=f"bold {COLOURS[status]}")
    text.append(f"  {_place(root, mutant)}  ")
    text.append(f"{one_line(mutant.mutator)}{note}\n", style="dim")
    for sign, line in changed_lines(source, mutant):
        text.append(f"    {sign} {visible(line)}\n", style=SIGNS.get(sign, "dim"))
    if status in (Status.RUNTIME_ERROR, Status.IGNORED) and result.status_reason:
        for line in result.status_reason.strip().splitlines()[-REASON_LINES:]:
            text.append(f"    {visible(line)}\n", style="dim")
    return text


def evidence(result: Result) -> Text:
    """Say what a result rests on: the tests, the time, and the tool's reason, a line each."""
    text = Text()
    for title, names in (("killed by", result.killed_by), ("covered by", result.covered_by)):
        for name in first_of(names or (), MAX_TESTS, one_line):
            text.append(f"{title}  {name}\n")
    if result.duration is not None:
        text.append(f"time  {result.duration:.0f} ms\n")
    if result.status_reason and result.status is not Status.IGNORED:
        text.append(f"reason\n{visible(result.status_reason.strip())}\n")
    return text


def show_summary(console: Console, root: Path, results: Sequence[Result], *, every: bool = False) -> None:
    """The scores of files, the worst first, where there are several; then the count of each status.

    Those ten are shown in which most is missed; `every` file, if that is asked for.
    """
    files = worst_first(results)
    if len(files) > 1:
        shown = files if every else [each for each in files if each[1].undetected][:MAX_FILES]
        table = Table(PATHS("File"), *COLUMNS, box=None, padding=(0, 2, 0, 0))
        for column in table.columns[1:]:
            column.justify = "right"
        for path, score in shown:
            counts = (score.detected, *(score.counts[status] for status in UNDETECTED))
            table.add_row(shown_path(root, path), str(score.counts.total()), *map(str, counts), score.text)
        if shown:
            console.print(table)
            if more := len(files) - len(shown):
                console.print(f"… {counted(more, 'more file')}: --all shows every file")
    console.print(summary(Score.of(results)))


def mutant_table(root: Path, mutants: Iterable[Mutant]) -> Table:
    """A line for each mutant."""
    table = Table(PATHS("Location"), "Mutator", "Replacement", box=None, padding=(0, 2, 0, 0))
    sources = Sources(root)
    for mutant in mutants:
        first, *more = mutant.replacement.strip().splitlines() or [replacement_of(mutant, sources.of(mutant.path))]
        table.add_row(_place(root, mutant), one_line(mutant.mutator), one_line(first) + (" …" if more else ""))
    return table


class Sources:
    """The texts of a project's files, each read once."""

    def __init__(self, root: Path) -> None:
        self._root, self._known = root, dict[str, SourceText | None]()

    def of(self, path: str) -> SourceText | None:
        """The text of `path`; None where it can't be read."""
        if path not in self._known:
            self._known[path] = SourceText.read_or_none(self._root / path)
        return self._known[path]


def _place(root: Path, mutant: Mutant) -> str:
    return f"{shown_path(root, mutant.path)}:{mutant.location.start}"


def shown_path(root: Path, path: str) -> str:
    """A file of the project at `root`, relative to the current directory."""
    return one_line(os.path.relpath(root / path))


def summary(score: Score) -> Table:
    """The count of each status, and the mutation score."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for status in Status:
        if count := score.counts[status] - (score.accepted if status is Status.IGNORED else 0):
            table.add_row(Text(status.value, style=COLOURS[status]), str(count))
    if score.accepted:
        table.add_row(Text("accepted", style="dim"), f"{score.accepted} (survivors)")
    if score.reused:
        table.add_row(Text("reused", style="dim"), f"{score.reused} (unchanged)")
    table.add_row("mutation score", score.text, style="bold")
    return table

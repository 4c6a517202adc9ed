"""Measuring: repeats, alternates, and shows how far the values spread. No verdicts: a machine may be busy."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import psutil
from attrs import frozen
from rich.console import Console
from rich.table import Table

Values = Mapping[str, float]  # what one go has cost, by metric: {"wall ms": 131.0, "CPU ms": 95.2}
Go = Callable[[], Values]


@frozen
class Series:
    """The values of one metric, in the order in which they were measured."""

    values: Sequence[float]

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        """The smallest value: the least disturbed one, when the metric is a time."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The largest value."""
        return max(self.values)


@frozen
class Comparison:
    """One line of the table: a metric of ours beside the same metric of something else, go by go."""

    what: str
    metric: str
    ours: Series
    other: str | None = None  # the name of the other side; None when there is nothing to compare with
    theirs: Series | None = None
    aim: str = ""

    @property
    def ratio(self) -> Series | None:
        """Ours by theirs, each pair measured one right after the other."""
        if self.theirs is None:
            return None
        return Series([mine / its for mine, its in zip(self.ours.values, self.theirs.values, strict=True)])


def alternate(rounds: int, sides: Mapping[str, Go], warm_up: bool = True) -> dict[str, list[Values]]:
    """Each side once a round, in turns, in the opposite order every other round; the warm-up round doesn't count."""
    if warm_up:
        for go in sides.values():
            go()
    measured: dict[str, list[Values]] = {name: [] for name in sides}
    for round in range(rounds):
        for name in list(sides)[:: 1 if round % 2 == 0 else -1]:
            measured[name].append(sides[name]())
    return measured


def series(goes: Sequence[Values], metric: str) -> Series:
    """One metric of all goes."""
    return Series([go[metric] for go in goes])


def compare(
    what: str, measured: Mapping[str, Sequence[Values]], ours: str, other: str, aims: Mapping[str, str]
) -> list[Comparison]:
    """A line for each metric that is in `aims`."""
    return [
        Comparison(what, metric, series(measured[ours], metric), other, series(measured[other], metric), aim)
        for metric, aim in aims.items()
    ]


def cpu_of(pid: int) -> float:
    """Seconds of CPU that the process `pid` itself has had so far."""
    try:
        # The clock of another process, as clock_getcpuclockid(3) gives it: nanoseconds, where /proc has 10 ms.
        return time.clock_gettime((~pid << 3) | 2)
    except (OSError, AttributeError):  # not Linux
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system)


def cpu_of_tree(pid: int) -> float:
    """Seconds of CPU of the process, of its descendants, and (in 10 ms steps) of those that they have waited for."""
    process = psutil.Process(pid)
    total = 0.0
    for member in (process, *process.children(recursive=True)):
        try:
            waited_for = member.cpu_times()
            total += cpu_of(member.pid) + waited_for.children_user + waited_for.children_system
        except psutil.NoSuchProcess:  # its parent has its times now, or never will
            continue
    return total


def show(console: Console, title: str, comparisons: Iterable[Comparison]) -> None:
    """Median, then lowest to highest, of each side and of the ratio."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="dim")
    for heading in ("what", "metric", "msp-bridge", "compared with", "", "ratio", "aim"):
        table.add_column(heading, justify="left" if heading in ("what", "metric", "compared with") else "right")
    for comparison in comparisons:
        ratio = comparison.ratio
        table.add_row(
            comparison.what,
            comparison.metric,
            shown(comparison.ours),
            comparison.other or "",
            "" if comparison.theirs is None else shown(comparison.theirs),
            "" if ratio is None else shown(ratio),
            comparison.aim,
        )
    console.print(table)
    console.print()


def as_json(comparison: Comparison) -> dict[str, object]:
    """For a file: the medians, and the ratio's range."""
    ratio = comparison.ratio
    return {
        "what": comparison.what,
        "metric": comparison.metric,
        "ours": comparison.ours.median,
        "other": comparison.other,
        "theirs": None if comparison.theirs is None else comparison.theirs.median,
        "ratio": None if ratio is None else [ratio.median, ratio.low, ratio.high],
    }


def shown(series: Series) -> str:
    """`131 (128-140)`."""
    return f"{_number(series.median)} ({_number(series.low)}\N{EN DASH}{_number(series.high)})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"

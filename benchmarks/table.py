"""The table that the benchmarks end in."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import Comparison, Series


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


def shown(series: Series) -> str:
    """`131 (128-140)`."""
    return f"{_number(series.median)} ({_number(series.low)}\N{EN DASH}{_number(series.high)})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"

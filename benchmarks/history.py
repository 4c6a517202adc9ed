"""`python -m benchmarks.history`: draws `docs/images/performance.svg` from `history.json`.

Each entry of that file is one version that was measured by running it, and each of its figures a ratio to what was
measured beside it, in the same run: machines differ, ratios hardly do. A figure that a version has not is a gap.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from benchmarks.laboratory import HERE, REPOSITORY

HISTORY = HERE / "history.json"
PICTURE = REPOSITORY / "docs" / "images" / "performance.svg"
WIDTH, LEFT, RIGHT, TOP, PLOT, GAP = 760, 60, 40, 44, 90, 62  # px; PLOT is the height of one figure's plot
COLOUR, AIM = "#2563eb", "#9ca3af"
FONT = 'font-family="sans-serif" font-size="12"'

Entry = Mapping[str, Any]  # {"commit": …, "date": …, "figures": {name: ratio}}


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(picture(json.loads(HISTORY.read_text("utf-8"))), "utf-8")


def picture(history: Mapping[str, Any]) -> str:
    """The SVG: a plot for each figure, its aim as a dashed line, a point for each version that has it."""
    entries, figures = history["versions"], history["figures"]
    height = TOP + len(figures) * (PLOT + GAP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {FONT}>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="14">Ratios to what was measured beside it; less is better</text>',
    ]
    for number, (name, figure) in enumerate(figures.items()):
        lines += _plot(TOP + number * (PLOT + GAP), name, figure, entries)
    return "\n".join([*lines, "</svg>", ""])


def _plot(top: int, name: str, figure: Mapping[str, Any], entries: Sequence[Entry]) -> Iterator[str]:
    values = [entry["figures"].get(name) for entry in entries]
    highest = max([*(value for value in values if value is not None), figure.get("aim", 0)]) * 1.15 or 1
    bottom = top + 20 + PLOT
    step = (WIDTH - LEFT - RIGHT) / max(1, len(entries) - 1)

    def y(value: float) -> float:
        return round(bottom - value / highest * PLOT, 1)

    yield f'<text x="{LEFT}" y="{top + 10}" font-weight="bold">{escape(figure["title"])}</text>'
    yield f'<line x1="{LEFT}" y1="{bottom}" x2="{WIDTH - RIGHT}" y2="{bottom}" stroke="#d1d5db"/>'
    if "aim" in figure:
        at = y(figure["aim"])
        yield f'<line x1="{LEFT}" y1="{at}" x2="{WIDTH - RIGHT}" y2="{at}" stroke="{AIM}" stroke-dasharray="4 4"/>'
        yield f'<text x="{LEFT - 6}" y="{at + 4}" text-anchor="end" fill="{AIM}">{figure["aim"]:g}</text>'
    before: tuple[float, float] | None = None
    for number, (entry, value) in enumerate(zip(entries, values, strict=True)):
        x = round(LEFT + number * step, 1)
        yield f'<text x="{x}" y="{bottom + 16}" text-anchor="middle" fill="#6b7280">{escape(entry["commit"])}</text>'
        if value is None:
            before = None
            continue
        if before is not None:
            line = f'x1="{before[0]}" y1="{before[1]}" x2="{x}" y2="{y(value)}"'
            yield f'<line {line} stroke="{COLOUR}" stroke-width="2"/>'
        before = x, y(value)
        yield f'<circle cx="{x}" cy="{y(value)}" r="4" fill="{COLOUR}"/>'
        yield f'<text x="{x}" y="{y(value) - 8}" text-anchor="middle">{value:g}</text>'


if __name__ == "__main__":
    main()

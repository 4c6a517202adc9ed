"""The scores of kept runs over time, as text, JSON and a picture, and the last one as a badge.

The pictures are SVG that loads nothing, no font either. The diagram has colours for a light and for a dark screen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any
from xml.etree import ElementTree as ET

from attrs import frozen

from msp_bridge.reports.kept import CHANGED, COMMIT, STARTED
from msp_bridge.reports.results import Score
from msp_bridge.reports.standard import Report, entries
from msp_bridge.text import counted

BAR = 2.5  # percent of a character
SHORT = 7  # digits of a commit
HASH = re.compile("[0-9a-f]{7,64}")
LABEL = "mutation score"
UNKNOWN = ("lightgrey", "#6e7781")
COLOURS = (  # from this score on: shields.io's name, and a colour on which white text can be read
    (80, ("brightgreen", "#1a7f37")),
    (60, ("yellow", "#9a6700")),
    (0, ("red", "#cf222e")),
)
BADGE_HEIGHT, BADGE_PADDING, BADGE_CHARACTER = 20, 6, 6.5  # pixels
BADGE_STYLE = "text{font:11px Verdana,DejaVu Sans,sans-serif;fill:#fff;text-anchor:middle}"
WIDTH, HEIGHT = 640, 220  # of the diagram, in pixels
LEFT, RIGHT, TOP, BOTTOM = 48, 24, 36, 48  # around its area
MOST_LABELS = 6  # below it: a date needs 70 pixels
STYLE = """
text{font:12px sans-serif;fill:#57606a}.title{font-weight:bold}.date{text-anchor:middle}.score{text-anchor:end}
.back{fill:#fff}.grid{stroke:#d0d7de}.line{stroke:#0969da;stroke-width:2;fill:none}.run{fill:#0969da}
@media(prefers-color-scheme:dark){text{fill:#9198a1}.back{fill:#0d1117}.grid{stroke:#3d444d}
.line{stroke:#4493f8}.run{fill:#4493f8}}
"""


@frozen
class TrendPoint:
    """One kept run. What a report doesn't say, or says in no form of ours, is None."""

    started: datetime | None  # in the local time of the run, mostly without a zone
    commit: str | None
    changed: bool | None  # whether tracked files differed from the commit
    score: Score

    @classmethod
    def of(cls, report: Report) -> TrendPoint:
        """The run of which `report` is."""
        config = report.get("config", {})
        commit, changed = config.get(COMMIT), config.get(CHANGED)
        return cls(
            _date(config.get(STARTED)),
            commit if isinstance(commit, str) and HASH.fullmatch(commit) else None,
            changed if isinstance(changed, bool) else None,
            Score.of(entry.result for entry in entries(report)),
        )

    @property
    def when(self) -> str | None:
        """Date and time, such as `2026-01-31 14:05`."""
        return None if self.started is None else f"{self.started:%Y-%m-%d %H:%M}"

    @property
    def revision(self) -> str | None:
        """The commit, short; with a `+` when tracked files differed from it."""
        return None if self.commit is None else self.commit[:SHORT] + "+" * bool(self.changed)

    @property
    def text(self) -> str:
        """A line for a terminal."""
        bar = "#" * round((self.score.percent or 0) / BAR)
        counts = f"{self.score.text:>7}  {self.score.undetected:>5} missed"
        return f"{self.when or '-':16}  {self.revision or '-':{SHORT + 1}}  {counts}  {bar}".rstrip()

    @property
    def title(self) -> str:
        """Name score, date and commit, as far as they are known."""
        return ", ".join(filter(None, [self.score.text, self.when, self.revision]))

    def json(self) -> dict[str, Any]:
        """The same as JSON values."""
        score = self.score
        counts = {"detected": score.detected, "undetected": score.undetected, "accepted": score.accepted}
        revision = {"commit": self.commit, "changed": self.changed}
        return {"started": self.when, **revision, "score": score.percent, "text": score.text, **counts}


def badge_json(score: Score) -> str:
    """The JSON of an endpoint badge (https://shields.io/badges/endpoint-badge)."""
    content = {"schemaVersion": 1, "label": LABEL, "color": _colours(score)[0], "message": _message(score)}
    return json.dumps(content) + "\n"


def badge_svg(score: Score) -> str:
    """The badge as a picture."""
    message = _message(score)
    left, right = (round(2 * BADGE_PADDING + BADGE_CHARACTER * len(text)) for text in (LABEL, message))
    svg = _svg(left + right, BADGE_HEIGHT, f"{LABEL}: {message}")
    ET.SubElement(svg, "style").text = BADGE_STYLE
    for x, width, text, colour in ((0, left, LABEL, "#444c56"), (left, right, message, _colours(score)[1])):
        ET.SubElement(svg, "rect", x=str(x), width=str(width), height=str(BADGE_HEIGHT), fill=colour)
        ET.SubElement(svg, "text", x=str(x + width / 2), y="14").text = text
    return _written(svg)


def diagram(points: Sequence[TrendPoint]) -> str:
    """An SVG picture of the scores, the oldest first; runs without a score are gaps. `points` has one at least."""
    svg = _svg(WIDTH, HEIGHT, f"Mutation score of {counted(len(points), 'run')}", "\n".join(p.title for p in points))
    ET.SubElement(svg, "style").text = STYLE
    ET.SubElement(svg, "rect", {"class": "back", "width": str(WIDTH), "height": str(HEIGHT)})
    _text(svg, LEFT, 20, f"Mutation score: {points[-1].title}", "title")
    for percent in (0, 50, 100):
        y = _y(percent)
        ET.SubElement(svg, "path", {"class": "grid", "d": f"M{LEFT} {y}H{WIDTH - RIGHT}"})
        _text(svg, LEFT - 8, y + 4, f"{percent} %", "score")
    for line in _lines(points):
        ET.SubElement(svg, "path", {"class": "line", "d": "M" + "L".join(f"{x} {y}" for x, y, _ in line)})
        for x, y, point in line:
            circle = ET.SubElement(svg, "circle", {"class": "run", "cx": str(x), "cy": str(y), "r": "3.5"})
            ET.SubElement(circle, "title").text = point.title
    step = -(-len(points) // MOST_LABELS)
    for index in range(len(points) - 1, -1, -step):
        point, x = points[index], _x(index, len(points))
        _text(svg, x, HEIGHT - 28, (point.when or "")[:10], "date")
        _text(svg, x, HEIGHT - 12, point.revision or "", "date")
    return _written(svg)


def _lines(points: Sequence[TrendPoint]) -> Iterator[list[tuple[float, float, TrendPoint]]]:
    """The runs between two gaps, each with its place."""
    for known, group in groupby(enumerate(points), key=lambda each: each[1].score.percent is not None):
        if known:
            yield [(_x(index, len(points)), _y(point.score.percent or 0), point) for index, point in group]


def _x(index: int, count: int) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * (index + 0.5) / count, 1)


def _y(percent: float) -> float:
    return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - percent / 100), 1)


def _svg(width: int, height: int, title: str, description: str = "") -> ET.Element:
    """An image with a name and a description for a reader that doesn't see it."""
    size = {"width": str(width), "height": str(height), "viewBox": f"0 0 {width} {height}"}
    svg = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, "role": "img"})
    svg.set("aria-labelledby", "title desc" if description else "title")
    ET.SubElement(svg, "title", id="title").text = title
    if description:
        ET.SubElement(svg, "desc", id="desc").text = description
    return svg


def _text(svg: ET.Element, x: float, y: float, text: str, name: str) -> None:
    ET.SubElement(svg, "text", {"class": name, "x": str(x), "y": str(y)}).text = text


def _written(svg: ET.Element) -> str:
    return ET.tostring(svg, encoding="unicode") + "\n"


def _message(score: Score) -> str:
    return "-" if score.percent is None else f"{score.percent:.0f} %"


def _colours(score: Score) -> tuple[str, str]:
    percent = score.percent
    return UNKNOWN if percent is None else next(colours for least, colours in COLOURS if percent >= least)


def _date(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None

"""MutantContent: what a mutant does to the code, without its line, so that it is found again in an edited file."""

from __future__ import annotations

from collections import defaultdict

from attrs import define, field, frozen

from msp_bridge.model import Mutant
from msp_bridge.reports.results import Diff
from msp_bridge.source import SourceText


@frozen(order=True)
class MutantContent:
    """The lines that a mutant changes, before and after, without indentation; the mutator's name is not part of it.

    `occurrence` counts from 1 the places of the file that have the same lines before.
    """

    path: str
    before: str
    after: str
    occurrence: int = 1


@define(eq=False)
class ContentIndex:
    """Tells the content of mutants of one text."""

    _source: SourceText
    _stripped: list[str] = field(init=False)
    _places: dict[str, list[int]] = field(init=False)  # 0-based lines with the same text

    def __attrs_post_init__(self) -> None:
        self._stripped = [line.strip() for line in self._source.text.split("\n")]
        self._places = defaultdict(list)
        for number, line in enumerate(self._stripped):
            self._places[line].append(number)

    def of(self, mutant: Mutant) -> MutantContent | None:
        """The content of `mutant`; None when the text has no such place."""
        try:
            diff = Diff.of(self._source, mutant)
        except ValueError:
            return None
        before, after = ([line.strip() for line in side] for side in (diff.before, diff.after))
        at = mutant.location.start.line - 1
        earlier = [line for line in self._same(before) if line < at]
        return MutantContent(mutant.path, "\n".join(before), "\n".join(after), len(earlier) + 1)

    def has(self, content: MutantContent) -> bool:
        """Whether the text has the lines of `content`, as often as it says."""
        return len(self._same(content.before.split("\n"))) >= content.occurrence

    def _same(self, lines: list[str]) -> list[int]:
        first = self._places.get(lines[0], [])
        return first if len(lines) == 1 else [at for at in first if self._stripped[at : at + len(lines)] == lines]

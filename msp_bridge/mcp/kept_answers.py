"""The answers of the tools that are about the last results, and about accepted survivors."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from msp_bridge.mcp.answers import Answer, Counts, MutantAnswer, Score, ShownMutant, summary
from msp_bridge.text import counted


class LastResults(Answer):
    """The answer of `results`."""

    total: Annotated[int, Field(description="Mutants that are selected.")]
    counts: Counts
    score: Score
    mutants: Annotated[list[MutantAnswer], Field(description="`outdated`: its lines have changed since.")]

    def text(self) -> str:
        """Implement `Answer`."""
        shown = f"{len(self.mutants)} of {counted(self.total, 'mutant')}"
        return "\n".join([f"{shown}: {summary(self.counts, self.score)}", *(mutant.text() for mutant in self.mutants)])


class NextSurvivor(ShownMutant):
    """The answer of `next_survivor`."""

    hint: Annotated[str, Field(description="Where an assertion is missing.")]
    remaining: Annotated[int, Field(description="Further survivors.")]

    def text(self) -> str:
        """Implement `Answer`."""
        return f"{super().text()}\n\n{self.hint}\n{counted(self.remaining, 'further survivor')}"


class AcceptedMutant(Answer):
    """The answer of `accept_mutant`."""

    file: Annotated[str, Field(description="The file that the entry was written to.")]
    written: Annotated[bool, Field(description="False: it was accepted before.")]

    def text(self) -> str:
        """Implement `Answer`."""
        return f"Accepted: {self.file} {'has a new entry' if self.written else 'had it already'}."

"""KnownMutants: the mutants and results that one server has seen since it started, and the most telling survivors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from attrs import define, field

from msp_bridge import reading
from msp_bridge.model import Mutant, Result, Status


@define
class KnownMutants:
    """Mutants by their ids, and the last result of each. A result counts while its file is as it was."""

    root: Path
    _mutants: dict[str, Mutant] = field(factory=dict)
    _results: dict[str, tuple[Result, str | None]] = field(factory=dict)  # with the digest of the file
    _digests: dict[str, str | None] = field(factory=dict)  # of the files as they were read last

    def listed(self, mutants: Collection[Mutant]) -> None:
        """Remember all mutants of some files, just discovered, and forget those that are gone. Call it in a thread."""
        paths, found = {mutant.path for mutant in mutants}, {mutant.id: mutant for mutant in mutants}
        self.read(paths)
        for id in [id for id, mutant in self._mutants.items() if mutant.path in paths and id not in found]:
            del self._mutants[id]
            self._results.pop(id, None)
        self._mutants |= found

    def read(self, paths: Iterable[str]) -> None:
        """Results from now on are of these files as they are now. Call it in a thread."""
        for path in paths:
            self._digests[path] = reading.digest(self.root / path)

    def tested(self, result: Result) -> None:
        """Remember a result."""
        self._results[result.mutant.id] = result, self._digests.get(result.mutant.path)

    def mutant(self, id: str) -> Mutant | None:
        """The mutant with this id, if it was listed since the start."""
        return self._mutants.get(id)

    def result(self, mutant: Mutant) -> Result | None:
        """Its last result, of whichever version of the file."""
        found = self._results.get(mutant.id)
        return None if found is None else found[0]

    def current(self) -> tuple[list[Result], int]:
        """The results of files that are as they were, by place, and how many others there are. Call it in a thread."""
        digests = {
            path: reading.digest(self.root / path) for path in {r.mutant.path for r, _ in self._results.values()}
        }
        found = [result for result, digest in self._results.values() if digest == digests[result.mutant.path]]
        return sorted(found, key=lambda result: place(result.mutant)), len(self._results) - len(found)

    def most_wanted(self, mutants: Sequence[Mutant]) -> list[Mutant]:
        """Those without a result of the file as it is first, then those that survived, then the others."""

        def rank(mutant: Mutant) -> int:
            result = self._latest(mutant)
            return 0 if result is None else 1 if result.status.undetected else 2

        return sorted(mutants, key=rank)

    def untested(self, mutants: Iterable[Mutant]) -> int:
        """How many of them have no result of the file as it was read last."""
        return sum(self._latest(mutant) is None for mutant in mutants)

    def _latest(self, mutant: Mutant) -> Result | None:
        """Its result of the file as it was read last."""
        result, digest = self._results.get(mutant.id, (None, None))
        return result if digest == self._digests.get(mutant.path) else None


def most_telling(results: Iterable[Result]) -> list[Result]:
    """Those that no test noticed: one for each line first, for the others of a line say much the same.

    Survived goes before NoCoverage, and code that more tests run goes first: there a test lacks an assertion, which is
    sooner found than a test that is missing.
    """
    missed = [result for result in results if result.status.undetected]
    missed.sort(
        key=lambda result: (result.status is not Status.SURVIVED, -len(result.covered_by or ()), place(result.mutant))
    )
    lines: set[tuple[str, int]] = set()
    first: list[Result] = []
    others: list[Result] = []
    for result in missed:
        line = (result.mutant.path, result.mutant.location.start.line)
        (others if line in lines else first).append(result)
        lines.add(line)
    return first + others


def place(mutant: Mutant) -> tuple[object, ...]:
    """Sorts mutants by file and position, in the same order each time."""
    return mutant.path, mutant.location.start, mutant.location.end, mutant.mutator, mutant.replacement

"""KnownMutants: the mutants and results that one server has seen since it started, and the most telling survivors.

A mutant is kept with the text that it was found in, so that it is never shown as a change of another one. A result is
kept with the version of all files that it is about (`FileVersions`): it counts while they are as they were.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from attrs import define, field, frozen

from msp_bridge.model import Mutant, Result
from msp_bridge.reports.results import place
from msp_bridge.source import SourceText
from msp_bridge.workspace.versions import FileVersions


@frozen
class Found:
    """A mutant, the text that it was found in (None: it can't be read), and the version of the files at that time."""

    mutant: Mutant
    source: SourceText | None
    version: int


@frozen
class _Verdict:
    result: Result
    version: int  # that it is about
    mixed: tuple[str, ...]  # files that were edited while it was found: it is about no version in particular


@define
class KnownMutants:
    """Mutants by their ids, and the last result of each. All is as of the last look of `versions`."""

    versions: FileVersions
    _found: dict[str, Found] = field(factory=dict)
    _verdicts: dict[str, _Verdict] = field(factory=dict)

    def listed(self, mutants: Collection[Mutant], sources: Mapping[str, SourceText | None], version: int) -> None:
        """Remember all mutants of the files `sources`, just discovered, and forget mutants that are gone."""
        found = {mutant.id: Found(mutant, sources[mutant.path], version) for mutant in mutants}
        for id in [id for id, known in self._found.items() if known.mutant.path in sources and id not in found]:
            del self._found[id]
            self._verdicts.pop(id, None)
        self._found |= found

    def tested(self, results: Iterable[Result], version: int, mixed: Sequence[str] = ()) -> None:
        """Remember results about the files in `version`, or partly so: the files `mixed` were edited meanwhile."""
        for result in results:
            if result.mutant.id in self._found:  # else it was forgotten meanwhile
                self._verdicts[result.mutant.id] = _Verdict(result, version, tuple(mixed))

    @property
    def paths(self) -> set[str]:
        """The files of all mutants that are known."""
        return {found.mutant.path for found in self._found.values()}

    def found(self, id: str) -> Found | None:
        """The mutant with this id, if it was listed since the start."""
        return self._found.get(id)

    def is_edited(self, found: Found) -> bool:
        """Whether the file of the mutant is not the one that it was found in."""
        return found.mutant.path in self.versions.changed(found.version)

    def result(self, mutant: Mutant) -> Result | None:
        """Its last result, of whichever version."""
        verdict = self._verdicts.get(mutant.id)
        return None if verdict is None else verdict.result

    def edited_since(self, mutant: Mutant) -> Sequence[str]:
        """The files that were edited since its result was found; empty when that counts, and without one."""
        verdict = self._verdicts.get(mutant.id)
        return () if verdict is None else verdict.mixed or self.versions.changed(verdict.version)

    def current(self) -> tuple[list[Result], list[Result], list[str]]:
        """The results that count, by place; the others; and the files that were edited since those were found."""
        verdicts = [verdict for verdict in self._verdicts.values() if self.versions.has(verdict.result.mutant.path)]
        edited = {version: self.versions.changed(version) for version in {each.version for each in verdicts}}
        current = [each.result for each in verdicts if not each.mixed and not edited[each.version]]
        outdated = [each for each in verdicts if each.mixed or edited[each.version]]
        files = {path for each in outdated for path in each.mixed} | {
            path for paths in edited.values() for path in paths
        }
        current.sort(key=lambda result: place(result.mutant))
        return current, [each.result for each in outdated], sorted(files)

    def most_wanted(self, mutants: Sequence[Mutant]) -> list[Mutant]:
        """Mutants without a result first, then outdated ones, then survivors, then the others."""
        current = self._current_ids()

        def rank(mutant: Mutant) -> int:
            result = self.result(mutant)
            if result is None:
                return 0
            return (3 if mutant.id in current else 1) + (not result.status.undetected)

        return sorted(mutants, key=rank)

    def untested(self, mutants: Iterable[Mutant]) -> int:
        """How many of them have no result about the files as they are."""
        current = self._current_ids()
        return sum(mutant.id not in current for mutant in mutants)

    def _current_ids(self) -> set[str]:
        return {result.mutant.id for result in self.current()[0]}

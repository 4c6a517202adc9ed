"""Selection: what a request is about, and which mutants that takes."""

from __future__ import annotations

import os
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TypeVar

from attrs import evolve, frozen

from msp_bridge.model import Location, Mutant, Scope
from msp_bridge.workspace.tree import Boundary


@frozen
class Target:
    """A file, a part of one, or a directory (whose path ends in `/`)."""

    path: str
    range: Location | None = None


@frozen
class KnownMutant:
    """A mutant that a client has from an earlier `discover`, perhaps of an earlier server process."""

    path: str
    location: Location
    mutator: str
    replacement: str | None

    def is_same(self, mutant: Mutant) -> bool:
        """Whether `mutant` is this one: same path, location, mutator and replacement, if the client sent that."""
        return (
            self.path == mutant.path
            and self.location == mutant.location
            and self.mutator == mutant.mutator
            and self.replacement in (None, mutant.replacement)
        )

    @property
    def mutant(self) -> Mutant | None:
        """As the model has it; None when the client sent no replacement, since the id is made of that too."""
        if self.replacement is None:
            return None
        return Mutant(self.path, self.mutator, self.location, self.replacement)


Item = TypeVar("Item", Target, KnownMutant)


@frozen
class Selection:
    """Targets or known mutants; the whole project when both are None. An empty tuple selects nothing."""

    targets: tuple[Target, ...] | None = None
    mutants: tuple[KnownMutant, ...] | None = None

    def within(self, root: Path) -> Selection:
        """The same selection with every path relative to `root`, as in the model; what lies outside is dropped."""
        relative = cache(partial(_relative, Boundary(root)))
        if self.mutants is not None:
            known = ((relative(mutant.path), mutant) for mutant in self.mutants)
            return Selection(mutants=tuple(_moved(mutant, path) for path, mutant in known if path is not None))
        if self.targets is not None:
            wanted = ((relative(target.path), target) for target in self.targets)
            return Selection(targets=tuple(_moved(target, path) for path, target in wanted if path is not None))
        return self

    @property
    def empty(self) -> bool:
        """Whether nothing can be selected."""
        return self.mutants == () or (self.mutants is None and self.targets == ())

    @cached_property
    def scope(self) -> Scope:
        """The files to discover."""
        if self.mutants is not None:
            return Scope(frozenset(mutant.path for mutant in self.mutants))
        if self.targets is not None:
            return Scope(frozenset(target.path for target in self.targets))
        return Scope()

    @property
    def named_files(self) -> list[str]:
        """The files that were named as a whole."""
        targets = self.targets or ()
        return [target.path for target in targets if target.range is None and not target.path.endswith("/")]

    def takes(self, mutant: Mutant) -> bool:
        """Whether `mutant`, of a file in scope, is selected: with a range, it must lie wholly within it."""
        if self.mutants is not None:
            return any(known.is_same(mutant) for known in self._known.get((mutant.path, mutant.location), ()))
        if self.targets is None or self._whole.covers(mutant.path):
            return True
        return any(range.contains(mutant.location) for range in self._ranges.get(mutant.path, ()))

    @cached_property
    def _known(self) -> dict[tuple[str, Location], list[KnownMutant]]:
        known: dict[tuple[str, Location], list[KnownMutant]] = {}
        for mutant in self.mutants or ():
            known.setdefault((mutant.path, mutant.location), []).append(mutant)
        return known

    @cached_property
    def _whole(self) -> Scope:
        return Scope(frozenset(target.path for target in self.targets or () if target.range is None))

    @cached_property
    def _ranges(self) -> dict[str, list[Location]]:
        ranges: dict[str, list[Location]] = {}
        for target in self.targets or ():
            if target.range is not None:
                ranges.setdefault(target.path, []).append(target.range)
        return ranges


def _moved(item: Item, path: str) -> Item:
    return item if item.path == path else evolve(item, path=path)


def relative_path(root: Path, path: str) -> str | None:
    """`path`, absolute or relative to `root`, as relative to `root` with `/`; None when it lies outside.

    A directory ends in `/`, whether or not the client said so. The root itself is `/`.
    """
    return _relative(Boundary(root), path)


def _relative(boundary: Boundary, path: str) -> str | None:
    relative = boundary.relative(path)
    if relative is None:
        return None
    if relative == ".":
        return "/"
    if path.endswith("/") or os.path.isdir(boundary.root / relative):
        relative += "/"
    return relative

"""Selection: what a request is about, and which mutants that takes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import Self, TypeVar

from attrs import evolve, field, frozen

from msp_bridge.model import Location, Mutant, Scope
from msp_bridge.workspace.tree import Boundary

MAGIC = frozenset("*?[{\\")  # what makes a pattern of a path


@frozen
class Target:
    """A file, a part of one, or a directory (whose path ends in `/`): all of it, or what `glob` matches below it.

    With a `range`, a mutant must lie wholly within it; `partly`: or with some of its text.
    """

    path: str
    range: Location | None = None
    glob: str | None = None  # relative to `path`
    partly: bool = False

    @classmethod
    def matching(cls, glob: str) -> Target:
        """The paths that `glob` matches, relative to the root: `*`, `?`, `[…]`, `{…,…}`, and `**` for directories.

        Raises ValueError when its braces stand for too many patterns.
        """
        magic = next((at for at, letter in enumerate(glob) if letter in MAGIC), None)
        if magic is None:
            return cls(glob)
        below = glob.rfind("/", 0, magic) + 1
        _matcher(glob[below:])
        return cls(glob[:below], glob=glob[below:])

    @property
    def whole(self) -> bool:
        """Whether all that lies there is meant."""
        return self.range is None and self.glob is None

    def takes(self, location: Location) -> bool:
        """Whether a mutant at `location` in this file lies in the range."""
        if self.range is None:
            return False
        return self.range.contains(location) or (self.partly and location.touches(self.range))


@frozen
class KnownMutant:
    """A mutant that a client has from an earlier `discover`, perhaps of an earlier server process."""

    path: str
    location: Location
    mutator: str
    replacement: str | None

    @classmethod
    def of(cls, mutant: Mutant) -> KnownMutant:
        """Make the mutant as a client knows it."""
        return cls(mutant.path, mutant.location, mutant.mutator, mutant.replacement)

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
        """The mutant as the model has it; None if the client sent no replacement, since the id depends on that too."""
        if self.replacement is None:
            return None
        return Mutant(self.path, self.mutator, self.location, self.replacement)


Item = TypeVar("Item", Target, KnownMutant)


@frozen
class Selection:
    """Targets or known mutants; the whole project when both are None. An empty tuple selects nothing."""

    targets: tuple[Target, ...] | None = None
    mutants: tuple[KnownMutant, ...] | None = None
    _root: Path | None = field(default=None, eq=False, repr=False)  # what every path is relative to, if that is known

    @classmethod
    def of(cls, mutants: Iterable[Mutant]) -> Self:
        """Exactly `mutants`."""
        return cls(mutants=tuple(map(KnownMutant.of, mutants)))

    def within(self, root: Path) -> Selection:
        """The same selection with every path relative to `root`, as in the model; what lies outside is dropped."""
        if self._root == root:
            return self
        relative = cache(partial(_relative, Boundary(root)))
        if self.mutants is not None:
            known = ((relative(mutant.path), mutant) for mutant in self.mutants)
            moved = tuple(_moved(mutant, path) for path, mutant in known if path is not None)
            return Selection(mutants=moved, root=root)
        if self.targets is not None:
            wanted = ((relative(target.path), target) for target in self.targets)
            return Selection(tuple(_moved(target, path) for path, target in wanted if path is not None), root=root)
        return self

    def split(self, size: int) -> Iterator[Selection]:
        """Selections that are this one together, each of at most `size` targets or mutants."""
        for at in range(0, self.size, size):
            yield evolve(
                self,
                targets=None if self.targets is None else self.targets[at : at + size],
                mutants=None if self.mutants is None else self.mutants[at : at + size],
            )

    @classmethod
    def joined(cls, parts: Sequence[Selection]) -> Selection:
        """Join what `split` has split. Each of `parts` has targets, or each has mutants."""
        if parts[0].mutants is None:
            targets = tuple(target for part in parts for target in part.targets or ())
            return evolve(parts[0], targets=targets)
        return evolve(parts[0], mutants=tuple(mutant for part in parts for mutant in part.mutants or ()))

    @property
    def size(self) -> int:
        """How many targets or mutants are named."""
        return max(len(self.targets or ()), len(self.mutants or ()))

    @property
    def of_whole_files(self) -> Selection:
        """The files that this is about, without ranges in them."""
        return self if self.targets is None else Selection(tuple(evolve(one, range=None) for one in self.targets))

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
        return [target.path for target in targets if target.whole and not target.path.endswith("/")]

    def takes(self, mutant: Mutant) -> bool:
        """Whether `mutant`, of a file in scope, is selected."""
        if self.mutants is not None:
            return any(known.is_same(mutant) for known in self._known.get((mutant.path, mutant.location), ()))
        if self.targets is None or self._whole.covers(mutant.path):
            return True
        if any(target.takes(mutant.location) for target in self._ranges.get(mutant.path, ())):
            return True
        return bool(self._globs) and self._matches(mutant.path)

    def takes_some_of(self, path: str) -> bool:
        """Whether mutants of the file `path`, which is in scope, may be selected."""
        if self.mutants is not None or self.targets is None or self._whole.covers(path) or path in self._ranges:
            return True
        return bool(self._globs) and self._matches(path)

    @cached_property
    def _known(self) -> dict[tuple[str, Location], list[KnownMutant]]:
        known: dict[tuple[str, Location], list[KnownMutant]] = {}
        for mutant in self.mutants or ():
            known.setdefault((mutant.path, mutant.location), []).append(mutant)
        return known

    @cached_property
    def _whole(self) -> Scope:
        return Scope(frozenset(target.path for target in self.targets or () if target.whole))

    @cached_property
    def _ranges(self) -> dict[str, list[Target]]:
        ranges: dict[str, list[Target]] = {}
        for target in self.targets or ():
            if target.range is not None:
                ranges.setdefault(target.path, []).append(target)
        return ranges

    @cached_property
    def _globs(self) -> list[tuple[str, Callable[[str], bool]]]:
        """Each with the directory that it is relative to, "" for the root."""
        globs = [(target.path.removeprefix("/"), target.glob) for target in self.targets or ()]
        return [(directory, _matcher(glob)) for directory, glob in globs if glob is not None]

    @cached_property
    def _matches(self) -> Callable[[str], bool]:
        """Whether a glob matches the file; once for each file, not for each mutant."""

        @cache
        def matches(path: str) -> bool:
            return any(path.startswith(base) and match(path[len(base) :]) for base, match in self._globs)

        return matches


@lru_cache
def _matcher(glob: str) -> Callable[[str], bool]:
    from wcmatch.glob import BRACE, GLOBSTAR, translate  # here: an editor waits for MSP, which has no globs

    try:
        expressions, _ = translate(glob, flags=BRACE | GLOBSTAR)
    except Exception as error:  # the class for too many of them is not public
        raise ValueError(f"{glob!r}: {error}") from error
    found = [re.compile(expression) for expression in expressions]
    return lambda path: any(expression.match(path) for expression in found)


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
    if path.endswith("/") or os.path.isdir(os.path.join(boundary.root, relative)):
        relative += "/"
    return relative

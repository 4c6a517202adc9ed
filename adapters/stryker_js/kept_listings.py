"""KeptListings: what StrykerJS has found in a project, kept, so that the next bridge need not ask it again.

A listing holds while all that StrykerJS reads for it is the same: the project and the packages
(`ProjectSandbox.state`), Node, StrykerJS itself. A configuration that is a program may read anything: nothing is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import frozen

from msp_bridge.adapter import Project
from msp_bridge.rows import mutant_of, mutant_row, names_of
from msp_bridge.toolkit.kept_answers import KeptAnswers, key_of

from .configuration import config_file
from .mutants import StrykerJsListing
from .sessions import StrykerJsSession

FORMAT = 2
Paths = frozenset[str] | None  # the files that were listed; None: all


@frozen
class KeptListings:
    """Kept listings of one state of a project. Both methods block."""

    _answers: KeptAnswers
    _state: object

    @classmethod
    def of(cls, project: Project, session: StrykerJsSession) -> KeptListings | None:
        """None where the configuration is a program."""
        config = config_file(project)
        if config is not None and config.suffix.lower() != ".json":
            return None
        node, stryker = session.toolchain.node, session.toolchain.installation
        state = (FORMAT, session.sandbox.state, config, node.version, stryker.version, stryker.directory)
        return cls(KeptAnswers.of(project.cache), state)

    def read(self, listings: Iterable[Paths]) -> dict[Paths, StrykerJsListing]:
        """Read the kept ones of these."""
        keys = {self._key(paths): paths for paths in listings}
        return {keys[key]: listing for key, listing in self._answers.find(keys, _listing).items()}

    def write(self, paths: Paths, listing: StrykerJsListing) -> None:
        """Keep a listing, unless it has no test runner, which is an error that says what to do."""
        if listing.missing_runner is None:
            self._answers.save({self._key(paths): _row(listing)})

    def _key(self, paths: Paths) -> bytes:
        return key_of(self._state, None if paths is None else sorted(paths))


def _row(listing: StrykerJsListing) -> list[Any]:
    return [
        [[mutant_row(mutant), ignored] for mutant, ignored in listing.found],
        dict(listing.broken),
        list(listing.patterns),
        sorted(listing.matched),
        listing.threshold,
        dict(listing.unknown),
    ]


def _listing(row: Any) -> StrykerJsListing:
    """Raises ValueError for what was not written here."""
    match row:
        case [list(found), dict(broken), patterns, matched, None | int() | float() as threshold, dict(unknown)]:
            return StrykerJsListing(
                [(mutant_of(mutant), ignored) for mutant, ignored in found],
                broken,
                names_of(patterns),
                frozenset(names_of(matched)),
                threshold=threshold,
                unknown=unknown,
            )
    raise ValueError("a row is no listing")

"""KeptListings: what StrykerJS has found in a project, kept in a file, so that the next bridge need not ask it again.

A listing holds while all that StrykerJS reads for it is the same: the project and the packages
(`ProjectSandbox.state`), Node, StrykerJS itself. A configuration that is a program may read anything: nothing is kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from attrs import frozen

from msp_bridge.adapter import Location, Mutant, Position, Project
from msp_bridge.writing import replace_content

from .configuration import config_file
from .mutants import StrykerJsListing
from .sessions import StrykerJsSession

NAME, FORMAT = "listings.json", 1
Paths = frozenset[str] | None  # the files that were listed; None: all
Listings = Mapping[Paths, StrykerJsListing]


@frozen
class KeptListings:
    """Those of one state of a project. Both methods block."""

    _file: Path
    _key: str

    @classmethod
    def of(cls, project: Project, session: StrykerJsSession) -> KeptListings | None:
        """None where the configuration is a program."""
        config = config_file(project)
        if config is not None and config.suffix.lower() != ".json":
            return None
        node, stryker = session.toolchain.node, session.toolchain.installation
        state = (FORMAT, session.sandbox.state, config, node.version, stryker.version, stryker.directory)
        key = blake2b(repr(state).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        return cls(project.cache / NAME, key)

    def read(self) -> dict[Paths, StrykerJsListing]:
        """Nothing where they are about another state, or damaged."""
        try:
            kept = json.loads(self._file.read_bytes())
            if kept["key"] != self._key:
                return {}
            return {_paths(paths): _listing(value) for paths, value in kept["listings"]}
        except (OSError, ValueError, TypeError, KeyError):
            return {}

    def write(self, listings: Listings) -> None:
        """Raises OSError. What has no test runner is not kept: it is an error, which says what to do."""
        kept = [
            [None if paths is None else sorted(paths), _value(listing)]
            for paths, listing in listings.items()
            if listing.missing_runner is None
        ]
        replace_content(self._file, json.dumps({"key": self._key, "listings": kept}))


def _paths(value: list[str] | None) -> Paths:
    return None if value is None else frozenset(value)


def _value(listing: StrykerJsListing) -> dict[str, Any]:
    found = []
    for mutant, ignored in listing.found:
        start, end = mutant.location.start, mutant.location.end
        place = [start.line, start.column, end.line, end.column]
        found.append([mutant.path, mutant.mutator, place, mutant.replacement, ignored])
    return {
        "found": found,
        "broken": dict(listing.broken),
        "patterns": list(listing.patterns),
        "matched": sorted(listing.matched),
        "threshold": listing.threshold,
        "unknown": dict(listing.unknown),
    }


def _listing(value: Mapping[str, Any]) -> StrykerJsListing:
    found = []
    for path, mutator, (line, column, end_line, end_column), replacement, ignored in value["found"]:
        location = Location(Position(line, column), Position(end_line, end_column))
        found.append((Mutant(path, mutator, location, replacement), ignored))
    return StrykerJsListing(
        found,
        value["broken"],
        value["patterns"],
        frozenset(value["matched"]),
        threshold=value["threshold"],
        unknown=value["unknown"],
    )

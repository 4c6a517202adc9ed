"""StrykerJsDiscovery: which mutants there are, remembered as long as nothing in the project has changed.

StrykerJS takes a second to start and to list them, so the next bridge knows them, too. A kept listing holds while all
that StrykerJS reads for it is the same: the project and the packages (`ProjectSandbox.state`), Node, StrykerJS itself.
A configuration that is a program may read anything: nothing is kept.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from msp_bridge import reading
from msp_bridge.adapter import Mutant, Notice, Project, Remark, Scope, ToolError, UnusableFile
from msp_bridge.concurrency import in_thread
from msp_bridge.rows import mutant_of, mutant_row, names_of
from msp_bridge.toolkit.kept_answers import KeptAnswers, key_of

from .configuration import config_file, patterns_of_packages
from .mutants import StrykerJsHandle, StrykerJsListing, unknown_option
from .sessions import StrykerJsSession

log = logging.getLogger(__name__)

CANT_INSTRUMENT = "StrykerJS can't instrument it"
REMEDY = "correct the file, or exclude it by `mutate`"
FORMAT = 2
Paths = frozenset[str] | None  # the files that were listed; None: all


class StrykerJsDiscovery:
    """Mutants and statuses of the project's present content."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._state: object = None
        self._known: dict[frozenset[str] | None, StrykerJsListing] = {}  # by the files that were listed; None: all
        self._kept: KeptListings | None = None
        self.threshold: float | None = None  # `thresholds.break`, as it was at the last look

    async def find(self, session: StrykerJsSession, scope: Scope) -> list[Mutant | Notice]:
        """The mutants in scope, file by file, with handles, and notices. Raises BridgeError."""
        named = await in_thread(self._files, scope)
        if named == frozenset():
            return []
        listing = await self.list(session, named)
        mutants: list[Mutant | Notice] = [
            found for found in _by_file(listing, session.sandbox.path) if scope.covers(found.path)
        ]
        broken = {path: reason for path, reason in listing.broken.items() if scope.covers(path)}
        mutants += (UnusableFile(path, f"{CANT_INSTRUMENT}: {reason}", REMEDY) for path, reason in broken.items())
        for path in sorted((named or frozenset()) - set(listing.matched)) if listing.patterns else ():
            why = f"StrykerJS's option `mutate` leaves it out, which is {', '.join(listing.patterns)}"
            addition = "".join(
                f"; add {pattern} for its package" for pattern in patterns_of_packages(self._project.root, [path])
            )
            mutants.append(Remark(f"has no mutants: {why}{addition}", path))
        mutants += (Remark(f"{unknown_option(option)}: {remedy}") for option, remedy in listing.unknown.items())
        return mutants

    async def list(
        self, session: StrykerJsSession, paths: frozenset[str] | None = None, *, anew: bool = False
    ) -> StrykerJsListing:
        """List the mutants in these files, or in all. `anew`: StrykerJS says so now. Raises BridgeError."""
        state = session.sandbox.state
        if self._state != state:
            kept = await in_thread(KeptListings.of, self._project, session)
            self._state, self._known, self._kept = state, {}, kept
        known, kept = self._known, self._kept  # another request may replace them meanwhile
        if anew:
            known.clear()
        elif kept is not None and known.keys().isdisjoint((None, paths)):
            known.update(await in_thread(kept.read, {None, paths}))
        paths = None if None in known else paths
        listing = known.get(paths)
        if listing is None:
            wanted = None if paths is None else sorted(paths)
            async with aclosing(session.isolation.run(partial(_listed, session, wanted))) as listings:
                [listing] = [each async for each in listings]
            known[paths] = listing
            if kept is not None:
                await in_thread(kept.write, paths, listing)
        self.threshold = listing.threshold
        return listing

    def _files(self, scope: Scope) -> frozenset[str] | None:
        """The files in scope if it names nothing but files, else None."""
        if scope.paths is None:
            return None
        root = self._project.root
        directories = [path for path in scope.paths if path.endswith("/") and (root / path).is_dir()]
        return None if directories else frozenset(path for path in scope.paths if (root / path).is_file())


async def _listed(
    session: StrykerJsSession, paths: Sequence[str] | None, isolated: bool
) -> AsyncGenerator[StrykerJsListing, None]:
    """One: what StrykerJS says. If it crashes, it is started again, once."""
    await session.isolate(isolated)
    process = await session.process()
    try:
        listing = await process.discover(paths)
    except ToolError as error:
        if not process.crashed:
            raise
        log.warning("%s; it is started again", error.problem)
        await session.end_process()
        listing = await (await session.process()).discover(paths)
    yield listing


def _by_file(listing: StrykerJsListing, sandbox: Path) -> list[Mutant | UnusableFile]:
    """File by file, in the order in which the files came, each mutant once, with its handle."""
    files: dict[str, dict[Mutant, str | None]] = {}
    for mutant, ignored in listing.found:
        files.setdefault(mutant.path, {}).setdefault(mutant, ignored)
    found: list[Mutant | UnusableFile] = []
    for path, mutants in files.items():
        if not (sandbox / path).is_file():
            found.append(UnusableFile(path, "StrykerJS takes a backslash for a separator", "rename the file"))
            continue
        digest = reading.digest(sandbox / path)
        found += (evolve(mutant, handle=StrykerJsHandle(digest, ignored)) for mutant, ignored in mutants.items())
    return found


@frozen
class KeptListings:
    """Kept listings of one state of a project. Both methods block."""

    _answers: KeptAnswers
    _state: object

    @classmethod
    def of(cls, project: Project, session: StrykerJsSession) -> KeptListings | None:
        """The listings for the present state; None where the configuration is a program."""
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
            found = [[mutant_row(mutant), ignored] for mutant, ignored in listing.found]
            files = [dict(listing.broken), list(listing.patterns), sorted(listing.matched)]
            self._answers.save({self._key(paths): [found, *files, listing.threshold, dict(listing.unknown)]})

    def _key(self, paths: Paths) -> bytes:
        return key_of(self._state, None if paths is None else sorted(paths))


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

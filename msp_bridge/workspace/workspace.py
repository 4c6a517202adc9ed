"""Workspace: the tools of a tree behind two questions: which mutants are there, and what becomes of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Sequence
from functools import cache, partial
from pathlib import Path

from attrs import evolve

from msp_bridge.model import Mutant, Result, Scope, Status
from msp_bridge.workspace.adapters import installed
from msp_bridge.workspace.boundary import Boundary
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.failures import Failures, told
from msp_bridge.workspace.precedence import Precedence, Turn
from msp_bridge.workspace.router import Part, Place, Router
from msp_bridge.workspace.selection import Selection
from msp_bridge.workspace.shares import Shares
from msp_bridge.workspace.survey import Survey
from msp_bridge.workspace.tool import Tool

log = logging.getLogger(__name__)

ROUNDS = 3  # times that a request tests the mutants of files that change meanwhile
PAUSE_AFTER = 500  # mutants that came without a wait: other requests, and a cancel, must get in between


class Workspace:
    """What is the same for every tool, done once: selecting, de-duplicating, reporting each mutant exactly once.

    Cancelling: close the generator; when that returns, its processes have ended.
    Ordering: `test` of a newer request goes before older ones (`Precedence`); `discover` waits for nobody. The tools of
    one request run side by side, within one bound on the mutants that are tested at once (`Shares`).
    Errors: of one project don't keep the others from their part (`Failures`); they are raised when that is done.
    Resource handling: `aclose` ends the tools' warm processes.
    """

    def __init__(self, root: Path, places: Sequence[Place], shares: Shares, folders: Sequence[str] = ("",)) -> None:
        self.root, self.folders = root, folders  # relative to the root: where its projects may be
        self._router, self._shares = Router(places), shares
        self._precedence = Precedence()
        self._told_of_links = False

    @classmethod
    def open(cls, root: Path, options: Configuration | None = None, named: str | None = None) -> Workspace:
        """The workspace at `root`; `options` go over what its configuration (perhaps the file `named`) says.

        Raises ConfigurationError. Starts no process.
        """
        return cls.of(root, cls.survey(root, options or Configuration(), named))

    @classmethod
    def of(cls, root: Path, survey: Survey) -> Workspace:
        """The workspace at `root` with the tools that the survey finds. Raises ConfigurationError."""
        return cls(root, survey.places(), survey.shares, survey.folders)

    @staticmethod
    def survey(root: Path, options: Configuration, named: str | None) -> Survey:
        """What `open` looks at. Raises ConfigurationError."""
        return Survey(root, options, named, installed())

    @property
    def tools(self) -> list[Tool]:
        """All that are set up, the root's first."""
        return self._router.tools

    def is_like(self, other: Workspace) -> bool:
        """Whether the same tools are set up in the same folders."""
        return (self.folders, [tool.label for tool in self.tools]) == (
            other.folders,
            [tool.label for tool in other.tools],
        )

    async def discover(self, selection: Selection) -> AsyncGenerator[Mutant, None]:
        """Every selected mutant once, file by file; several tools' files in any order."""
        selection = selection.within(self.root)
        parts = self._parts(selection)
        failures = Failures(parts)
        found = {part: self._discover(part, selection) for part in parts}
        async with contextlib.aclosing(failures.together(found)) as mutants:
            async for mutant in mutants:
                yield mutant
        failures.tell()

    async def test(self, selection: Selection) -> AsyncGenerator[Result, None]:
        """Exactly one result for each selected mutant, as soon as it is known."""
        selection = selection.within(self.root)
        with self._precedence.turn() as turn:
            parts = self._parts(selection)
            failures = Failures(parts)
            found = {part: self._test(part, selection, turn, alone=len(parts) == 1) for part in parts}
            async with contextlib.aclosing(failures.together(found)) as results:
                async for result in results:
                    with turn.rest():
                        yield result
            failures.tell()

    def asked(self, selection: Selection) -> list[Tool]:
        """The tools that have a part in such a request."""
        return [part.tool for part in self._parts(selection.within(self.root))]

    def named_files(self, selection: Selection) -> list[str]:
        """The files that were asked for by name and may have mutants: an answer mentions them even without any."""
        named = selection.within(self.root).named_files
        return [path for path in named if self._router.owner(path) is not None and (self.root / path).is_file()]

    async def aclose(self) -> None:
        """End the tools' warm processes."""
        closing = [tool.adapter.aclose() for tool in self.tools]
        for failure in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(failure, Exception):  # one tool's fault keeps no other from ending
                log.error("a tool could not be closed", exc_info=failure)

    def _owner(self, boundary: Boundary, path: str) -> Tool | None:
        if boundary.holds(path):
            return self._router.owner(path)
        level = logging.DEBUG if self._told_of_links else logging.WARNING  # there may be thousands
        log.log(level, "%s is left out: a link leads out of %s; open a directory that has both", path, self.root)
        self._told_of_links = True
        return None

    def _parts(self, selection: Selection) -> list[Part]:
        return [] if selection.empty else self._router.parts(selection.scope)

    async def _discover(self, part: Part, selection: Selection) -> AsyncGenerator[Mutant, None]:
        tool = part.tool
        seen: set[Mutant] = set()
        owner = cache(partial(self._owner, Boundary(self.root)))  # asked once for each file, not for each mutant
        looked_at = 0
        async with contextlib.aclosing(tool.discover(part.scope)) as mutants:
            async for mutant in mutants:
                looked_at += 1
                if looked_at % PAUSE_AFTER == 0:
                    await asyncio.sleep(0)
                if owner(mutant.path) is tool and selection.takes(mutant) and mutant not in seen:
                    seen.add(mutant)
                    yield mutant

    async def _test(self, part: Part, selection: Selection, turn: Turn, *, alone: bool) -> AsyncGenerator[Result, None]:
        """A failure that isn't the whole answer is the reason of each mutant that it left without a result, too."""
        due: dict[Mutant, bool] | None = None
        reason, failure = "", None
        try:
            due = await self._due(part, selection)
            for rounds in range(1, ROUNDS + 1):
                async with contextlib.aclosing(self._asked(part.tool, due, turn)) as results:
                    async for result in results:
                        yield result
                if not due:
                    return
                reason = (
                    f"{part.tool.adapter.name} gave no result for it in {rounds} attempts, as when its file changes"
                )
                if rounds < ROUNDS:
                    found = await self._due(evolve(part, scope=Scope(frozenset(one.path for one in due))), selection)
                    for gone in [mutant for mutant in due if mutant not in found]:
                        del due[gone]
                        yield _untested(gone, "its file has changed since, and it no longer exists: discover again")
                    due = {mutant: True for mutant in found if mutant in due}  # with the handles of the file as it is
        except Exception as error:
            if alone:
                raise
            reason, failure = str(told(error)), error
        # One that is never reported would spin in the editor for ever.
        for mutant in self._known(part.tool, selection) if due is None else due:
            yield _untested(mutant, reason)
        if failure is not None:
            raise failure

    async def _due(self, part: Part, selection: Selection) -> dict[Mutant, bool]:
        async with contextlib.aclosing(self._discover(part, selection)) as mutants:
            return dict.fromkeys([mutant async for mutant in mutants], True)

    async def _asked(self, tool: Tool, due: dict[Mutant, bool], turn: Turn) -> AsyncGenerator[Result, None]:
        """What the tool finds out; what it has a result for is no longer due."""
        if not due:
            return
        with self._shares.party(tool.label):
            async with contextlib.aclosing(tool.test(list(due))) as results:
                while True:
                    await self._wait(turn, tool)
                    try:
                        result = await anext(results)
                    except StopAsyncIteration:
                        return
                    if due.pop(result.mutant, False):
                        yield result
                    else:
                        log.warning("%s gave a result that is not due: %s", tool.label, result)

    def _known(self, tool: Tool, selection: Selection) -> list[Mutant]:
        """The tool's mutants that the client named one by one: what is due when they can't be discovered."""
        owner = cache(partial(self._owner, Boundary(self.root)))
        known = dict.fromkeys(known.mutant for known in selection.mutants or ())
        return [mutant for mutant in known if mutant is not None and owner(mutant.path) is tool]

    async def _wait(self, turn: Turn, tool: Tool) -> None:
        """Until no newer request wants to go on; meanwhile the tool's share is the others'."""
        if not turn.may_go_on.is_set():
            with self._shares.without(tool.label):
                await turn.wait()


def _untested(mutant: Mutant, reason: str) -> Result:
    return Result(mutant, Status.IGNORED, status_reason=f"not tested: {reason}")

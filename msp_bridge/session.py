"""Session: what one client asks of the server's workspaces, in the model's words; its dialect has the protocol's."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path

from attrs import evolve, frozen

from msp_bridge.model import Location, Mutant, Position, Result
from msp_bridge.notices import Told
from msp_bridge.phases import Tell, batches
from msp_bridge.source import Edit, SourceText
from msp_bridge.workspace.open_workspaces import OpenWorkspaces
from msp_bridge.workspace.selection import Selection, Target


@frozen
class Session:
    """The requests of one client, with one configuration: a request that runs keeps the session it began with.

    Back-pressure: nothing is asked of the tool while a batch is being dealt with and the next one is full.
    Cancelling: leave the block of `discover` or `test`; when that returns, its processes have ended.
    Errors: BridgeError for what the user can fix.
    Notices: `tell` gets each in its place among the batches; the log records it, too.
    Mutants that are named one by one are tested anew, also where verdicts of earlier runs are reused.
    """

    _workspaces: OpenWorkspaces
    _configuration: str | None = None  # the file that the client named; without one, the default configuration

    @property
    def root(self) -> Path:
        """The directory that paths are relative to."""
        return self._workspaces.root

    async def configured(self, configuration: str | None) -> Session:
        """The session with the configuration file `configuration`, None for the default one.

        Looks for the tools of the tree anew. Raises BridgeError when the configuration can't be used.
        """
        await self._workspaces.check(configuration)
        return evolve(self, configuration=configuration)

    def acquire(self, root: Path) -> Session:
        """The session at another root, with its default configuration; the client has to `release` it.

        Raises BridgeError where none may be opened.
        """
        return Session(self._workspaces.acquire(root))

    async def release(self, other: Session) -> None:
        """The client has no further request for `other`, which it has acquired: what only it kept warm ends."""
        await self._workspaces.release(other._workspaces)

    async def tools(self, paths: Iterable[str]) -> Mapping[str, str]:
        """The label of the tool that could mutate a file (its name, and the folder of its project if any), by path.

        Files that no tool would mutate are left out.
        """
        async with self._workspaces.use(self._configuration) as workspace:
            owners = {path: workspace.projects.owner(path) for path in paths}
            return {path: owner.label for path, owner in owners.items() if owner is not None}

    async def ignore(self, mutant: Mutant) -> Edit:
        """The edit by which its tool ignores `mutant`; nothing is written. Raises BridgeError."""
        async with self._workspaces.use(self._configuration) as workspace:
            return await workspace.ignore(mutant, "")

    async def changed(self) -> Selection:
        """The mutants that git says were changed since HEAD, perhaps in part. Raises BridgeError."""
        from msp_bridge.workspace.targets import Changes  # here: an editor waits for the rest

        changes = await Changes.since(self.root, "HEAD")
        return Selection(
            targets=tuple(
                Target(path, Location(Position(lines.start, 1), Position(lines.stop, 1)), partly=True)
                for path, ranges in changes.lines.items()
                for lines in ranges
            )
        )

    @contextlib.asynccontextmanager
    async def discover(
        self, selection: Selection, tell: Tell
    ) -> AsyncIterator[AsyncIterator[Mapping[str, Sequence[Mutant]]]]:
        """The mutants in batches, by path. Files that were named come first, without any: they may have none."""
        async with self._workspaces.use(self._configuration) as workspace:
            selection = await workspace.within(selection)
            named = await workspace.named_files(selection)
            found = batches(workspace.discover(selection), tell, level=logging.WARNING)
            async with contextlib.aclosing(found), contextlib.aclosing(_by_path(named, found)) as by_path:
                yield by_path

    @contextlib.asynccontextmanager
    async def test(self, selection: Selection, tell: Tell) -> AsyncIterator[AsyncIterator[Sequence[Result]]]:
        """One result for each selected mutant, in batches of all that are ready."""
        anew = selection.mutants is not None
        async with self._workspaces.use(self._configuration) as workspace:
            testing = workspace.test(selection, anew=anew)
            async with contextlib.aclosing(batches(testing, tell, level=logging.WARNING)) as ready:
                yield ready

    @contextlib.asynccontextmanager
    async def known(self, selection: Selection) -> AsyncIterator[AsyncIterator[Sequence[Result]]]:
        """The verdicts of earlier runs that hold still, in batches; nothing where they are not kept. Runs no test."""
        async with self._workspaces.use(self._configuration) as workspace:
            async with contextlib.aclosing(batches(workspace.known(selection), Told().tell)) as ready:
                yield ready

    async def source(self, path: str) -> SourceText | None:
        """The text of a file of the tree, as tools see it on the disk; None where it can't be read."""
        return await asyncio.to_thread(SourceText.read_or_none, self.root / path)


async def _by_path(
    named: Sequence[str], found: AsyncIterator[Sequence[Mutant]]
) -> AsyncGenerator[Mapping[str, Sequence[Mutant]], None]:
    if named:
        yield dict.fromkeys(named, ())
    async for batch in found:
        files: dict[str, list[Mutant]] = {}
        for mutant in batch:
            files.setdefault(mutant.path, []).append(mutant)
        yield files

"""GenericDiscovery: the mutants that a tool reports, and whether their files still are as they were."""

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import evolve, frozen

from msp_bridge import reading
from msp_bridge.adapter import Mutant, Project, ToolError
from msp_bridge.concurrency import in_thread
from msp_bridge.toolkit import Isolation, RunPlaces
from msp_bridge.toolkit.tree import Stamp, stamps

from .run import GenericRun
from .settings import Tool

State = tuple[Mapping[str, Stamp], str | None]
Known = dict[str, tuple[State, tuple[Mutant, ...]]]  # path to the state that the mutants are of, and the mutants

UNREADABLE = "make it readable, or leave it out of the tool's `files`"


@frozen
class GenericHandle:
    """The handle of a mutant: everything that testing needs."""

    digest: str | None  # of the file that the tool read
    id: str  # the tool's own; "" where it has none


class GenericDiscovery:
    """One tool's mutants. It is run once for all the files that aren't known, and by one request at a time."""

    def __init__(self, project: Project, places: RunPlaces, tool: Tool, isolation: Isolation | None) -> None:
        self._project, self._places, self._tool, self._isolation = project, places, tool, isolation
        self._known: Known = {}
        self._turn = asyncio.Lock()

    async def mutants(self, files: Sequence[str]) -> dict[str, tuple[Mutant, ...]]:
        """The mutants of each of `files` that is still there, in the report's order; raises `ToolError`."""
        async with self._turn:
            return await self._mutants(files)

    async def _mutants(self, files: Sequence[str]) -> dict[str, tuple[Mutant, ...]]:
        root, tool = self._project.root, self._tool
        states = await in_thread(_states, root, files)
        unknown = [path for path in files if path not in self._known or self._known[path][0] != states[path]]
        if unknown and not tool.discover.names("files"):  # it lists all files at once
            unknown = await in_thread(tool.listed, root)
            states |= await in_thread(_states, root, unknown)
        if unknown:
            found: dict[str, list[Mutant]] = {path: [] for path in unknown}
            for mutant in await self._report(unknown):
                if mutant.path in found:
                    found[mutant.path].append(mutant)
            self._known |= {path: (states[path], tuple(mutants)) for path, mutants in found.items()}
        current = (path for path in files if path in self._known and self._known[path][0] == states[path])
        return {path: self._known[path][1] for path in current}  # the others have vanished meanwhile

    async def _report(self, files: Sequence[str]) -> list[Mutant]:
        run = GenericRun(self._project, self._tool, self._tool.discover, files)
        last: list[Mutant] = []
        async with self._places.lease(self._isolation) as place:
            digests = await in_thread(lambda: {path: reading.digest(place.root / path) for path in files})
            async with contextlib.aclosing(run.reports(place)) as reports:
                async for report, _ in reports:
                    last = list(report)
        return [evolve(mutant, handle=GenericHandle(digests.get(mutant.path), mutant.handle)) for mutant in last]


def _states(root: Path, files: Sequence[str]) -> dict[str, State]:
    """The content of each file, together with the stamps of the files at the top, where tools have their configuration.

    Raises ToolError for a file that can't be read.
    """
    with os.scandir(root) as entries:
        top = stamps(entry.path for entry in entries if os.path.isfile(entry))
    return {path: (top, _digest(root, path)) for path in files}


def _digest(root: Path, path: str) -> str | None:
    try:
        return reading.digest_of(reading.content(root / path))
    except FileNotFoundError:  # it has no mutants then
        return None
    except OSError as error:
        raise ToolError(f"{path} can't be read: {error.strerror}", UNREADABLE) from error

"""Discovery: the mutants of files, kept as long as the files and what lies at the top of the project stay the same.

A mutant's handle is the digest of its file's content.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from attrs import evolve

from msp_bridge import reading
from msp_bridge.adapter import Mutant, Project

from .places import Places
from .run import Run
from .tool import Tool

Known = dict[str, tuple[bytes, tuple[Mutant, ...]]]  # path to the state that the mutants are of, and the mutants


class Discovery:
    """One tool's mutants. It is run once for all the files that aren't known, and by one request at a time."""

    def __init__(self, project: Project, places: Places, tool: Tool) -> None:
        self._project, self._places, self._tool = project, places, tool
        self._known: Known = {}
        self._turn = asyncio.Lock()

    async def mutants(self, files: Sequence[str]) -> dict[str, tuple[Mutant, ...]]:
        """The mutants of each of `files` that is still there, in the report's order; raises `ToolError`."""
        async with self._turn:
            return await self._mutants(files)

    async def _mutants(self, files: Sequence[str]) -> dict[str, tuple[Mutant, ...]]:
        root, tool = self._project.root, self._tool
        states = await asyncio.to_thread(_states, root, files)
        unknown = [path for path in files if path not in self._known or self._known[path][0] != states[path]]
        if unknown and not tool.discover.names("files"):  # it tells of all files at once
            unknown = await asyncio.to_thread(tool.listed, root)
            states |= await asyncio.to_thread(_states, root, unknown)
        if unknown:
            found: dict[str, list[Mutant]] = {path: [] for path in unknown}
            digests = await asyncio.to_thread(lambda: {path: reading.digest(root / path) for path in unknown})
            for mutant in await self._report(unknown):
                if mutant.path in found:
                    found[mutant.path].append(evolve(mutant, handle=digests[mutant.path]))
            self._known |= {path: (states[path], tuple(mutants)) for path, mutants in found.items()}
        current = (path for path in files if path in self._known and self._known[path][0] == states[path])
        return {path: self._known[path][1] for path in current}  # the others have vanished meanwhile

    async def _report(self, files: Sequence[str]) -> list[Mutant]:
        run = Run(self._tool, self._tool.discover, files, (), self._project.jobs, self._project.root)
        last: list[Mutant] = []
        async with self._places.lease(copy=self._tool.writes) as place:
            async with contextlib.aclosing(run.reports(place)) as reports:
                async for report, _ in reports:
                    last = list(report)
        return last


def _states(root: Path, files: Sequence[str]) -> dict[str, bytes]:
    """What names the content of each file together with the files at the top, where tools have their configuration."""
    top = blake2b()
    with os.scandir(root) as entries:
        for entry in sorted((entry for entry in entries if entry.is_file()), key=lambda entry: entry.name):
            status = entry.stat()
            top.update(f"{entry.name}\0{status.st_mtime_ns}\0{status.st_size}\0".encode("utf-8", "surrogatepass"))
    states = {}
    for path in files:
        state = top.copy()
        with contextlib.suppress(FileNotFoundError):
            state.update((root / path).read_bytes())
        states[path] = state.digest()
    return states

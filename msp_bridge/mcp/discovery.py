"""Discovery: the mutants of files that stay as they are while they are listed, each with the text that it is of."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from pathlib import Path

from msp_bridge.concurrency import in_thread
from msp_bridge.mcp.answers import problem_text
from msp_bridge.mcp.known_mutants import KnownMutants
from msp_bridge.model import Mutant
from msp_bridge.notices import Told
from msp_bridge.phases import batches
from msp_bridge.reports.results import place
from msp_bridge.source import SourceText
from msp_bridge.text import one_line
from msp_bridge.workspace.selection import Selection
from msp_bridge.workspace.workspace import Workspace

ATTEMPTS = 3  # at listing the mutants of files that are edited meanwhile


async def discovered(
    workspace: Workspace, selection: Selection, known: KnownMutants, problems: list[str]
) -> tuple[list[Mutant], int]:
    """The mutants of the files in the selection, by place, and the version of all files that they are of.

    The notices of the discovery become `problems`, as do files that keep changing.
    """
    for attempt in range(1, ATTEMPTS + 1):
        begun = await known.versions.look(known.paths)
        told = Told()
        found = await _listed(workspace, selection, told)
        paths = {mutant.path for mutant in found}
        sources = await in_thread(_sources, workspace.root, paths)
        version = await known.versions.look(paths)
        edited = paths.intersection(known.versions.touched(begun))
        if not edited or attempt == ATTEMPTS:
            break
    problems += map(problem_text, told.notices)
    if edited:
        names = ", ".join(map(one_line, sorted(edited)))
        problems.append(f"left out, edited each time that their mutants were listed: {names}")
        found = [mutant for mutant in found if mutant.path not in edited]
    if known.versions.too_large:
        problems.append("the project has too many files: edits of tests do not outdate results")
    known.listed(found, {path: source for path, source in sources.items() if path not in edited}, version)
    return found, version


async def recall(workspace: Workspace, known: KnownMutants) -> None:
    """Remember the verdicts of earlier runs that hold still. Raises BridgeError."""
    _, version = await discovered(workspace, Selection(), known, [])
    async with contextlib.aclosing(workspace.known(Selection())) as results:
        found = [result async for result in results]
    await known.versions.look()
    if not known.versions.touched(version):
        known.tested(found, version)


async def _listed(workspace: Workspace, selection: Selection, told: Told) -> list[Mutant]:
    found: list[Mutant] = []
    discovering = batches(workspace.discover(selection.of_whole_files), told.tell)
    async with contextlib.aclosing(discovering) as ready:
        async for batch in ready:
            found += batch
    return sorted(found, key=place)


def _sources(root: Path, paths: Collection[str]) -> dict[str, SourceText | None]:
    return {path: SourceText.read_or_none(root / path) for path in paths}

"""Explorer: all mutants with their results, for a client that lists them, as VS Code's Testing view does.

LSP has a place for what is to be fixed: diagnostics. It has none for mutants that the tests kill, or that are not
tested yet. So there are three methods of our own (docs/reference/lsp.md): two requests, and a notification for clients
that ask for it in `initialize`.

All ranges are those of the saved file, which is what tools read, also while the client's text is another.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from msp_bridge.dialects.lsp import types as lsp
from msp_bridge.dialects.lsp.editor import Editor
from msp_bridge.dialects.lsp.folders import Folder, Folders
from msp_bridge.model import Mutant, Result
from msp_bridge.notices import Told
from msp_bridge.reports.results import Diff
from msp_bridge.source import SourceText
from msp_bridge.workspace.selection import KnownMutant, Selection, Target


class Explorer:
    """The mutants of its folders as one client sees them."""

    def __init__(self, editor: Editor, folders: Folders) -> None:
        self._editor, self._folders = editor, folders

    async def mutants(self, uri: str | None) -> dict[str, Any]:
        """The mutants of the document or directory `uri`, or all, with what is known of them. Raises BridgeError."""
        files: list[dict[str, Any]] = []
        told = Told()
        for folder, selection in self._targets(None if uri is None else [uri]):
            found: dict[str, list[Mutant]] = {}
            async with folder.session.discover(selection, told.tell) as batches:
                async for batch in batches:
                    for path, mutants in batch.items():
                        found.setdefault(path, []).extend(mutants)
            for path, mutants in found.items():
                files.append(await self._file(folder, path, await self._known(folder, path, mutants)))
        if not any(file["mutants"] for file in files):
            told.check_files()
        return {"files": files}

    async def selected(self, params: lsp.TestParams) -> Sequence[tuple[Folder, Selection, str]]:
        """The selection of `msp-bridge/test`, by folder, with words for it. Raises BridgeError."""
        if params.mutants is None:
            named = "the project" if params.uris is None else None
            return [
                (folder, selection, named or ", ".join(sorted(selection.scope.paths or ())) or "the project")
                for folder, selection in self._targets(params.uris)
            ]
        known: dict[Folder, list[KnownMutant]] = {}
        sources: dict[str, SourceText | None] = {}
        for mutant in params.mutants:
            folder, path = self._folders.place(mutant.uri)
            if mutant.uri not in sources:
                sources[mutant.uri] = await folder.session.source(path)
            if (source := sources[mutant.uri]) is not None:  # else it is gone, and its mutants with it
                location = self._editor.units.location(source, mutant.range)
                known.setdefault(folder, []).append(KnownMutant(path, location, mutant.mutator, mutant.replacement))
        return [
            (folder, Selection(mutants=tuple(mutants)), f"{len(mutants)} mutant{'s' * (len(mutants) > 1)}")
            for folder, mutants in known.items()
        ]

    async def results(self, folder: Folder, path: str, results: Iterable[Result], source: SourceText | None) -> None:
        """Send results about the text `source` of the file `path`."""
        wire = [self._mutant(source, result.mutant, result) for result in results]
        await self._editor.notify("msp-bridge/results", {"files": [await self._file(folder, path, wire)]})

    def _targets(self, uris: Sequence[str] | None) -> Sequence[tuple[Folder, Selection]]:
        if uris is None:
            return [(folder, Selection()) for folder in self._folders]
        targets: dict[Folder, list[Target]] = {}
        for uri in uris:
            folder, path = self._folders.place(uri)
            targets.setdefault(folder, []).append(Target(path))
        return [(folder, Selection(targets=tuple(those))) for folder, those in targets.items()]

    async def _file(self, folder: Folder, path: str, mutants: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        project = (await folder.session.tools([path])).get(path, "")
        return {"uri": self._folders.uri(folder, path), "project": project, "mutants": mutants}

    async def _known(self, folder: Folder, path: str, mutants: Sequence[Mutant]) -> list[dict[str, Any]]:
        """Return the mutants with their results on the wire; without results where the text is not saved."""
        source, findings = await folder.session.source(path), folder.findings.get(path)
        document = self._folders.opened(folder, path)
        if document is not None and (source is None or document.source.text != source.text):
            findings = None
        results = [None if findings is None else findings.result(mutant) for mutant in mutants]
        return await asyncio.to_thread(lambda: list(map(partial(self._mutant, source), mutants, results)))

    def _mutant(self, source: SourceText | None, mutant: Mutant, result: Result | None = None) -> dict[str, Any]:
        wire: dict[str, Any] = {
            "id": mutant.id,
            "range": self._editor.units.range(source, mutant.location),
            "mutator": mutant.mutator,
            "replacement": mutant.replacement,
        }
        if source is not None:
            with contextlib.suppress(ValueError):  # the file has changed since
                wire["original"] = source.at(mutant.location)
                if result is not None and result.status.undetected:
                    diff = Diff.of(source, mutant)
                    wire["before"], wire["after"] = "\n".join(diff.before), "\n".join(diff.after)
        if result is not None:
            more = {
                "status": result.status.value,
                "statusReason": result.status_reason,
                "duration": result.duration,
                "coveredBy": result.covered_by,
                "killedBy": result.killed_by,
            }
            wire |= {name: value for name, value in more.items() if value is not None}
        return wire

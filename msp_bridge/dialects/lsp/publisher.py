"""Publisher: shows what is known of files as diagnostics; Explorer: lists all mutants with their results.

Theory of operation
===================
`publishDiagnostics` has all diagnostics of a document, each time. A run that finds five thousand in one file, and
publishes after each, would send twelve million. So:

- A file is published when what it shows has changed. A mutant that is killed shows nothing.
- While it shows few (FEW), each change is published at once.
- With more, a pause follows each publication: PAUSE_S, or SHARE of the time since the first of these pauses began,
  whichever is longer. The time grows by SHARE with each publication, so the number of publications grows with the
  logarithm of the time: a run of an hour has at most 44, and a file of n diagnostics costs n log(time).
- What a key press changes waits for PAUSE_S first, as more will come.
- `flush` ends the pauses: the final state is published when a run ends, whatever pause there was.

Of two publications of a document that overlap, the one that began later is shown. A client that pulls diagnostics gets
a refresh request for its open documents instead, at the same pace.

LSP has a place for what is to be fixed: diagnostics. It has none for mutants that the tests kill, or that are not
tested yet. So there are three methods of our own (docs/reference/lsp.md): two requests, and a notification for clients
that ask for it in `initialize`.

All ranges are those of the saved file, which is what tools read, also while the client's text is another.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from msp_bridge.concurrency import at_most
from msp_bridge.dialects.lsp import types as lsp
from msp_bridge.dialects.lsp.editor import PULL, Editor, Start
from msp_bridge.dialects.lsp.folders import Folder, Folders
from msp_bridge.model import Mutant, Result
from msp_bridge.notices import Told
from msp_bridge.reports.results import Diff
from msp_bridge.source import SourceText
from msp_bridge.workspace.selection import KnownMutant, Selection, Target

SLICE = 250  # diagnostics that are made at once: a few ms of work
FEW = 100  # diagnostics of a file, up to which each change is published
PAUSE_S = 0.2
SHARE = 0.25

File = tuple[Folder, str]


class Publisher:
    """The diagnostics of one client. `start` begins work that nobody waits for."""

    def __init__(self, editor: Editor, folders: Folders, start: Start) -> None:
        self._editor, self._folders, self._start = editor, folders, start
        self._due: set[File] = set()  # shows something else than was published
        self._pausing: dict[File, tuple[asyncio.Event, asyncio.Task[None]]] = {}  # the event ends the pauses
        self._newest: dict[str, int] = {}  # by URI: what is being published
        self._numbers = itertools.count()

    async def changed(self, folder: Folder, path: str) -> None:
        """Publish the file after a result has changed what it shows: now, or when the pause is over."""
        if (folder, path) in self._pausing:
            self._due.add((folder, path))
        elif await self.publish(folder, path) > FEW:
            self._pause(folder, path)

    def edited(self, folder: Folder, path: str) -> None:
        """Publish the file soon, after a key press has changed what it shows."""
        self._due.add((folder, path))
        self._pause(folder, path)

    async def flush(self, folder: Folder) -> None:
        """Publish now what waits for a pause."""
        ending = [pausing for (of, _), pausing in self._pausing.items() if of is folder]
        for over, _ in ending:
            over.set()
        if ending:
            await asyncio.wait([task for _, task in ending])

    async def publish(self, folder: Folder, path: str) -> int:
        """Publish the file now, or have the client pull it. Returns how many diagnostics it shows."""
        self._due.discard((folder, path))
        document = self._folders.opened(folder, path)
        if folder not in self._folders:  # it was closed meanwhile
            return 0
        if document is not None and self._editor.pulls:
            self._editor.refresh(PULL)
            return folder.known(path).shown
        uri, version = self._folders.uri(folder, path), None if document is None else document.version
        self._newest[uri] = number = next(self._numbers)
        diagnostics = await self.diagnostics(folder, path)
        if self._newest.get(uri) == number:
            del self._newest[uri]
            await self._editor.publish(uri, diagnostics, version)
        return len(diagnostics)

    async def clear(self, folder: Folder) -> None:
        """Show nothing any more of a folder that the client has closed."""
        for path in folder.findings:
            uri = (folder.root / path).as_uri()
            self._newest.pop(uri, None)
            await self._editor.publish(uri, [])

    async def diagnostics(self, folder: Folder, path: str) -> list[dict[str, Any]]:
        """The diagnostics of the file on the wire, made in slices: there may be ten thousand."""
        if path not in folder.findings:
            return []
        document, units = self._folders.opened(folder, path), self._editor.units
        source = await folder.session.source(path) if document is None else document.source
        found: list[dict[str, Any]] = []
        for diagnostic in folder.findings[path].diagnostics(units, source, folder.tool(path)):
            found.append(diagnostic)
            if len(found) % SLICE == 0:
                await asyncio.sleep(0)
        return found

    async def reports(self) -> list[dict[str, Any]]:
        """The WorkspaceDocumentDiagnosticReports of all files that show something."""
        reports: list[dict[str, Any]] = []
        for folder in list(self._folders):
            for path in [path for path, findings in folder.findings.items() if findings.shown]:
                document = self._folders.opened(folder, path)
                uri, version = self._folders.uri(folder, path), None if document is None else document.version
                items = await self.diagnostics(folder, path)
                reports.append({"uri": uri, "version": version, "kind": "full", "items": items})
        return reports

    def _pause(self, folder: Folder, path: str) -> None:
        if (folder, path) not in self._pausing:
            over = asyncio.Event()
            self._pausing[folder, path] = over, self._start(self._paced(folder, path, over), "publish")

    async def _paced(self, folder: Folder, path: str, over: asyncio.Event) -> None:
        """Publish after each pause, while anything changes in it."""
        now = asyncio.get_running_loop().time
        began, pause = now(), PAUSE_S
        try:
            while True:
                async with at_most(pause):
                    await over.wait()
                if (folder, path) not in self._due:
                    return
                shown = await self.publish(folder, path)
                pause = max(PAUSE_S, SHARE * (now() - began)) if shown > FEW else PAUSE_S
        finally:
            del self._pausing[folder, path]


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

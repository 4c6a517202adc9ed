"""Publisher: shows what is known of files as diagnostics, as often as that is worth what it costs.

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
"""

import asyncio
import itertools
from typing import Any

from msp_bridge.concurrency import at_most
from msp_bridge.dialects.lsp.editor import PULL, Editor, Start
from msp_bridge.dialects.lsp.folders import Folder, Folders

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

"""Runs: tests for a client, and what comes of them, shown where its texts are meanwhile.

Theory of operation
===================
The client's texts and the files that tools read are not the same: a tool reads what is saved, and needs a while, in
which the user goes on typing. So three texts count for each document: the client's (`Document.source`), the file's
(`Folder.read`) and the one whose changes have been tested (`Document.tested`). `Changed.between` two of them says
which lines are the same.

- A finding lies where the client's text has it. Results come for the file's text, and are moved to the client's at
  once; what lies in a line that is not saved, or was edited meanwhile, is dropped. From then on each `didChange` moves
  it.
- What a command tests is given in the client's text, and moved to the file's. Lines that are not saved can't be tested:
  a message says so.
- A save tests the lines in which the saved text is not the tested one. Its run is cancelled when the document is saved
  again; as `tested` changes only when a run has ended, the next one tests those lines, too.

What is selected and gets no result in a run that ended doesn't exist any more, and is forgotten.

Findings are shown by `publishDiagnostics`. A client that pulls diagnostics of open documents gets a refresh request.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from msp_bridge.dialects.lsp.documents import Changed
from msp_bridge.dialects.lsp.editor import LENSES, PULL, WARNING, Editor, Start
from msp_bridge.dialects.lsp.explorer import Explorer
from msp_bridge.dialects.lsp.findings import Place, place_of, summary_of
from msp_bridge.dialects.lsp.folders import Folder, Folders
from msp_bridge.errors import ToolError
from msp_bridge.model import Result, Status
from msp_bridge.source import SourceText
from msp_bridge.workspace.selection import Selection

SLICE = 250  # diagnostics that are made at once: a few ms of work
MAX_NAMED = 5  # tests in one message
MANY_FINDINGS = 500  # findings of a file from which on its diagnostics are not published with every batch
PAUSE_S = 0.2  # before the diagnostics of a text that changes, or of a file with many, are published


class Runs:
    """Those of one client. `start` begins work that nobody waits for.

    `failing` is where a log handler puts the tests that fail without any mutant: the client gets each once.
    `explorer` is sent every result.
    """

    def __init__(
        self,
        editor: Editor,
        folders: Folders,
        start: Start,
        failing: MutableMapping[str, str],
        explorer: Explorer | None = None,
    ) -> None:
        self._editor, self._folders, self._start, self._failing = editor, folders, start, failing
        self._said: set[str] = set()  # those of them that the client has got
        self._explorer = explorer
        self._publishing: set[tuple[Folder, str]] = set()  # what is published soon
        self._newest: dict[str, int] = {}  # by URI: what is being published
        self._numbers = itertools.count()

    async def test(self, folder: Folder, selection: Selection, what: str, token: Any = None) -> None:
        """Test the selection, and show what comes of it as it comes. Raises BridgeError."""
        await self._warn_of_unsaved(folder, selection)
        counts: Counter[Status] = Counter()
        reported: dict[str, set[Place]] = {}  # by path
        async with self._editor.progress(f"Testing {what}", token) as progress:
            try:
                async with contextlib.aclosing(folder.session.test(selection)) as batches:
                    async for batch in batches:
                        counts.update(result.status for result in batch)
                        for result in batch:
                            reported.setdefault(result.mutant.path, set()).add(place_of(result.mutant))
                        await self._take(folder, batch)
                        await progress.report(summary_of(counts))
                await self._forget(folder, selection, reported)
                progress.message = summary_of(counts) or "no mutants"
            finally:
                self._editor.refresh(LENSES)
                await self._say_failing()

    async def _say_failing(self) -> None:
        new = [test for test in self._failing if test not in self._said]
        self._failing.clear()
        if new:
            self._said.update(new)
            names = ", ".join(new[:MAX_NAMED]) + (f" and {len(new) - MAX_NAMED} more" if len(new) > MAX_NAMED else "")
            fault = ToolError(f"left out, for they fail without any mutant: {names}", "make them pass")
            with contextlib.suppress(ConnectionError):
                await self._editor.say(str(fault), WARNING)

    async def _take(self, folder: Folder, batch: Sequence[Result]) -> None:
        by_path: dict[str, list[Result]] = {}
        for result in batch:
            by_path.setdefault(result.mutant.path, []).append(result)
        if unknown := by_path.keys() - folder.tools:
            folder.tools |= await folder.session.tools(unknown)
        for path, results in by_path.items():
            saved = await folder.read(path)
            folder.known(path).take(results, saved, self._since(saved, folder, path))
            if self._explorer is not None:
                await self._explorer.results(folder, path, results, saved)
            if len(folder.known(path)) < MANY_FINDINGS:
                await self.publish(folder, path)
            else:
                self.publish_soon(folder, path)

    async def _forget(self, folder: Folder, selection: Selection, reported: Mapping[str, set[Place]]) -> None:
        """What was selected and not reported does not exist any more; in a text that isn't saved, nobody knows."""
        within = selection.within(folder.root)
        for path, findings in list(folder.findings.items()):
            if within.scope.covers(path):
                saved = not self._since(await folder.read(path), folder, path).hunks
                if saved and findings.forget(within, reported.get(path, ())):
                    await self.publish(folder, path)

    def _since(self, saved: SourceText | None, folder: Folder, path: str) -> Changed:
        """From the text that tools read, `saved`, to the one that the client has."""
        document = self._folders.opened(folder, path)
        return Changed(()) if document is None or saved is None else Changed.between(saved.text, document.source.text)

    async def _warn_of_unsaved(self, folder: Folder, selection: Selection) -> None:
        for document in list(self._folders.open_in(folder, selection)):
            if self._since(await folder.read(document.path), folder, document.path).hunks:
                await self._editor.say(f"{document.path} has unsaved changes: tools test what is saved", WARNING)

    async def publish(self, folder: Folder, path: str) -> None:
        """Show what is known of the file `path` now. Of two that overlap, the one that began later is shown."""
        document = self._folders.opened(folder, path)
        if folder not in self._folders:  # it was closed meanwhile
            return
        if document is not None and self._editor.pulls:
            self._editor.refresh(PULL)
            return
        uri = (folder.root / path).as_uri() if document is None else document.uri
        self._newest[uri] = number = next(self._numbers)
        diagnostics = await self.diagnostics(folder, path)
        if self._newest.get(uri) == number:
            del self._newest[uri]
            await self._editor.publish(uri, diagnostics)

    async def clear(self, folder: Folder) -> None:
        """Show nothing any more of a folder that the client has closed."""
        for path in folder.findings:
            uri = (folder.root / path).as_uri()
            self._newest.pop(uri, None)
            await self._editor.publish(uri, [])

    def publish_soon(self, folder: Folder, path: str) -> None:
        """The same, for what changes with every key or batch."""
        if (folder, path) not in self._publishing:
            self._publishing.add((folder, path))
            self._start(self._publish_later(folder, path), "publish")

    async def _publish_later(self, folder: Folder, path: str) -> None:
        await asyncio.sleep(PAUSE_S)
        self._publishing.discard((folder, path))
        await self.publish(folder, path)

    async def diagnostics(self, folder: Folder, path: str) -> list[dict[str, Any]]:
        """What the client is to show of the file `path`, made in slices: there may be ten thousand."""
        if path not in folder.findings:
            return []
        document, units = self._folders.opened(folder, path), self._editor.units
        source = await folder.read(path) if document is None else document.source
        found: list[dict[str, Any]] = []
        for diagnostic in folder.findings[path].diagnostics(units, source, folder.tools.get(path, "msp-bridge")):
            found.append(diagnostic)
            if len(found) % SLICE == 0:
                await asyncio.sleep(0)
        return found

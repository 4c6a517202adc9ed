"""Runs: tests for a client, and what comes of them, shown where its texts are meanwhile.

Theory of operation
===================
The client's texts and the files that tools read are not the same: a tool reads what is saved, and needs a while, in
which the user goes on typing. So two texts count for each document: the client's (`Document.source`) and the file's
(`Folder.read`). `Changed.between` them says which lines are the same.

- A finding lies where the client's text has it. Results come for the file's text, and are moved to the client's at
  once; what lies in a line that is not saved, or was edited meanwhile, is dropped. From then on each `didChange` moves
  it.
- What a command tests is given in the client's text, and moved to the file's. Lines that are not saved can't be tested:
  a message says so.
- A save tests the lines that were touched since their last test (`Document.begin_test`). Its run is cancelled when the
  document is saved again; as lines count as tested only when a run has ended, the next one tests those lines, too.

A change of a file that no tool mutates, as of a test, makes every verdict doubtful: after a save and after a run the
folder's files are looked at, and what is doubtful is shown as outdated until it is tested again (`Folder.outdate`).

What is selected and gets no result in a run that ended doesn't exist any more, and is forgotten. How often findings are
shown is decided in `publisher`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msp_bridge.dialects.lsp.editor import LENSES, WARNING, Editor
from msp_bridge.dialects.lsp.explorer import Explorer
from msp_bridge.dialects.lsp.findings import Place, place_of, summary_of
from msp_bridge.dialects.lsp.folders import Folder, Folders
from msp_bridge.dialects.lsp.publisher import Publisher
from msp_bridge.errors import ToolError
from msp_bridge.model import Result, Status
from msp_bridge.notices import FailingTest, Notice, PhaseReport, Told
from msp_bridge.source import Changed, SourceText
from msp_bridge.text import enumerated
from msp_bridge.workspace.selection import Selection, Target

if TYPE_CHECKING:
    from msp_bridge.reports.accepted import AcceptedSurvivors

MAX_NAMED = 5  # tests in one message


class Runs:
    """The runs of one client.

    `explorer` is sent every result.
    """

    def __init__(
        self,
        editor: Editor,
        folders: Folders,
        publisher: Publisher,
        explorer: Explorer | None = None,
    ) -> None:
        self._editor, self._folders, self._publisher = editor, folders, publisher
        self._explorer = explorer

    async def test(self, folder: Folder, selection: Selection, what: str, token: Any = None) -> None:
        """Test the selection, and show what comes of it as it comes. Raises BridgeError."""
        await self._warn_of_unsaved(folder, selection)
        counts: Counter[Status] = Counter()
        reported: dict[str, set[Place]] = {}  # by path
        async with self._editor.progress(f"Testing {what}", token) as progress:
            told, accepted = Told(), await _accepted(folder)

            async def tell(notice: Notice) -> None:
                await told.tell(notice)
                if isinstance(notice, PhaseReport):
                    await progress.report(str(notice))

            version = asyncio.create_task(folder.versions.look(), name="look before a run")  # while the tool starts
            try:
                async with folder.session.test(selection, tell) as batches:
                    async for found in batches:
                        batch = [accepted.judged(result) for result in found]
                        counts.update(result.status for result in batch)
                        for result in batch:
                            reported.setdefault(result.mutant.path, set()).add(place_of(result.mutant))
                        await self._take(folder, batch, await version)
                        await progress.report(summary_of(counts))
                told.check_files()  # before what was not reported is forgotten: nobody knows whether it exists
                await self._forget(folder, selection, reported)
                await self.outdate(folder)
                progress.message = summary_of(counts) or "no mutants"
            finally:
                version.cancel()
                await self._publisher.flush(folder)
                self._editor.refresh(LENSES)
                for remark in told.remarks:
                    await self._editor.log(remark)
                await self._say_failing([failing.test for failing in told.of(FailingTest)])

    async def recall(self, folder: Folder, path: str) -> None:
        """Show the verdicts of earlier runs about the file `path` that hold still. Raises BridgeError."""
        accepted = await _accepted(folder)
        async with folder.session.known(Selection(targets=(Target(path),))) as batches:
            async for found in batches:
                batch = [accepted.judged(result) for result in found]
                await self._take(folder, batch, await folder.versions.look())
                self._editor.refresh(LENSES)

    async def _say_failing(self, tests: Sequence[str]) -> None:
        if tests:
            names = enumerated(tests, MAX_NAMED)
            fault = ToolError(f"left out, failing without any mutant: {names}", "make them pass")
            with contextlib.suppress(ConnectionError):
                await self._editor.say(str(fault), WARNING)

    async def outdate(self, folder: Folder) -> None:
        """Show which verdicts are doubtful by now, as tests have changed."""
        for path in await folder.outdate():
            await self._publisher.changed(folder, path)
            self._editor.refresh(LENSES)

    async def _take(self, folder: Folder, batch: Sequence[Result], version: int) -> None:
        by_path: dict[str, list[Result]] = {}
        for result in batch:
            by_path.setdefault(result.mutant.path, []).append(result)
        if unknown := by_path.keys() - folder.tools:
            folder.tools |= await folder.session.tools(unknown)
        for path, results in by_path.items():
            saved = await folder.session.source(path)
            shows_other = folder.known(path).take(results, saved, self._since(saved, folder, path), version)
            if self._explorer is not None:
                await self._explorer.results(folder, path, results, saved)
            if shows_other:
                await self._publisher.changed(folder, path)

    async def _forget(self, folder: Folder, selection: Selection, reported: Mapping[str, set[Place]]) -> None:
        """Forget selected mutants without a result: they no longer exist. In an unsaved text nobody knows."""
        within = selection.within(folder.root)
        for path, findings in list(folder.findings.items()):
            if within.scope.covers(path):
                saved = not self._since(await folder.session.source(path), folder, path).hunks
                if saved and findings.forget(within, reported.get(path, ())):
                    await self._publisher.changed(folder, path)

    def _since(self, saved: SourceText | None, folder: Folder, path: str) -> Changed:
        """The change from the text that tools read, `saved`, to the client's."""
        document = self._folders.opened(folder, path)
        return Changed(()) if document is None or saved is None else Changed.between(saved.text, document.source.text)

    async def _warn_of_unsaved(self, folder: Folder, selection: Selection) -> None:
        for document in list(self._folders.open_in(folder, selection)):
            if self._since(await folder.session.source(document.path), folder, document.path).hunks:
                await self._editor.say(f"{document.path} has unsaved changes: tools test what is saved", WARNING)


async def _accepted(folder: Folder) -> AcceptedSurvivors:
    from msp_bridge.reports.accepted import AcceptedSurvivors  # here: an editor waits for the rest

    return await asyncio.to_thread(AcceptedSurvivors.of, folder.root)

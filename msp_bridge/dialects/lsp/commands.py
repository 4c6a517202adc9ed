"""EditorCommands: what lenses and actions name, and `workspace/executeCommand` runs."""

from __future__ import annotations

import asyncio
from typing import Any

from attrs import frozen

from msp_bridge.dialects.lsp import types as lsp
from msp_bridge.dialects.lsp.editor import WARNING, Editor
from msp_bridge.dialects.lsp.findings import MutantFinding
from msp_bridge.dialects.lsp.folders import Folder, Folders
from msp_bridge.errors import BridgeError
from msp_bridge.source import Changed, SourceText, last_line, mutant_diff
from msp_bridge.workspace.selection import Selection, Target

TEST, TEST_CHANGED, TEST_PROJECT, SHOW, IGNORE, ACCEPT = COMMANDS = (
    "msp-bridge.test",
    "msp-bridge.testChanged",
    "msp-bridge.testProject",
    "msp-bridge.show",
    "msp-bridge.ignore",
    "msp-bridge.accept",
)
REASONS = ("equivalent: no caller can tell the difference", "not worth a test", "to be looked at later")


@frozen
class EditorCommands:
    """Runs the commands of one client, about the file `path` of a folder. Each method raises BridgeError."""

    _editor: Editor
    _folders: Folders

    async def selected(
        self, command: str, folder: Folder, path: str, argument: lsp.CommandArguments
    ) -> tuple[Selection | None, str]:
        """The selection of one of the three test commands, with words for it; None if the text is not saved yet."""
        if command == TEST_PROJECT:
            return Selection(), "the project"
        if command == TEST_CHANGED:
            return await folder.session.changed(), "what changed since HEAD"
        if argument.range is None:
            return Selection(targets=(Target(path),)), path
        source, saved = await self._folders.source(argument.uri), await folder.session.source(path)
        if source is None or saved is None:
            raise BridgeError(f"{path} can't be read")
        units = self._editor.units
        lines = Changed.between(source.text, saved.text).moved(units.location(source, argument.range))
        if lines is None:
            await self._editor.say(f"{path} has unsaved changes there: save it, tools test what is saved", WARNING)
            return None, ""
        return Selection(targets=(Target(path, lines, partly=True),)), f"{path}:{lines.start.line}-{last_line(lines)}"

    async def show(self, folder: Folder, path: str, argument: lsp.CommandArguments) -> str:
        """Show the user what a mutant changes, and return it as a diff."""
        mutant, source = _finding(folder, path, argument).result.mutant, await self._folders.source(argument.uri)
        diff = mutant_diff(source, mutant)
        await self._editor.say(f"{mutant.mutator}\n{diff}")
        return diff

    async def ignore(self, folder: Folder, path: str, argument: lsp.CommandArguments) -> None:
        """Have the client write the comment that leaves a mutant out."""
        mutant, source = _finding(folder, path, argument).result.mutant, await self._saved(folder, path, argument.uri)
        if source is None:
            return
        edit = await folder.session.ignore(mutant)
        change: dict[str, Any] = {"range": self._editor.units.range(source, edit.location), "newText": edit.text}
        await self._editor.apply(f"Leave out {edit.effect}", {"changes": {argument.uri: [change]}})

    async def accept(self, folder: Folder, path: str, argument: lsp.CommandArguments) -> bool:
        """Write a survivor into the project's file of accepted ones; returns whether the user agreed."""
        from msp_bridge.reports.accepted import AcceptedSurvivors  # here: an editor waits for the rest

        finding, source = _finding(folder, path, argument), await self._saved(folder, path, argument.uri)
        if source is None:
            return False
        why = argument.reason or await self._editor.choose(f"Why is {finding.change} accepted?", REASONS)
        if why is None:
            return False
        accepted = await asyncio.to_thread(AcceptedSurvivors.of, folder.root)
        content = accepted.content(finding.result.mutant)
        if content is None:
            raise BridgeError("this mutant is not there any more", "test its line again")
        await asyncio.to_thread(accepted.accept, [(content, finding.result.mutant.mutator)], why)
        folder.known(path).take([accepted.judged(finding.result)], source, Changed(()), finding.version)
        return True

    async def _saved(self, folder: Folder, path: str, uri: str) -> SourceText | None:
        """The client's text, if it is that of the file; else the user is told."""
        source, saved = await self._folders.source(uri), await folder.session.source(path)
        if source is not None and saved is not None and source.text == saved.text:
            return source
        await self._editor.say(f"{path} has unsaved changes: save it first", WARNING)
        return None


def _finding(folder: Folder, path: str, argument: lsp.CommandArguments) -> MutantFinding:
    finding = folder.known(path).by_id(argument.mutant or "")
    if finding is None:
        raise BridgeError("this mutant is not known any more", "test its line again")
    return finding

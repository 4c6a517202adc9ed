"""Offers: the code lenses and code actions of a document; EditorCommands: what they name, and the client executes."""

import ast
import asyncio
from collections.abc import Sequence
from functools import lru_cache
from threading import Lock
from typing import Any

from attrs import frozen

from msp_bridge.dialects.lsp import types as lsp
from msp_bridge.dialects.lsp.editor import WARNING, Editor
from msp_bridge.dialects.lsp.findings import MutantFinding, Outdated
from msp_bridge.dialects.lsp.folders import Folder, Folders
from msp_bridge.errors import BridgeError
from msp_bridge.model import Location, Position
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


# Two threads at once: "SystemError: AST constructor recursion depth mismatch", https://github.com/python/cpython/issues/106905
PARSING = Lock()
MAX_FIXES = 5  # mutants at one place that actions are offered for


@frozen
class Offers:
    """Makes lenses and actions for the text `source` of the document `uri`. Each command has one `CommandArguments`."""

    _editor: Editor
    _uri: str
    _source: SourceText

    def lens(self, summary: str, lines: Location | None = None) -> Any:
        """A CodeLens at the first of `lines`, or for the whole document; `summary` is empty when nothing is known."""
        start = Position(1, 1) if lines is None else lines.start
        title = f"{summary} · test" if summary else "test the mutants"
        return {
            "range": self._editor.units.range(self._source, Location(start, start)),
            "command": self._command(title, TEST, lines),
        }

    def tests(self, lines: Location, symbols: Sequence[tuple[str, Location]]) -> list[Any]:
        """The actions that test `lines`, the innermost of `symbols` around them, the file, and what has changed."""
        first, last = lines.start.line, lines.end.line - 1
        what = "this line" if first == last else f"lines {first} to {last}"
        commands = [self._command(f"Test the mutants of {what}", TEST, lines)]
        if around := [(name, place) for name, place in symbols if place.contains(lines)]:
            commands.append(self._command(f"Test the mutants of {around[-1][0]}", TEST, around[-1][1]))
        commands.append(self._command("Test the mutants of this file", TEST))
        commands.append(self._command("Test the mutants of what changed since HEAD", TEST_CHANGED))
        if self._editor.takes_actions:
            return [{"title": command["title"], "command": command} for command in commands]
        return commands

    def fixes(self, undetected: Sequence[MutantFinding], tool: str, outdated: Outdated) -> list[Any]:
        """The actions that show, accept and ignore each mutant, as far as the client can; `tool` has found them."""
        ignore = [("Ignore", IGNORE)] if self._editor.applies_edits else []
        verbs = [("Show", SHOW), ("Accept", ACCEPT), *ignore]
        fixes: list[Any] = []
        for finding in undetected[:MAX_FIXES]:
            commands = [self._command(f"{verb} {finding.change}", name, mutant=finding.id) for verb, name in verbs]
            if self._editor.takes_actions:
                about = {"diagnostics": [finding.diagnostic(self._editor.units, self._source, tool, outdated)]}
                fixes += [{"title": each["title"], "kind": "quickfix", **about, "command": each} for each in commands]
            else:
                fixes += commands
        return fixes

    def _command(self, title: str, command: str, lines: Location | None = None, mutant: str = "") -> dict[str, Any]:
        argument: dict[str, Any] = {"uri": self._uri}
        if lines is not None:
            argument["range"] = self._editor.units.range(self._source, lines)
        if mutant:
            argument["mutant"] = mutant
        return {"title": title, "command": command, "arguments": [argument]}


@lru_cache(maxsize=8)  # parsing ten thousand lines takes a tenth of a second
def symbols(path: str, source: SourceText) -> Sequence[tuple[str, Location]]:
    """Functions and classes with their lines, from `def` to the end, outer before inner. Python's alone are known."""
    if not path.endswith(".py"):
        return ()
    try:
        with PARSING:
            tree = ast.parse(source.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # it is being written
        return ()
    return [
        (node.name, Location(Position(node.lineno, 1), Position((node.end_lineno or node.lineno) + 1, 1)))
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]

"""Offers: the code lenses and code actions of a document, and where they are."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache
from threading import Lock
from typing import Any

from attrs import frozen

from msp_bridge.dialects.lsp.commands import ACCEPT, IGNORE, SHOW, TEST, TEST_CHANGED
from msp_bridge.dialects.lsp.editor import Editor
from msp_bridge.dialects.lsp.findings import MutantFinding, Outdated
from msp_bridge.model import Location, Position
from msp_bridge.source import SourceText

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

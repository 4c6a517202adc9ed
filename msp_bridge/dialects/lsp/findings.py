"""Findings: what is known of the mutants of a file, kept over edits, and how LSP shows it.

`Offers` are the code lenses and code actions of a document, and the commands that they name.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from attrs import define, evolve, field, frozen

from msp_bridge.dialects.lsp.documents import Changed, Units
from msp_bridge.dialects.lsp.editor import Editor
from msp_bridge.model import Location, Mutant, Position, Result, Status
from msp_bridge.source import SourceText, mutant_diff
from msp_bridge.workspace.selection import Selection

WARNING, INFORMATION = 2, 3  # DiagnosticSeverity
MAX_SHOWN = 60  # characters of code in a message
MAX_HOVERED = 5  # mutants in one hover
MAX_TESTS = 10  # names of tests in one hover
UNDETECTED = {Status.SURVIVED: WARNING, Status.NO_COVERAGE: INFORMATION}
TEST, TEST_CHANGED, TEST_PROJECT, SHOW, IGNORE = COMMANDS = (
    "msp-bridge.test",
    "msp-bridge.testChanged",
    "msp-bridge.testProject",
    "msp-bridge.show",
    "msp-bridge.ignore",
)
MAX_FIXES = 5  # mutants at one place that actions are offered for


@frozen
class Finding:
    """A result, `result.mutant` where the text is now, and the text that the mutant replaces."""

    result: Result
    original: str

    @property
    def message(self) -> str:
        """As in `Survived: "a + b" -> "a - b"; 3 tests ran through it`."""
        text = f"{self.result.status.value}: {self.change}"
        if self.result.status is Status.NO_COVERAGE:
            return f"{text}; no test runs through it"
        if self.result.covered_by is None:
            return text
        count = len(self.result.covered_by)
        return f"{text}; {count} test{'' if count == 1 else 's'} ran through it"

    @property
    def change(self) -> str:
        """As in `"a + b" -> "a - b"`."""
        return f"{_quoted(self.original)} -> {_quoted(self.result.mutant.replacement)}"

    @property
    def id(self) -> str:
        """Of the mutant, where it is now."""
        return self.result.mutant.id

    def explained(self, source: SourceText) -> str:
        """Markdown: the status and its reason, the diff, the tests."""
        result = self.result
        lines = [f"**{result.status.value}** {_code(result.mutant.mutator)}"]
        if result.duration is not None:
            lines[0] += f", {result.duration:.0f} ms"
        if result.status_reason:
            lines.append(result.status_reason.strip().partition("\n")[0])
        lines.append(_fenced(diff_of(source, result.mutant) or self.message))
        for title, tests in (("killed by", result.killed_by), ("covered by", result.covered_by)):
            if tests:
                more = f" and {len(tests) - MAX_TESTS} more" if len(tests) > MAX_TESTS else ""
                lines.append(f"{title} {', '.join(map(_code, tests[:MAX_TESTS]))}{more}")
        return "\n\n".join(lines)


@define(eq=False)
class Findings:
    """Those of one file, by mutant."""

    _known: dict[Mutant, Finding] = field(factory=dict)

    def __len__(self) -> int:
        """How many are known."""
        return len(self._known)

    def take(self, results: Iterable[Result], source: SourceText | None, since: Changed) -> None:
        """Results about the text `source`; `since` is what the client has changed in it."""
        for result in results:
            mutant = result.mutant
            location = since.moved(mutant.location)
            if location is not None:
                now = evolve(mutant, location=location, handle=None)
                self._known[now] = Finding(evolve(result, mutant=now), _at(source, mutant.location))

    def move(self, changed: Changed) -> bool:
        """The text has changed: what is in changed lines is no longer known, what is below moves. Whether any is."""
        if changed.hunks and self._known:
            kept = ((finding, changed.moved(mutant.location)) for mutant, finding in self._known.items())
            self._known = {
                now.result.mutant: now
                for now in (_moved(finding, location) for finding, location in kept if location is not None)
            }

            return True
        return False

    def forget(self, selection: Selection, exist: Collection[Mutant]) -> bool:
        """Of what is selected, all but what exists. Whether there was any."""
        gone = [mutant for mutant in self._known if mutant not in exist and selection.takes(mutant)]
        for mutant in gone:
            del self._known[mutant]
        return bool(gone)

    def within(self, location: Location) -> Iterator[Finding]:
        """Those that lie in `location`, perhaps in part."""
        return (finding for mutant, finding in self._known.items() if mutant.location.touches(location))

    def undetected_in(self, location: Location) -> list[Finding]:
        """Those in `location` that have a diagnostic."""
        return [finding for finding in self.within(location) if finding.result.status in UNDETECTED]

    def hover(self, location: Location, source: SourceText, units: Units) -> dict[str, Any] | None:
        """A Hover on the wire about what lies at `location`."""
        here = sorted(self.within(location), key=lambda finding: finding.result.status not in UNDETECTED)
        if not here:
            return None
        texts = [finding.explained(source) for finding in here[:MAX_HOVERED]]
        if len(here) > MAX_HOVERED:
            texts.append(f"and {len(here) - MAX_HOVERED} more mutants")
        place = here[0].result.mutant.location
        value = "\n\n---\n\n".join(texts)
        return {"contents": {"kind": "markdown", "value": value}, "range": units.range(source, place)}

    def by_id(self, id: str) -> Finding | None:
        """The finding of the mutant that was shown with this id."""
        return next((finding for mutant, finding in self._known.items() if mutant.id == id), None)

    def diagnostics(self, units: Units, source: SourceText | None, tool: str) -> list[dict[str, Any]]:
        """The Diagnostics on the wire, top down. Made by hand, for there may be ten thousand."""
        undetected = [finding for finding in self._known.values() if finding.result.status in UNDETECTED]
        undetected.sort(key=lambda finding: finding.result.mutant.location.start)
        return [
            {
                "range": units.range(source, finding.result.mutant.location),
                "severity": UNDETECTED[finding.result.status],
                "code": finding.result.mutant.mutator,
                "source": tool,
                "message": finding.message,
            }
            for finding in undetected
        ]

    def summary(self, location: Location | None = None) -> str:
        """As in `8 mutants: 6 killed, 2 survived`, "" when none is known; of those in `location`, or all."""
        known = self._known.values() if location is None else self.within(location)
        return summary_of(Counter(finding.result.status for finding in known))


def summary_of(counts: Counter[Status]) -> str:
    """As in `8 mutants: 6 killed, 2 survived`; "" for none."""
    total = counts.total()
    parts = ", ".join(f"{counts[status]} {_word(status)}" for status in Status if counts[status])
    return f"{total} mutant{'' if total == 1 else 's'}: {parts}" if total else ""


def symbols(path: str, source: SourceText) -> Sequence[tuple[str, Location]]:
    """Functions and classes with their lines, from `def` to the end, outer before inner. Python's alone are known."""
    if not path.endswith(".py"):
        return ()
    try:
        tree = ast.parse(source.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # it is being written
        return ()
    return [
        (node.name, Location(Position(node.lineno, 1), Position((node.end_lineno or node.lineno) + 1, 1)))
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]


def diff_of(source: SourceText, mutant: Mutant) -> str:
    """What the mutant changes, as a unified diff; "" when the text has no such place any more."""
    try:
        return mutant_diff(source, mutant)
    except ValueError:
        return ""


def _moved(finding: Finding, location: Location) -> Finding:
    if location is finding.result.mutant.location:
        return finding
    result = finding.result
    return evolve(finding, result=evolve(result, mutant=evolve(result.mutant, location=location)))


def _at(source: SourceText | None, location: Location) -> str:
    if source is None:
        return ""
    try:
        return source.at(location)
    except ValueError:
        return ""


def _word(status: Status) -> str:
    """`NoCoverage` -> `no coverage`."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in status.value).strip()


def _quoted(code: str) -> str:
    line, _, more = code.strip().partition("\n")
    short = line.rstrip()[:MAX_SHOWN]
    return f'"{short} …"' if more or len(line.rstrip()) > MAX_SHOWN else f'"{short}"'


def _code(text: str) -> str:
    return f"`{text}`" if "`" not in text else f"`` {text} ``"


def _fenced(diff: str) -> str:
    fence = "```"
    while fence in diff:
        fence += "`"
    return f"{fence}diff\n{diff.rstrip()}\n{fence}"


@frozen
class Offers:
    """Those about the text `source` of the document `uri`. Each command has one argument, a `CommandArguments`."""

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
        """To test `lines`, the innermost of `symbols` around them, the file, what has changed."""
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

    def fixes(self, undetected: Sequence[Finding]) -> list[Any]:
        """To show each mutant, and to ignore it, if the client can make edits."""
        verbs = [("Show", SHOW), ("Ignore", IGNORE)] if self._editor.applies_edits else [("Show", SHOW)]
        commands = [
            self._command(f"{verb} {finding.change}", command, mutant=finding.id)
            for finding in undetected[:MAX_FIXES]
            for verb, command in verbs
        ]
        if self._editor.takes_actions:
            return [{"title": command["title"], "kind": "quickfix", "command": command} for command in commands]
        return commands

    def _command(self, title: str, command: str, lines: Location | None = None, mutant: str = "") -> dict[str, Any]:
        argument: dict[str, Any] = {"uri": self._uri}
        if lines is not None:
            argument["range"] = self._editor.units.range(self._source, lines)
        if mutant:
            argument["mutant"] = mutant
        return {"title": title, "command": command, "arguments": [argument]}

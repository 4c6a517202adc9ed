"""Findings: what is known of the mutants of a file, kept over edits, and how LSP shows it."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from attrs import define, evolve, field, frozen

from msp_bridge.dialects.lsp.documents import Units
from msp_bridge.model import Location, Mutant, Result, Status
from msp_bridge.reports.results import is_accepted
from msp_bridge.source import Changed, SourceText, last_line, mutant_diff, shifted
from msp_bridge.text import counted, enumerated, first_of, one_line, visible
from msp_bridge.workspace.selection import Selection

WARNING, INFORMATION, HINT = 2, 3, 4  # DiagnosticSeverity
MAX_SHOWN = 60  # characters of code in a message
MAX_HOVERED = 5  # mutants in one hover
MAX_TESTS = 10  # names of tests in one hover
Key = tuple[int, int, int, str, str]
Place = tuple[int, Key]  # see `place_of`
Lines = dict[int, dict[Key, "MutantFinding"]]
Outdated = Mapping[
    int, str
]  # by version of a folder's files: a file that was edited since, and makes verdicts doubtful
UNDETECTED = {Status.SURVIVED: WARNING, Status.NO_COVERAGE: INFORMATION}


@frozen
class MutantFinding:
    """A result, and the text that its mutant replaces."""

    result: Result
    original: str
    version: int = 0  # of the folder's files, that the result is about (`FileVersions`)

    @property
    def message(self) -> str:
        """The text of the diagnostic, such as `Survived: "a + b" -> "a - b"; 3 tests ran through it`."""
        text = f"{self.result.status.value}: {self.change}"
        if is_accepted(self.result):
            return f"{text}; {one_line(self.result.status_reason or '')}"
        if self.result.status is Status.NO_COVERAGE:
            return f"{text}; no test runs through it"
        if self.result.covered_by is None:
            return f"{text}; it runs at import" if self.result.static else text
        return f"{text}; {counted(len(self.result.covered_by), 'test')} ran through it"

    @property
    def change(self) -> str:
        """The change, such as `"a + b" -> "a - b"`."""
        return f"{_quoted(self.original)} -> {_quoted(self.result.mutant.replacement)}"

    @property
    def id(self) -> str:
        """The mutant's id at its present place."""
        return self.result.mutant.id

    @property
    def shows(self) -> tuple[str, int] | None:
        """The text of its diagnostic, and the version that it is about; None when it has none."""
        return None if self.severity is None else (self.message, self.version)

    def diagnostic(self, units: Units, source: SourceText | None, tool: str, outdated: Outdated) -> dict[str, Any]:
        """The Diagnostic on the wire of a mutant with a `severity`, in the text `source`."""
        edited = outdated.get(self.version)
        mutant = self.result.mutant
        return {
            "range": units.range(source, mutant.location),
            "severity": self.severity,
            "code": mutant.mutator,
            "source": tool,
            "message": self.message if edited is None else f"{self.message}; outdated: {edited} has changed since",
        }

    @property
    def severity(self) -> int | None:
        """The DiagnosticSeverity: an accepted survivor is a hint; None of a mutant that has no diagnostic."""
        return HINT if is_accepted(self.result) else UNDETECTED.get(self.result.status)

    @property
    def more_lines(self) -> int:
        """How many lines the mutant reaches over beyond its first."""
        return last_line(self.result.mutant.location) - self.result.mutant.location.start.line

    def at_line(self, line: int) -> MutantFinding:
        """The finding, when its first line has become the line `line`."""
        mutant = self.result.mutant
        location = shifted(mutant.location, line - mutant.location.start.line)
        if location is mutant.location:
            return self
        return evolve(self, result=evolve(self.result, mutant=evolve(mutant, location=location)))

    def explained(self, source: SourceText, outdated: Outdated) -> str:
        """Markdown: the status and its reason, the diff, the tests."""
        result = self.result
        lines = [f"**{result.status.value}** {_code(result.mutant.mutator)}"]
        if result.duration is not None:
            lines[0] += f", {result.duration:.0f} ms"
        if result.status_reason:
            lines.append(result.status_reason.strip().partition("\n")[0])
        if self.version in outdated:
            lines.append(f"outdated: {outdated[self.version]} has changed since")
        diff = mutant_diff(source, result.mutant) or self.message
        fence = "```"
        while fence in diff:
            fence += "`"
        lines.append(f"{fence}diff\n{diff.rstrip()}\n{fence}")
        for title, tests in (("killed by", result.killed_by), ("covered by", result.covered_by)):
            if tests:
                lines.append(f"{title} {enumerated(tests, MAX_TESTS, _code)}")
        return visible("\n\n".join(lines))


@define(eq=False)
class FileFindings:
    """The findings of one file, by the line in which they begin now, and in it by mutant.

    A key press moves them: what moves is a line, at the same cost however many mutants lie in it. While the client's
    text is not saved, what is known of the file's is kept beside: it counts again when the client closes its text.
    `outdated` is that of the folder.
    """

    _outdated: Outdated = field(factory=dict)
    # A finding lies where it was found: `at_line` moves it.
    _lines: Lines = field(factory=dict)
    _saved: tuple[str, Lines] | None = None  # the file's text, and what is known of it, while the client has another
    _most_lines: int = 0  # that a finding has reached over

    @property
    def shown(self) -> int:
        """How many have a diagnostic."""
        return sum(found.severity is not None for here in self._lines.values() for found in here.values())

    def take(self, results: Iterable[Result], source: SourceText | None, since: Changed, version: int = 0) -> bool:
        """Take results about the text `source`; `since` is what the client has changed in it.

        Returns whether diagnostics are to be shown anew.
        """
        shows_other, saved = False, self._saved_lines(source, since)
        for result in results:
            line, key = place_of(result.mutant)
            original = _text_at(source, result.mutant.location)
            found = MutantFinding(evolve(result, mutant=evolve(result.mutant, handle=None)), original, version)
            if saved is not None:
                saved.setdefault(line, {})[key] = found
            by = since.shift(line, line + found.more_lines)
            if by is not None:
                here = self._lines.setdefault(line + by, {})
                shows_other |= found.shows != (here[key].shows if key in here else None)
                here[key] = found
                self._most_lines = max(self._most_lines, found.more_lines)
        return shows_other

    def move(self, changed: Changed) -> bool:
        """The text has changed: what is in changed lines is no longer known, what is below moves. Whether any is."""
        if not changed.hunks or not self._lines:
            return False
        self._lines = self._moved(self._lines, changed)
        return True

    def edit(self, before: str, changed: Changed) -> bool:
        """Move them after an unsaved change of the text `before`. Returns whether any moves."""
        if self._saved is None and changed.hunks:
            self._saved = before, {line: dict(here) for line, here in self._lines.items()}
        return self.move(changed)

    def save(self) -> None:
        """Note that the client's text has become the file's."""
        self._saved = None

    def close(self, text: str, saved: str) -> None:
        """Go back to the findings of the file's text `saved`, as the client has closed its `text`."""
        before, self._lines = self._saved or (text, self._lines)
        self._saved = None
        self.move(Changed.between(before, saved))

    def _moved(self, lines: Lines, changed: Changed) -> Lines:
        moved: Lines = {}
        for line, here in lines.items():
            by = changed.shift(line, line)
            if by is None:
                continue
            if self._most_lines:  # one that reaches over several lines may have changed further down
                here = {key: found for key, found in here.items() if changed.shift(line, line + found.more_lines) == by}
            moved[line + by] = here
        return moved

    def _saved_lines(self, source: SourceText | None, since: Changed) -> Lines | None:
        """The findings of the file's text `source`; None where it is the client's, too."""
        if source is None:
            return None
        if self._saved is None and since.hunks and not self._lines:
            self._saved = source.text, {}
        if self._saved is not None and self._saved[0] != source.text:  # written by another program
            before, lines = self._saved
            self._saved = source.text, self._moved(lines, Changed.between(before, source.text))
        return None if self._saved is None else self._saved[1]

    def forget(self, selection: Selection, exist: Collection[Place]) -> bool:
        """Forget the selected mutants that are not in `exist`. Returns whether there was any."""
        gone = [
            (here, key)
            for lines in self._all
            for line, here in lines.items()
            for key, found in here.items()
            if (line, key) not in exist and selection.takes(found.at_line(line).result.mutant)
        ]
        for here, key in gone:
            del here[key]
        return bool(gone)

    def within(self, location: Location) -> Iterator[MutantFinding]:
        """Yield the findings that lie in `location`, perhaps in part."""
        return (found.at_line(line) for line, found in self._within(location))

    def undetected_in(self, location: Location) -> list[MutantFinding]:
        """Return the findings in `location` that no test has noticed, without the accepted ones."""
        return [finding for finding in self.within(location) if finding.result.status in UNDETECTED]

    def hover(self, location: Location, source: SourceText, units: Units) -> dict[str, Any] | None:
        """A Hover on the wire about what lies at `location`."""
        here = sorted(self.within(location), key=lambda finding: finding.result.status not in UNDETECTED)
        if not here:
            return None
        place = here[0].result.mutant.location
        shown = functools.partial(MutantFinding.explained, source=source, outdated=self._outdated)
        value = "\n\n---\n\n".join(first_of(here, MAX_HOVERED, shown, more="and {} more mutants"))
        return {"contents": {"kind": "markdown", "value": value}, "range": units.range(source, place)}

    def by_id(self, id: str) -> MutantFinding | None:
        """The finding of the mutant that was shown with this id."""
        found = (finding.at_line(line) for line, here in self._lines.items() for finding in here.values())
        return next((finding for finding in found if finding.id == id), None)

    def result(self, mutant: Mutant) -> Result | None:
        """The result of `mutant`, at its present place; None when it is not known, or outdated."""
        line, key = place_of(mutant)
        found = self._lines.get(line, {}).get(key)
        return None if found is None or found.version in self._outdated else found.result

    @property
    def versions(self) -> set[int]:
        """The versions that the results are about."""
        return {found.version for lines in self._all for here in lines.values() for found in here.values()}

    @property
    def _all(self) -> list[Lines]:
        return [self._lines] if self._saved is None else [self._lines, self._saved[1]]

    def diagnostics(self, units: Units, source: SourceText | None, tool: str) -> Iterator[dict[str, Any]]:
        """The Diagnostics on the wire, top down, of what is known when the first is asked for.

        Made by hand and one by one: there may be ten thousand, and others have their turn in between (`Runs`).
        """
        shown = [
            (line, key, found)
            for line, here in self._lines.items()
            for key, found in here.items()
            if found.severity is not None
        ]
        shown.sort(key=lambda each: (each[0], each[1][:3]))
        for line, _, found in shown:
            yield found.at_line(line).diagnostic(units, source, tool, self._outdated)

    def summary(self, location: Location | None = None) -> str:
        """Return the counts of the findings in `location`, or all: `8 mutants: 6 killed, 2 survived`, "" for none."""
        every = (found for here in self._lines.values() for found in here.values())
        counts, doubtful = Counter[Status](), False
        for found in every if location is None else (found for _, found in self._within(location)):
            counts[found.result.status] += 1
            doubtful |= found.version in self._outdated
        return f"{summary_of(counts)}, outdated" if doubtful else summary_of(counts)

    def _within(self, location: Location) -> Iterator[tuple[int, MutantFinding]]:
        """Each with the line in which it begins now."""
        first, last = location.start.line - self._most_lines, last_line(location)
        few = last - first < len(self._lines)
        for line in range(first, last + 1) if few else sorted(self._lines):
            if first <= line <= last:
                for found in self._lines.get(line, {}).values():
                    place = found.result.mutant.location
                    if shifted(place, line - place.start.line).touches(location):
                        yield line, found


def summary_of(counts: Counter[Status]) -> str:
    """Return the counts as text: `8 mutants: 6 killed, 2 survived`, "" for none."""
    total = counts.total()
    parts = ", ".join(f"{counts[status]} {_word(status)}" for status in Status if counts[status])
    return f"{total} mutant{'' if total == 1 else 's'}: {parts}" if total else ""


def place_of(mutant: Mutant) -> Place:
    """The line in which it begins, and what distinguishes it from the others that begin there."""
    start, end = mutant.location.start, mutant.location.end
    return start.line, (start.column, end.line - start.line, end.column, mutant.mutator, mutant.replacement)


def _text_at(source: SourceText | None, location: Location) -> str:
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
    short = one_line(line.rstrip()[:MAX_SHOWN])
    return f'"{short} …"' if more or len(line.rstrip()) > MAX_SHOWN else f'"{short}"'


def _code(text: str) -> str:
    text = one_line(text)
    return f"`{text}`" if "`" not in text else f"`` {text} ``"

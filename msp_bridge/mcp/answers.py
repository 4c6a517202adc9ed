"""Answers: what the tools return, as structured content and as a short text that says the same.

Which of the two an agent gets to see is the client's choice, and some show it both. Both are short: counts, and the
few survivors that tell most. A list is cut where the answer would be too long: the structured content at `MAX_LIST`,
with a way to the rest, and the text at `MAX_TEXT`. The whole is in the resource `REPORT`.
"""

from __future__ import annotations

import abc
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from pydantic import BaseModel, Field

from msp_bridge.errors import BaselineError, BridgeError, SeveralErrors
from msp_bridge.mcp.known_mutants import Found
from msp_bridge.model import Mutant, Result, Status
from msp_bridge.notices import Notice, ProjectFailure, UnusableFile
from msp_bridge.reports.results import changed_lines
from msp_bridge.source import SourceText, mutant_diff
from msp_bridge.text import counted, first_of, one_line, shortened

REPORT = "mutation-report://report.json"
MAX_LIST = 40_000  # bytes of the mutants in one answer, as JSON
MAX_TEXT = 8_000  # bytes of the mutants in the text of an answer
MAX_DIFF = 8_000  # characters
MAX_NAME = 300  # characters of a test's name
MAX_PROBLEMS = 20
MAX_EDITED = 5  # names of edited files in a text
MAX_CODE = 160  # characters of code on each side in a list; the diff has all of it
MAX_TESTS = 20  # names of tests in one answer
MAX_REASON = 2000  # characters of what a tool says of a mutant
MAX_FAILURE_LINES = 20
UNREADABLE = (  # in the place of a diff
    "--- a/{mutant.path}\n+++ b/{mutant.path}\n(the source can't be read as UTF-8)\n+{mutant.replacement}\n"
)

Score = Annotated[float | None, Field(description="Percent of the mutants that the tests killed; null without any.")]
Counts = Annotated[dict[str, int], Field(description="How many mutants have which status.")]


class Answer(BaseModel, abc.ABC):
    """One answer, with its text."""

    @abc.abstractmethod
    def text(self) -> str:
        """For clients that show no structured content."""


class MutantAnswer(BaseModel):
    """One mutant in a list."""

    id: str
    path: Annotated[str, Field(description="Relative to the project's root.")]
    line: Annotated[int, Field(description="1-based.")]
    column: Annotated[int, Field(description="1-based, in UTF-16 code units.")]
    mutator: str
    before: Annotated[str, Field(description="The lines that it changes, as they are; may be cut.")]
    after: Annotated[str, Field(description="The same lines with the change in them; may be cut.")]
    status: Annotated[str, Field(description="Killed, Survived, NoCoverage, Timeout, Ignored, …; Pending: not tested.")]
    tests: Annotated[int | None, Field(description="How many tests run this code; null if the tool doesn't say.")]
    outdated: Annotated[bool, Field(description="Files were edited since the status was found: it may be another.")]

    @classmethod
    def of(
        cls, mutant: Mutant, result: Result | None, source: SourceText | None, *, outdated: bool = False
    ) -> MutantAnswer:
        """`source` is the text that it was found in, if that can be read."""
        start = mutant.location.start
        before, after = _changed_lines(mutant, source)
        return cls(
            id=mutant.id,
            path=mutant.path,
            line=start.line,
            column=start.column,
            mutator=mutant.mutator,
            before=before,
            after=after,
            status=(Status.PENDING if result is None else result.status).value,
            tests=None if result is None or result.covered_by is None else len(result.covered_by),
            outdated=outdated,
        )

    def text(self) -> str:
        """One line."""
        place = f"{one_line(self.path)}:{self.line}:{self.column}"
        tests = "" if self.tests is None else f", {counted(self.tests, 'test')} ran it"
        change = f"{_one_line(self.before)} => {_one_line(self.after)}"
        status = f"{self.status} (outdated)" if self.outdated else self.status
        return f"{self.id}  {status}  {place}  {change}  ({one_line(self.mutator)}{tests})"


class MutantList(Answer):
    """The answer of `list_mutants`."""

    total: Annotated[int, Field(description="All mutants that were selected.")]
    mutants: list[MutantAnswer]
    next_cursor: Annotated[str | None, Field(description="For the next call; null at the end.")]
    problems: Annotated[list[str], Field(description="Projects and files that could not be listed, and why.")]

    def text(self) -> str:
        """Implement `Answer`."""
        lines = [
            f"{counted(self.total, 'mutant')}, {len(self.mutants)} of them here:" if self.mutants else "no mutants"
        ]
        lines += _texts(self.mutants)
        lines += [] if self.next_cursor is None else [f'the next ones: cursor="{self.next_cursor}"']
        return "\n".join([*lines, *self.problems])


class Survivors(Answer):
    """The answer of `survivors`."""

    tested: Annotated[int, Field(description="Mutants with a result for the files as they are now.")]
    counts: Counts
    score: Score
    survivors: Annotated[
        list[MutantAnswer], Field(description="The most telling first: one for each line, then others.")
    ]
    more_survivors: Annotated[int, Field(description="How many further ones there are: survivors shows them.")]
    reused: Annotated[
        int, Field(description="Of those tested: how many in an earlier run; nothing has changed since.")
    ] = 0
    outdated: Annotated[int, Field(description="Further results that don't count, as files were edited since.")] = 0
    edited: Annotated[list[str], Field(description="These files, tests included; the first of them.")] = []

    def text(self) -> str:
        """Implement `Answer`."""
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """The lines of the text."""
        earlier = f" ({self.reused} in an earlier run)" if self.reused else ""
        tested = f"{counted(self.tested, 'mutant')} tested{earlier}"
        lines = [f"{tested}: {summary(self.counts, self.score)}" if self.tested else "no results yet"]
        lines += _texts(self.survivors)
        if self.more_survivors:
            lines.append(f"… {self.more_survivors} more that no test kills: survivors shows them")
        if self.outdated:
            lines.append(
                f"{counted(self.outdated, 'result')} outdated by an edit of {_listed(self.edited)}: test_mutants again"
            )
        return lines


class TestReport(Survivors):
    """The answer of `test_mutants`, about this call alone."""

    __test__ = False  # pytest takes it for tests

    tested: Annotated[int, Field(description="Mutants tested in this call.")]
    selected: Annotated[int, Field(description="Mutants that paths, ids and since select.")]
    untested: Annotated[int, Field(description="Selected, and not tested yet: by the limit, or for a problem.")]
    problems: Annotated[list[str], Field(description="What could not be tested and why, and tests that were left out.")]
    report: Annotated[str, Field(description="The resource with all results, as standard mutation report JSON.")] = (
        REPORT
    )

    def lines(self) -> list[str]:
        """The lines of the text."""
        lines = super().lines() if self.selected or self.problems else ["no mutants are selected: nothing to test"]
        if self.untested:
            lines.append(f"{self.untested} of {self.selected} not tested yet: the same call again goes on with them")
        return [*lines, *self.problems]


class ShownMutant(Answer):
    """The answer of `show_mutant`."""

    mutant: MutantAnswer
    diff: Annotated[str, Field(description="Unified diff from the code that it was found in; may be cut.")]
    why: Annotated[str, Field(description="What the status means here, and what to do.")]
    covering_tests: Annotated[
        list[str] | None, Field(description=f"Tests that run this code, at most {MAX_TESTS}; null: not known.")
    ]
    killed_by: Annotated[list[str] | None, Field(description="Tests that failed or did not end; null: not known.")]
    reason: Annotated[
        str | None, Field(description="What the tool says of it, such as the failing test's message; may be cut.")
    ]
    duration_ms: float | None

    @classmethod
    def of(cls, found: Found, result: Result | None, edited: Sequence[str]) -> ShownMutant:
        """`edited` are files that were edited since, the mutant's own alone if that is one of them."""
        mutant, source = found.mutant, found.source
        return cls(
            mutant=MutantAnswer.of(mutant, result, source, outdated=bool(edited)),
            diff=shortened(mutant_diff(source, mutant) or UNREADABLE.format(mutant=mutant), MAX_DIFF),
            why=_why(mutant, result) if not edited else _why_outdated(mutant, result, edited),
            covering_tests=None if result is None else _names(result.covered_by),
            killed_by=None if result is None else _names(result.killed_by),
            reason=None if result is None else shortened(result.status_reason or "", MAX_REASON) or None,
            duration_ms=None if result is None else result.duration,
        )

    def text(self) -> str:
        """Implement `Answer`."""
        parts = [self.mutant.text(), self.diff.rstrip("\n"), self.why]
        for title, names in (("Tests that run it", self.covering_tests), ("Killed by", self.killed_by)):
            if names:
                parts.append("\n".join([f"{title}:", *(f"  {one_line(name)}" for name in names)]))
        return "\n\n".join([*parts, *([self.reason] if self.reason else [])])


class IgnoreEdit(Answer):
    """The answer of `ignore_mutant`."""

    path: str
    start_line: Annotated[int, Field(description="1-based.")]
    start_column: Annotated[int, Field(description="1-based, in UTF-16 code units.")]
    end_line: int
    end_column: Annotated[int, Field(description="Exclusive. Where start and end are the same, new_text is inserted.")]
    new_text: str
    diff: Annotated[str, Field(description="The same as a unified diff: git apply takes it.")]
    effect: Annotated[str, Field(description="What the tool leaves out then.")]

    def text(self) -> str:
        """Implement `Answer`."""
        return f"Not applied. With this edit the tool leaves out {self.effect}:\n\n{self.diff}"


def summary(counts: Mapping[str, int], score: float | None) -> str:
    """The counts and the mutation score in one line."""
    return ", ".join(f"{count} {status}" for status, count in counts.items()) + (
        "" if score is None else f"; mutation score {score:.1f} %"
    )


def fitting(mutants: Iterable[MutantAnswer]) -> list[MutantAnswer]:
    """Take as many of the first ones as fit into one answer; at least one, if there is any."""
    found, size = list[MutantAnswer](), 0
    for mutant in mutants:
        size += len(mutant.model_dump_json().encode()) + 1
        if found and size > MAX_LIST:
            break
        found.append(mutant)
    return found


def error_text(error: BridgeError) -> str:
    """The problem, and what to do about it. Of a red baseline also the failing tests, and what the first one prints."""
    if isinstance(error, SeveralErrors):
        return "\n\n".join(map(error_text, error.errors))
    lines = [f"{one_line(error.problem).rstrip('.')}."]
    if error.remedy is not None:
        lines.append(f"What to do: {one_line(error.remedy)}.")
    if isinstance(error, BaselineError):
        lines += [f"  {one_line(name)}" for name in error.failing[:MAX_TESTS]]
        lines += error.first_failure.strip().splitlines()[-MAX_FAILURE_LINES:]
    return "\n".join(lines)


def problem_text(notice: Notice) -> str:
    """One entry of `problems`."""
    if isinstance(notice, ProjectFailure | UnusableFile):
        return one_line(error_text(notice.error).replace("\n", " "))
    return one_line(str(notice))


def _why(mutant: Mutant, result: Result | None) -> str:
    if result is None:
        return f'It was not tested yet: test_mutants with ids=["{mutant.id}"].'
    tests = "" if result.covered_by is None else f"{counted(len(result.covered_by), 'test')} ran this code, and "
    if not tests and result.static:
        tests = "it runs at import, and the tests "
    match result.status:
        case Status.SURVIVED:
            return (
                f"Survived: {tests or 'the tests '}passed with the change in it. No test asserts what differs. "
                "Find an input for which the two versions behave differently, and assert the right outcome."
            )
        case Status.NO_COVERAGE:
            return "NoCoverage: no test runs this code. Write one that does, and that asserts what the code is for."
        case Status.KILLED:
            return "Killed: a test fails with the change in it. There is nothing to do."
        case Status.TIMEOUT:
            return "Timeout: with the change in it the tests did not end in time, which counts as killed."
        case Status.IGNORED:
            return "Ignored: the tool, its configuration or a comment leaves it out, or it could not be tested."
    return f"{result.status.value}: no verdict, as the code with the change in it can't be built or run."


def _why_outdated(mutant: Mutant, result: Result | None, edited: Sequence[str]) -> str:
    if mutant.path in edited:
        return f"Outdated: {mutant.path} was edited since, and the diff is one of the text before. Call list_mutants."
    return (
        f"Outdated: {_listed(edited)} was edited since, and the status may be another by now: test_mutants with "
        f'ids=["{mutant.id}"]. Before the edit: {_why(mutant, result)}'
    )


def _names(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else [shortened(name, MAX_NAME) for name in names[:MAX_TESTS]]


def _texts(mutants: Sequence[MutantAnswer]) -> list[str]:
    """A line for each of the first mutants, and how many others there are."""
    lines, size = list[str](), 0
    for mutant in mutants:
        line = mutant.text()
        size += len(line.encode("utf-8", "replace")) + 1
        if size > MAX_TEXT:
            more = len(mutants) - len(lines)
            return [
                *lines,
                f"… {more} more are in the structured content alone; limit={len(lines)} names no more than this",
            ]
        lines.append(line)
    return lines


def first_problems(problems: Sequence[str]) -> list[str]:
    """Cut the list, and each problem."""
    return first_of(problems, MAX_PROBLEMS, lambda problem: shortened(problem, MAX_REASON))


def _listed(paths: Sequence[str]) -> str:
    return ", ".join(map(one_line, paths[:MAX_EDITED])) + (" and others" if len(paths) > MAX_EDITED else "")


def _changed_lines(mutant: Mutant, source: SourceText | None) -> tuple[str, str]:
    """Before and after; the bare replacement alone when the source can't be read, or is another one by now."""
    lines = changed_lines(source, mutant) or [("+", mutant.replacement)]
    before, after = ("\n".join(line for sign, line in lines if sign == wanted) for wanted in "-+")
    return _cut(before), _cut(after)


def _cut(code: str) -> str:
    return shortened(textwrap.dedent(code).strip("\n"), MAX_CODE)


def _one_line(text: str) -> str:
    return f"`{' '.join(text.split())}`" if text.strip() else "(nothing)"


class LastResults(Answer):
    """The answer of `results`."""

    total: Annotated[int, Field(description="Mutants that are selected.")]
    counts: Counts
    score: Score
    mutants: Annotated[list[MutantAnswer], Field(description="`outdated`: its lines have changed since.")]

    def text(self) -> str:
        """Implement `Answer`."""
        shown = f"{len(self.mutants)} of {counted(self.total, 'mutant')}"
        return "\n".join([f"{shown}: {summary(self.counts, self.score)}", *(mutant.text() for mutant in self.mutants)])


class NextSurvivor(ShownMutant):
    """The answer of `next_survivor`."""

    hint: Annotated[str, Field(description="Where an assertion is missing.")]
    remaining: Annotated[int, Field(description="Further survivors.")]

    def text(self) -> str:
        """Implement `Answer`."""
        return f"{super().text()}\n\n{self.hint}\n{counted(self.remaining, 'further survivor')}"


class AcceptedMutant(Answer):
    """The answer of `accept_mutant`."""

    file: Annotated[str, Field(description="The file that the entry was written to.")]
    written: Annotated[bool, Field(description="False: it was accepted before.")]

    def text(self) -> str:
        """Implement `Answer`."""
        return f"Accepted: {self.file} {'has a new entry' if self.written else 'had it already'}."

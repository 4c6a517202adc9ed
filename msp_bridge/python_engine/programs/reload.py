"""Reload: an edit of function bodies goes into the live server, and only the tests that run them are measured again.

The problem: after an edit, starting pytest, importing the project, collecting and measuring all tests takes seconds;
the edit mostly changes one function. The rule is that of `live_code`, with the edited file in the place of the
mutated one: if the edit changes nothing but code objects of functions, and none of these ran before the fork, the
live functions of the server get the code of the new file, unchanged ones for their line numbers. What the
unedited functions were seen to run stays true, at its new lines. The tests that ran an edited function (and tests
that start processes) are measured again: their paths through the project may differ now. An edit of test functions goes
the same way (`test_reload`): these tests are measured again. Anything else needs new servers.
"""

from __future__ import annotations

import types
from dataclasses import dataclass

from .baseline import Baseline, FileFacts
from .live_code import CodeChange, Pair, Segment, all_nested, in_pairs, key, pairs, same_shallow
from .process_starts import PROCESSES
from .server_process import ServerProcess
from .source_file import SourceFile

Codes = tuple[types.CodeType, types.CodeType]
UNCOMPILED = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)


@dataclass(frozen=True)
class EditedFunctions:
    """An edit of a source, as a change of its functions."""

    texts: tuple[str, str]  # normal ones, before and after
    codes: Codes
    pairs: tuple[Pair, ...]  # of functions that have changed
    change: CodeChange

    @classmethod
    def of(cls, filename: str, old: str, new: str) -> EditedFunctions:
        """Compare the two texts of a file. Raises one of `UNCOMPILED`."""
        segment = Segment.of_file(filename, old, new)
        before, after = segment.compiled()
        changed = tuple(pair for pair in pairs(before, after) if pair.changed)
        return cls((old, new), (before, after), changed, CodeChange.of(segment, range(0), changed))

    def ran_at_import(self, facts: FileFacts) -> bool:
        """Whether importing the file as it is now, to which `facts` belong, may depend on what was edited."""
        now = {key(pair.new) for pair in self.pairs if pair.new is not None}
        return facts.read or not now.isdisjoint(facts.called | facts.suspended)

    def applied(self, baseline: Baseline, path: str, facts: FileFacts | None) -> Baseline:
        """The baseline in which the tests that ran an edited function, or one that is no more, are not measured.

        `facts`: of the file now; None: the tests import it themselves.
        """
        tests, to = baseline.readers(PROCESSES), _moved_lines(*self.codes)
        edited = {line for pair in self.pairs for line in _lines(pair.old)}
        for line, mask in baseline.lines.get(path, {}).items():
            tests |= mask if line in edited or line not in to else 0
        return baseline.edited(path, facts, to, tests, self.texts)


def reloaded(baseline: Baseline, path: str, old: SourceFile, new: SourceFile, server: ServerProcess) -> Baseline | None:
    """The baseline after the edit, in which the tests that it concerns are not measured.

    None when the server can't have the new code.
    """
    facts = baseline.facts.get(path)
    if path not in baseline.late and (facts is None or path in baseline.unseen):
        return None
    try:
        edit = EditedFunctions.of(new.filename, old.text, new.text)
    except UNCOMPILED:
        return None
    if edit.change.not_live is not None or not baseline.allows_live_code(path, edit.change):
        return None
    if facts is None:  # what imports it after the fork finds the edit in the file
        return edit.applied(baseline, path, None)
    answer = server.reload(edit.change.segment)
    if answer is None or "facts" not in answer:
        return None
    now = FileFacts.of({**answer["facts"], "called": _moved_keys(facts, *edit.codes), "read": False})
    return edit.applied(baseline, path, now)


def reloaded_tests(baseline: Baseline, path: str, segment: Segment, server: ServerProcess) -> Baseline | None:
    """The baseline after an edit of a test file, when the server has the new code; None when it can't have it."""
    answer = server.reload(segment)
    if answer is None or "tests" not in answer:
        return None
    return baseline.edited(path, None, {}, int(answer["tests"], 16))


def _moved_lines(old: types.CodeType, new: types.CodeType) -> dict[int, int]:
    """Old lines to new ones, of the code objects that the edit has not changed."""
    return {
        line: to
        for one, other in in_pairs(old, new)
        if same_shallow(one, other)
        for line, to in zip(_ordered(one), _ordered(other), strict=False)
    }


def _moved_keys(facts: FileFacts, old: types.CodeType, new: types.CodeType) -> list[tuple[str, int]]:
    """The functions that were called before the fork, as they are named now."""
    return [key(other) for one, other in in_pairs(old, new) if key(one) in facts.called]


def _ordered(code: types.CodeType) -> list[int]:
    return [line for _, _, line in code.co_lines() if line is not None]


def _lines(code: types.CodeType) -> set[int]:
    """The lines of a function and of those nested in it."""
    return {line for each in all_nested(code) for line in _ordered(each)}

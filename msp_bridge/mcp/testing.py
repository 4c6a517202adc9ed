"""TestRun: the mutants that one call tests, and which results are about one version of the files; Discovery before it.

Theory of operation
-------------------
Files are edited while mutants are tested, and tools follow the edits: a result may be about the text before or after.
So the files are looked at again and again while results come. A result counts if no file was touched between the look
before the run and one after the result came. When a source or test file was touched, the run ends: what has come since
the look before is dropped, and counted as untested, as are all mutants of the edited files. Another file, such as data,
may be written all the time, and ends no run: the results are given, and are outdated from the start.
"""

import contextlib
import time
from collections import Counter
from collections.abc import AsyncGenerator, Collection, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath

from attrs import define, field

from msp_bridge.concurrency import all_of, in_thread
from msp_bridge.mcp.answers import problem_text
from msp_bridge.mcp.known_mutants import KnownMutants
from msp_bridge.mcp.running_calls import CallProgress, Work
from msp_bridge.model import Mutant, Result, Status
from msp_bridge.notices import Notice, PhaseReport, Told
from msp_bridge.phases import batches
from msp_bridge.reports.results import place
from msp_bridge.source import SourceText
from msp_bridge.text import counted, enumerated, one_line
from msp_bridge.workspace.selection import Selection
from msp_bridge.workspace.workspace import Workspace

ATTEMPTS = 3  # at listing the mutants of files that are edited meanwhile
LOOK_S = 1.0  # between two looks at the files
LOOKS = 20  # times what a look takes: so much of the run at most it costs
MAX_NAMED = 5  # files in one problem


async def discovered(
    workspace: Workspace, selection: Selection, known: KnownMutants, problems: list[str]
) -> tuple[list[Mutant], int]:
    """The mutants of the files in the selection, by place, and the version of all files that they are of.

    The notices of the discovery become `problems`, as do files that keep changing.
    """
    for attempt in range(1, ATTEMPTS + 1):
        begun = await known.versions.look(known.paths)
        told = Told()
        found = await _listed(workspace, selection, told)
        paths = {mutant.path for mutant in found}
        sources = await in_thread(_sources, workspace.root, paths)
        version = await known.versions.look(paths)
        edited = paths.intersection(known.versions.touched(begun))
        if not edited or attempt == ATTEMPTS:
            break
    problems += map(problem_text, told.notices)
    if edited:
        names = ", ".join(map(one_line, sorted(edited)))
        problems.append(f"left out, edited each time that their mutants were listed: {names}")
        found = [mutant for mutant in found if mutant.path not in edited]
    if known.versions.too_large:
        problems.append("the project has too many files: edits of tests do not outdate results")
    known.listed(found, {path: source for path, source in sources.items() if path not in edited}, version)
    return found, version


async def recall(workspace: Workspace, known: KnownMutants) -> None:
    """Remember the verdicts of earlier runs that hold still. Raises BridgeError."""
    _, version = await discovered(workspace, Selection(), known, [])
    found = await all_of(workspace.known(Selection()))
    await known.versions.look()
    if not known.versions.touched(version):
        known.tested(found, version)


async def _listed(workspace: Workspace, selection: Selection, told: Told) -> list[Mutant]:
    found = await all_of(batches(workspace.discover(selection.of_whole_files), told.tell))
    return sorted(chain.from_iterable(found), key=place)


def _sources(root: Path, paths: Collection[str]) -> dict[str, SourceText | None]:
    return {path: SourceText.read_or_none(root / path) for path in paths}


@define(eq=False)
class TestRun(Work):
    """One call of `test_mutants`. `results` are the ones that count; `explained` says why others don't."""

    __test__ = False  # pytest takes it for tests

    known: KnownMutants
    progress: CallProgress
    selected: Sequence[Mutant] | None = field(default=None, init=False)  # None: they are not listed yet
    problems: list[str] = field(factory=list, init=False)
    results: list[Result] = field(factory=list, init=False)
    edited: list[str] = field(factory=list, init=False)  # while it ran
    _code: frozenset[str] = field(default=frozenset(), init=False)  # suffixes
    _version: int = field(default=0, init=False)
    _new: list[Result] = field(factory=list, init=False)  # since the last look
    _reasons: Counter[str] = field(factory=Counter, init=False)  # why mutants were not tested
    _has_verdicts: bool = field(default=False, init=False)  # the tests have run without mutants
    _told: Told = field(init=False)
    _missing: int = field(default=0, init=False)  # results that a run which came to its end did not have
    _next_look: float = field(default=0.0, init=False)  # time.monotonic()

    @_told.default
    def _tell(self) -> Told:
        return Told(self._begin_phase)

    async def test(
        self, mutants: Sequence[Mutant], version: int, testing: AsyncGenerator[Result | Notice, None]
    ) -> None:
        """Take the results of `mutants`, which were discovered in this version of the files."""
        self.worth_keeping = False  # until a phase has begun
        self._version, self._next_look = version, time.monotonic() + LOOK_S
        self._code = frozenset(PurePosixPath(mutant.path).suffix for mutant in mutants)
        self.progress.total, self.progress.message = len(mutants), "preparing"
        came = missed = 0
        async with contextlib.aclosing(batches(testing, self._told.tell)) as ready:
            try:
                async for result in (result async for batch in ready for result in batch):
                    came, missed = came + 1, missed + result.status.undetected
                    self.progress.step(f"{came} of {len(mutants)} mutants tested, {missed} not killed")
                    self._take(result)
                    if (time.monotonic() > self._next_look and await self._ended_by_edit()) or self._is_over:
                        break
            finally:
                await self._ended_by_edit()
        self._missing = 0 if self._is_over else len(mutants) - came

    def _begin_phase(self, phase: PhaseReport) -> None:
        self.progress.show_phase(phase)
        self.worth_keeping = not self._has_verdicts

    @property
    def _is_over(self) -> bool:
        return self.left and not self.worth_keeping

    def _take(self, result: Result) -> None:
        if result.untested:
            self._reasons[result.status_reason or ""] += 1
            return
        self._new.append(result)
        if not (result.reused or result.status is Status.IGNORED):
            self._has_verdicts, self.worth_keeping = True, False

    async def _ended_by_edit(self) -> bool:
        """Look at the files, and keep what has come if it is about the version of the run. Whether it must end."""
        began, versions = time.monotonic(), self.known.versions
        await versions.look()
        new, self._new = self._new, []  # now: a cancel of the look must lose nothing
        self.edited = versions.touched(self._version)
        self._next_look = time.monotonic() + max(LOOK_S, LOOKS * (time.monotonic() - began))
        if self._edited_code:
            edited = set(self.edited)
            self.results = [result for result in self.results if result.mutant.path not in edited]
            return True
        self.results += new
        self.known.tested(new, self._version, self.edited)
        return False

    @property
    def _edited_code(self) -> bool:
        return any(PurePosixPath(path).suffix in self._code for path in self.edited)

    def explained(self) -> list[str]:
        """The problems: what was not tested, and why."""
        problems = list(dict.fromkeys([*self.problems, *map(problem_text, self._told.notices)]))
        if self.edited:
            return [*problems, f"edited while the mutants were tested: {named(self.edited)}; {self._then}"]
        reasons = [f"{counted(count, 'mutant')} {reason}" for reason, count in self._reasons.items()]
        gone = [f"{counted(self._missing, 'mutant')} no longer there: call list_mutants"] if self._missing > 0 else []
        return [*problems, *reasons, *gone]

    @property
    def _then(self) -> str:
        if self._edited_code:
            return "the test ended there, and its results are about the files before: call test_mutants again"
        return "the results may be about the files before or after, and count as outdated"


def named(paths: Sequence[str]) -> str:
    """Join the first of the paths."""
    return enumerated(paths, MAX_NAMED, one_line)

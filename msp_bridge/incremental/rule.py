"""The rule: when the verdict of an earlier run is given again, and what is remembered of this one.

Theory of operation
-------------------
The problem. Most verdicts of a run would be those of the run before. To give them again without a test is right only
when a test would say the same, and a wrong guess is never seen: nobody looks at a mutant that is Killed. The obvious
ways are wrong. Times of files say nothing after a checkout. The mutated file and the test files are not enough: a third
file, a data file, a conftest.py, a package that was upgraded changes a verdict, too.

The rule. *A verdict is reused only if nothing has changed that it could depend on. When in doubt, the mutant is
tested.* What a verdict depends on:

1. the mutant: its path, mutator, location and replacement;
2. the files of the project, by content: all that a private copy would have. That is every file below the directory that
   was opened, without version control, environments and caches, and a configuration file that was named;
3. its surroundings: what the adapter says (`ReportsSurroundings`: the versions of interpreter, tool and installed
   packages, and trees outside of the project that are read, too), the environment variables of interpreters and tools,
   variables that the user named, the machine, and the bridge itself.

An adapter that can't say what surrounds its tool has nothing reused.

After an edit. Of the Python engine's verdicts, some say more exactly what of the files they depend on
(`Result.dependencies`): the functions that ran, and the files whose source was read, in the process that collected the
tests and in every process that the verdict rests on: the runs of the killer alone, with the mutant and without it, or,
where there is none, all those with the mutant. Such a verdict holds though bodies of other functions have changed:

- *Killed*: its killer would go the same way, and fail again, and would pass without the mutant.
- *Survived* and *NoCoverage*: so would all tests that ran, and these are all that could kill the mutant. An edit may
  have led other tests to its code; so all tests are run without a mutant first, each of them alone, too, where there
  are such verdicts, and no other one must be found to run it (`KnowsReach`). A test that ran nothing that has changed
  when it ran alone would find what it has found: it isn't run alone again (`alone`).
- A survivor at import depends on all tests together: from the first function on that has changed, the process may hold
  something else, and a later test may find that, with the mutant only, without running what has made it.
- Neither holds where some test fails without a mutant, needs others before it, or does not always pass: the engine
  then leaves tests out, or tests in another way.

Why the same code goes the same way: a process does what its code says, and the code that ran is the same, step by step,
up to the first function that has changed, which is never reached. What the code can read besides is the same, too: the
rest of all Python files (`code`), all other files and their names, and the source of Python files where it was read.
A mutant is known by the rest of the code, the function around it and its place in that, so lines may have moved.

Such verdicts have a second row, which holds the names of sets of code and of tests; the sets are rows of
their own, for many verdicts share them. A set that is no longer there is code that has changed.

What is remembered. `Killed`, `Survived`, `NoCoverage` and `CompileError`. `Ignored` costs nothing. `RuntimeError`
says as much about the machine as about the mutant, and so does `Timeout` that came once: it is noted apart, and reused
only when the next run in the same state has tested the mutant again and agrees. No verdict that the adapter says is not
reusable, as when tests were left out because they fail without any mutant: the next run has to say so again.

The state of the project is that of the *tests*, and files are saved while they run. So the state is looked at before
the adapter begins, and verdicts are remembered under it only when it is still the same after they came, down to the
times and inodes of all files (`State.stamps`): then no file was touched between, and the adapter, which refreshed its
copy between, has seen the same. At the first change what is not yet remembered is dropped, and nothing more is
remembered until the adapter is called again.

Reused verdicts are those of the mutants of this run's own discovery: mutants are always discovered.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from attrs import define, evolve, field

from msp_bridge import reading
from msp_bridge.adapter import AskRanAlone, RanAlone, Reach, Surroundings
from msp_bridge.concurrency import in_thread
from msp_bridge.errors import BridgeError
from msp_bridge.incremental.code import Code, CodeReader
from msp_bridge.incremental.rows import (
    REUSABLE,
    DependentVerdict,
    RunsAlone,
    row_of_code,
    row_of_tests,
    unchanged_sets,
    verdict_fields,
)
from msp_bridge.incremental.state import Look, State, machine
from msp_bridge.model import Mutant, Ran, Result, Status
from msp_bridge.rows import mutant_row, names_of, result_row
from msp_bridge.text import counted
from msp_bridge.toolkit.kept_answers import KeptAnswers
from msp_bridge.toolkit.variables import variables

log = logging.getLogger(__name__)

Ask = Callable[[], Awaitable[Surroundings | None]]  # `ReportsSurroundings`
TIMED_OUT = b"timed out once"  # personalises the keys of such verdicts
SAVE_S = 10.0  # between two times that what has come is remembered
LOOKS = 20  # times what a look at the tree takes: so much of the run at most it costs to remember


class AskReach(Protocol):
    """`KnowsReach`."""

    async def __call__(self, mutants: Sequence[Mutant], known: AskRanAlone, *, alone: bool) -> Mapping[Mutant, Reach]:
        """Call the function."""


@define(eq=False)
class Incremental:
    """The verdicts of one workspace. `named` is the configuration file that the user named, if it is one."""

    root: Path
    answers: KeptAnswers
    named: Path | None = None
    environment: Collection[str] = ()  # names of variables that the tests read
    reader: CodeReader = field(factory=CodeReader, init=False)
    _look: Look = field(factory=Look, init=False)

    async def verdicts(self, label: str, folder: str, surroundings: Ask) -> Verdicts:
        """The verdicts of the tool `label` in `folder` for the project as it is.

        Raises BridgeError where nothing can be reused.
        """
        started = time.monotonic()
        state = await self.state(surroundings)
        return Verdicts(self, label, folder, surroundings, state, max(SAVE_S, LOOKS * (time.monotonic() - started)))

    async def state(self, ask: Ask) -> State:
        """The state as of now. Raises BridgeError when it can't be known."""
        surroundings = await ask()
        if surroundings is None:
            raise BridgeError("the tool can't say what surrounds it")
        return await in_thread(self._state, surroundings)

    def _state(self, surroundings: Surroundings) -> State:
        around = {
            **machine(),
            "variables": variables(os.environ, self.environment),
            "tool": dict(surroundings.values),
            "configuration": None if self.named is None else reading.digest(self.named),
        }
        return self._look.state(self.root, surroundings.trees, around)


@define(eq=False)
class Verdicts:
    """Verdicts of one tool's mutants, known before and found now, while the project is as it was at one moment."""

    _incremental: Incremental
    _label: str
    _folder: str  # of the tool's project, relative to the workspace's root, with a `/` at the end
    _surroundings: Ask
    _state: State
    _interval: float  # s
    _new: dict[bytes, Any] = field(factory=dict)
    _timed_out: set[Mutant] = field(factory=set)  # in one earlier run: another one that agrees is to be reused
    _dependent: list[Result] = field(factory=list)  # new ones that say what they depend on
    _split: Code | None = None
    _alone: RunsAlone | None = None
    _changed: bool = False  # the project has, since
    _saved: float = field(factory=time.monotonic)

    async def known(self, mutants: Iterable[Mutant]) -> list[Result]:
        """The verdicts of those of `mutants` for which nothing has changed."""
        due = list(mutants)
        found = await in_thread(self._known, due)
        total = counted(len(due), "mutant")
        log.info("%s: the verdicts of %d of %s are those of an earlier run", self._label, len(found), total)
        return found

    def _known(self, mutants: list[Mutant]) -> list[Result]:
        keys = {self._key(mutant): mutant for mutant in mutants}
        found = self._incremental.answers.find(keys, verdict_fields)
        once = {self._key(mutant, TIMED_OUT): mutant for key, mutant in keys.items() if key not in found}
        self._timed_out.update(once[key] for key in self._incremental.answers.find(once, verdict_fields))
        return [Result(keys[key], **fields) for key, fields in found.items()]

    async def unaffected(self, mutants: Iterable[Mutant], reach: AskReach) -> list[Result]:
        """The verdicts of those of `mutants` that depend on nothing that has changed.

        Has all tests run without a mutant, if there could be some. Raises BridgeError.
        """
        found, runs_alone = await in_thread(lambda: (self._not_changed(list(mutants)), self._runs_alone))
        if not found and not runs_alone.known.tests:
            return []

        async def known() -> RanAlone:
            return runs_alone.known if await self._is_same() else RanAlone()

        alone = any(tests is not None for _, tests in found)
        reached = await reach([result.mutant for result, _ in found], known, alone=alone)
        if found and not reached:
            log.info(
                "%s: all mutants are tested, for not every test passes without any, alone and in order", self._label
            )
        results = [
            evolve(result, covered_by=_covered_by(result, reached[result.mutant]))
            for result, tests in found
            if result.mutant in reached and _holds(result, tests, reached[result.mutant])
        ]
        if not await self._is_same():
            return []
        for result in results:
            self._new[self._key(result.mutant)] = result_row(result)
        log.info("%s: %s did not depend on what has changed", self._label, counted(len(results), "verdict"))
        return results

    def _not_changed(self, mutants: list[Mutant]) -> list[tuple[Result, frozenset[str] | None]]:
        """The verdicts whose code has not changed, each with the tests that may reach it; None: any."""
        answers = self._incremental.answers
        keys = {key: mutant for mutant in mutants if (key := self._code_key(mutant)) is not None}
        found = answers.find(keys, DependentVerdict.of)
        there = unchanged_sets({name for verdict in found.values() for name in verdict.ran}, answers, self._code)
        found = {key: verdict for key, verdict in found.items() if there.keys() >= set(verdict.ran)}
        names = {verdict.tests for verdict in found.values() if verdict.tests is not None}
        rows = answers.find(map(bytes.fromhex, names), names_of)
        sets: dict[str | None, frozenset[str] | None] = {name.hex(): frozenset(row) for name, row in rows.items()}
        sets[None] = None
        return [
            (Result(keys[key], **verdict.fields), sets[verdict.tests])
            for key, verdict in found.items()
            if verdict.tests in sets
        ]

    @property
    def _runs_alone(self) -> RunsAlone:
        """Blocks."""
        if self._alone is None:
            self._alone = RunsAlone.of(self._label, self._incremental.answers, self._code)
        return self._alone

    @property
    def _code(self) -> Code:
        """The code of the state. Blocks."""
        if self._split is None:
            state = self._state
            self._split = self._incremental.reader.code(
                self._incremental.root, self._folder, state.files, state.surroundings
            )
        return self._split

    def note(self, result: Result) -> None:
        """Note a verdict that the tool has given just now."""
        if result.status in REUSABLE and result.reusable and not self._changed:
            first = result.status is Status.TIMEOUT and result.mutant not in self._timed_out
            self._new[self._key(result.mutant, TIMED_OUT if first else b"")] = result_row(result)
            if result.status is not Status.TIMEOUT and result.dependencies is not None:
                self._dependent.append(result)

    @property
    def due(self) -> bool:
        """Whether it is time for `save`."""
        return bool(self._new) and time.monotonic() - self._saved > self._interval

    async def save(self, ran_alone: Mapping[str, tuple[Ran, ...]]) -> None:
        """Remember what was noted, and what tests have run alone, if the project is as it was."""
        new, self._new = self._new, {}
        dependent, self._dependent = self._dependent, []
        if not new or self._changed:
            return
        same = await self._is_same()
        self._saved = time.monotonic()
        if same:
            await in_thread(lambda: self._incremental.answers.save({**new, **self._rows(dependent, ran_alone)}))
        else:
            self._changed = True
            log.info("%s: the project has changed since: the verdicts of this run are not kept", self._label)

    async def _is_same(self) -> bool:
        """Whether the project is as it was."""
        try:
            return await self._incremental.state(self._surroundings) == self._state
        except BridgeError:
            return False

    def _rows(self, results: Iterable[Result], ran_alone: Mapping[str, tuple[Ran, ...]]) -> dict[bytes, Any]:
        """Rows of verdicts that say what they depend on, and of the code that this is."""
        rows = self._runs_alone.rows(self._code, ran_alone) if ran_alone else {}
        for result in results:
            key = self._code_key(result.mutant)
            identity = self._code.identity(result.mutant, result.mutant.path[len(self._folder) :])
            if key is None or identity is None or result.dependencies is None:
                continue
            sets = [row_of_code(self._code.digests(ran)) for ran in (*result.dependencies.ran, identity[1])]
            rows.update(sets)
            named = None
            if result.dependencies.tests is not None:
                name, names = row_of_tests(result.dependencies.tests)
                named, rows[name] = name.hex(), names
            rows[key] = [result_row(result), [name.hex() for name, _ in sets], named]
        return rows

    def _code_key(self, mutant: Mutant) -> bytes | None:
        """The key of a mutant's verdict wherever the rest of the code is the same; None for one in no such file."""
        identity = self._code.identity(mutant, mutant.path[len(self._folder) :])
        if identity is None:
            return None
        text = json.dumps([self._label, *identity[0]])
        return blake2b(self._code.rest + text.encode("ascii"), digest_size=16, person=b"dependent").digest()

    def _key(self, mutant: Mutant, person: bytes = b"") -> bytes:
        identity = json.dumps([self._label, *mutant_row(mutant)])
        return blake2b(self._state.digest + identity.encode("ascii"), digest_size=16, person=person).digest()


def _covered_by(result: Result, reach: Reach) -> tuple[str, ...] | None:
    """The covering tests as of now: tests that were not run alone again reach what they have reached."""
    covered_by = reach.covered_by
    if result.status is Status.SURVIVED:
        covered_by += tuple(test for test in result.covered_by or () if test not in reach.covered_by)
    return covered_by or (None if result.static else ())


def _holds(result: Result, tests: frozenset[str] | None, reach: Reach) -> bool:
    """Whether no test could kill the mutant except the tests for which the verdict holds.

    A survivor is NoCoverage when no test was seen to run its code.
    """
    survived = result.status in (Status.SURVIVED, Status.NO_COVERAGE)
    if survived and not result.static and bool(reach.covered_by) != (result.status is Status.SURVIVED):
        return False
    return tests is None or reach.tests <= tests

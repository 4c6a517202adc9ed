"""Calls: what each tool does, over the server's workspaces. Raises BridgeError for whatever the agent can put right."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Sequence,
)
from pathlib import Path
from typing import Any

from msp_bridge.concurrency import cancel_all, in_thread
from msp_bridge.errors import ConfigurationError
from msp_bridge.jsonrpc.messages import dump
from msp_bridge.mcp.answers import (
    IgnoreEdit,
    MutantAnswer,
    MutantList,
    ShownMutant,
    Survivors,
    TestReport,
    problem_text,
)
from msp_bridge.mcp.known_mutants import KnownMutants, most_telling, place
from msp_bridge.mcp.tools import IgnoreArguments, ListArguments, ShowArguments, SurvivorsArguments, TestArguments
from msp_bridge.model import Mutant, Result
from msp_bridge.notices import Notice, PhaseReport, Told
from msp_bridge.phases import without_notices
from msp_bridge.reports.results import Score
from msp_bridge.reports.standard import report
from msp_bridge.source import SourceText, edit_diff, mutant_diff
from msp_bridge.text import counted
from msp_bridge.workspace.open_workspaces import OpenWorkspaces
from msp_bridge.workspace.selection import Selection
from msp_bridge.workspace.targets import Selected, select
from msp_bridge.workspace.workspace import Workspace

SHOWN_SURVIVORS = 10  # survivors in the answer of a test
BEAT_S = 1.0  # between two reports of progress

Report = Callable[[float, float | None, str], Awaitable[None]]  # progress, total, message


class CallProgress:
    """Reports how far a call is, once a second, also while nothing is found: clients give up on silent calls.

    MCP wants each report to have a greater number than the one before. Between two results the number comes nearer and
    nearer to the next one.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._beats, self._last = 0, -1.0
        self._done, self.total = 0, 0
        self.message = "looking for mutants"

    @contextlib.asynccontextmanager
    async def reported(self) -> AsyncIterator[None]:
        """While the block runs, and at its end."""
        beating = asyncio.create_task(self._beat(), name="progress")
        try:
            yield
        finally:
            await cancel_all([beating])
        await self._send()

    def step(self, message: str) -> None:
        """One more is done."""
        self._done, self._beats, self.message = self._done + 1, 0, message

    def show_phase(self, phase: PhaseReport) -> None:
        """Say what is done until the first result."""
        if not self._done:
            self.message = str(phase)

    async def _beat(self) -> None:
        while True:
            await self._send()
            self._beats += 1
            await asyncio.sleep(BEAT_S)

    async def _send(self) -> None:
        complete = self.total and self._done == self.total
        now = self._done if complete else self._done + 1 - 1 / (self._beats + 1)
        if now > self._last:
            self._last = now
            await self._report(now, self.total or None, self.message)


class Calls:
    """The tools, by their names. Answers are about this server's findings."""

    def __init__(self, root: Path, workspaces: OpenWorkspaces) -> None:
        self._root, self._workspaces = root, workspaces
        self._findings = KnownMutants(root)

    async def list_mutants(self, arguments: ListArguments, _: CallProgress) -> MutantList:
        """See `tools`."""
        told = Told()
        selected = await self._select(arguments.paths, arguments.since)
        async with self._workspaces.use(None) as workspace:
            mutants = await self._discover(workspace, selected, told)
        start = 0
        if arguments.cursor is not None:
            ids = [mutant.id for mutant in mutants]
            if arguments.cursor not in ids:
                raise ConfigurationError(
                    "there is no mutant any more where this cursor stands", "call list_mutants without a cursor"
                )
            start = ids.index(arguments.cursor) + 1
        end = start + arguments.limit
        return MutantList(
            total=len(mutants),
            mutants=await self._answers(mutants[start:end]),
            next_cursor=mutants[end - 1].id if end < len(mutants) else None,
            problems=_problems(told),
        )

    async def test_mutants(self, arguments: TestArguments, progress: CallProgress) -> TestReport:
        """See `tools`."""
        if arguments.ids and (arguments.paths or arguments.since is not None):
            raise ConfigurationError("ids go without paths and since", "leave out the one or the other")
        told = Told(progress.show_phase)
        async with progress.reported(), self._workspaces.use(None) as workspace:
            if arguments.ids:
                chosen = selected = await self._named(workspace, arguments.ids, told)
            else:
                paths = await self._select(arguments.paths, arguments.since)
                selected = await self._discover(workspace, paths, told)
                chosen = self._findings.most_wanted(selected)[: arguments.limit]
            testing = workspace.test(Selection.of(chosen), anew=bool(arguments.ids))
            results = await self._test(testing, chosen, progress, told) if chosen else []
        problems = _problems(told)
        if gone := len(chosen) - len(results):
            problems.append(f"{counted(gone, 'mutant')} no longer there, as the file was edited: call list_mutants")
        return TestReport(
            **await self._summary(results, SHOWN_SURVIVORS),
            selected=len(selected),
            untested=self._findings.untested(selected),
            problems=problems,
        )

    async def survivors(self, arguments: SurvivorsArguments, _: CallProgress) -> Survivors:
        """See `tools`."""
        selected = await self._select(arguments.paths, None)
        takes = self._takes(selected)
        results, outdated = await in_thread(self._findings.current)
        results = [result for result in results if takes(result.mutant)]
        return Survivors(**await self._summary(results, arguments.limit), outdated=outdated)

    async def show_mutant(self, arguments: ShowArguments, _: CallProgress) -> ShownMutant:
        """See `tools`."""
        mutant = await self._mutant(arguments.id)
        source = await self._source(mutant)
        return ShownMutant.of(mutant, self._findings.result(mutant), source, mutant_diff(source, mutant))

    async def ignore_mutant(self, arguments: IgnoreArguments, _: CallProgress) -> IgnoreEdit:
        """See `tools`."""
        mutant = await self._mutant(arguments.id)
        async with self._workspaces.use(None) as workspace:
            edit = await workspace.ignore(mutant, arguments.reason)
        source, start, end = await self._source(mutant), edit.location.start, edit.location.end
        return IgnoreEdit(
            path=edit.path,
            start_line=start.line,
            start_column=start.column,
            end_line=end.line,
            end_column=end.column,
            new_text=edit.text,
            diff=edit_diff(source, edit),
            effect=edit.effect,
        )

    async def report(self) -> bytes:
        """All results of files that are as they were, in the standard format."""
        return await in_thread(lambda: dump(report(self._root, self._findings.current()[0])))

    async def _select(self, paths: Sequence[str], since: str | None) -> Selected:
        selected = select(self._root, paths)
        return selected if since is None else await selected.since(self._root, since)

    async def _discover(self, workspace: Workspace, selected: Selected, told: Told) -> list[Mutant]:
        """The selected mutants, sorted by place."""
        found: list[Mutant] = []
        discovering = without_notices(workspace.discover(selected.selection.of_whole_files), told.tell)
        async with contextlib.aclosing(discovering) as batches:
            async for batch in batches:
                found += batch
        found.sort(key=place)
        await in_thread(self._findings.listed, found)
        return list(filter(self._takes(selected), found))

    def _takes(self, selected: Selected) -> Callable[[Mutant], bool]:
        selection = selected.selection.within(self._root)
        return lambda mutant: selection.takes(mutant) and selected.takes(mutant)

    async def _named(self, workspace: Workspace, ids: Sequence[str], told: Told) -> list[Mutant]:
        """The mutants with these ids: of this server, or else of the whole project. Raises ConfigurationError."""
        if any(self._findings.mutant(id) is None for id in ids):
            await self._discover(workspace, select(self._root, ()), told)
        found = {id: self._findings.mutant(id) for id in ids}
        unknown = [id for id, mutant in found.items() if mutant is None]
        if unknown:
            raise ConfigurationError(
                f"there is no mutant with the id {', '.join(unknown[:SHOWN_SURVIVORS])}",
                "call list_mutants: a mutant gets another id when its line moves, or its code changes",
            )
        return [mutant for mutant in found.values() if mutant is not None]

    async def _mutant(self, id: str) -> Mutant:
        if (known := self._findings.mutant(id)) is not None:
            return known
        async with self._workspaces.use(None) as workspace:
            return (await self._named(workspace, [id], Told()))[0]

    async def _test(
        self,
        testing: AsyncGenerator[Result | Notice, None],
        mutants: Sequence[Mutant],
        progress: CallProgress,
        told: Told,
    ) -> list[Result]:
        progress.total, progress.message = len(mutants), "preparing"
        await in_thread(self._findings.read, {mutant.path for mutant in mutants})
        results: list[Result] = []
        missed = 0
        async with contextlib.aclosing(without_notices(testing, told.tell)) as batches:
            async for result in (result async for batch in batches for result in batch):
                self._findings.tested(result)
                results.append(result)
                missed += result.status.undetected
                progress.step(f"{len(results)} of {len(mutants)} mutants tested, {missed} not noticed")
        return results

    async def _summary(self, results: Collection[Result], limit: int) -> dict[str, Any]:
        """What `Survivors` and `TestReport` have in common."""
        score, missed = Score.of(results), most_telling(results)
        return {
            "tested": len(results),
            "counts": {status.value: count for status, count in score.counts.items()},
            "score": score.percent,
            "survivors": await self._answers(result.mutant for result in missed[:limit]),
            "more_survivors": max(0, len(missed) - limit),
        }

    async def _answers(self, mutants: Iterable[Mutant]) -> list[MutantAnswer]:
        return await in_thread(self._read_answers, list(mutants))

    def _read_answers(self, mutants: Sequence[Mutant]) -> list[MutantAnswer]:
        sources = {path: self._readable(path) for path in {mutant.path for mutant in mutants}}
        return [MutantAnswer.of(mutant, self._findings.result(mutant), sources[mutant.path]) for mutant in mutants]

    def _readable(self, path: str) -> SourceText | None:
        try:
            return SourceText.read(self._root / path)
        except (OSError, ValueError):
            return None

    async def _source(self, mutant: Mutant) -> SourceText:
        """Raises ConfigurationError when the file has no such mutant any more."""
        source = await in_thread(self._readable, mutant.path)
        try:
            if source is not None:
                source.apply(mutant)
                return source
        except ValueError:
            pass
        raise ConfigurationError(f"{mutant.path} was edited, and has this mutant no more", "call list_mutants")


def _problems(told: Told) -> list[str]:
    return list(map(problem_text, told.notices))

"""Calls: what each tool does, over the server's workspaces. Raises BridgeError for whatever the agent can put right."""

import contextlib
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from msp_bridge.concurrency import in_thread
from msp_bridge.errors import BridgeError, ConfigurationError
from msp_bridge.jsonrpc.messages import dump
from msp_bridge.mcp import kept
from msp_bridge.mcp.answers import (
    AcceptedMutant,
    IgnoreEdit,
    LastResults,
    MutantAnswer,
    MutantList,
    NextSurvivor,
    ShownMutant,
    Survivors,
    TestReport,
    first_problems,
    fitting,
)
from msp_bridge.mcp.known_mutants import Found, KnownMutants
from msp_bridge.mcp.running_calls import CallProgress, LeftRunning, Work
from msp_bridge.mcp.testing import TestRun, discovered, named, recall
from msp_bridge.mcp.tools import (
    AcceptArguments,
    IgnoreArguments,
    ListArguments,
    NextArguments,
    ResultsArguments,
    ShowArguments,
    SurvivorsArguments,
    TestArguments,
)
from msp_bridge.model import Mutant, Result
from msp_bridge.reports.accepted import AcceptedSurvivors
from msp_bridge.reports.results import Score, most_telling
from msp_bridge.reports.standard import report
from msp_bridge.source import edit_diff
from msp_bridge.workspace.open_workspaces import OpenWorkspaces
from msp_bridge.workspace.selection import Selection, Target
from msp_bridge.workspace.targets import Selected, select
from msp_bridge.workspace.versions import FileVersions
from msp_bridge.workspace.workspace import Workspace

SHOWN_SURVIVORS = 10  # survivors in the answer of a test
MAX_EDITED = 20  # names of edited files in one answer
CALL = "call test_mutants with the paths of the code that they test, or with the ids of its survivors"
ALL = "list_mutants without paths has all"
NEW_ID = "a mutant gets another id when its line moves, or its code changes"


class Calls:
    """The tools, by their names. Answers are about this server's findings."""

    def __init__(self, root: Path, workspaces: OpenWorkspaces) -> None:
        self._root, self._workspaces = root, workspaces
        self._versions = FileVersions(root)
        self._known = KnownMutants(self._versions)
        self._left = LeftRunning()
        self._recalled = False

    async def aclose(self) -> None:
        """End what goes on although its call has ended."""
        await self._left.aclose()

    async def list_mutants(self, arguments: ListArguments, _: CallProgress) -> MutantList:
        """Answer the call of this tool (`tools`)."""
        problems: list[str] = []
        paths = arguments.named("paths")
        selected = await self._select(paths, arguments.since)
        await self._recall()
        mutants = await self._listed(selected, problems)
        start = 0
        if arguments.cursor is not None:
            ids = [mutant.id for mutant in mutants]
            if arguments.cursor not in ids:
                raise ConfigurationError(
                    "there is no mutant any more where this cursor stands", "call list_mutants without a cursor"
                )
            start = ids.index(arguments.cursor) + 1
        shown = await self._answers(mutants[start : start + arguments.limit])
        end = start + len(shown)
        return MutantList(
            total=len(mutants),
            mutants=shown,
            next_cursor=mutants[end - 1].id if end < len(mutants) else None,
            problems=first_problems(problems if mutants else problems or _no_mutant(selected, paths, arguments.since)),
        )

    async def test_mutants(self, arguments: TestArguments, progress: CallProgress) -> TestReport:
        """Answer the call of this tool (`tools`)."""
        paths, ids = arguments.named("paths"), arguments.named("ids")
        if ids is not None and (paths is not None or arguments.since is not None):
            raise ConfigurationError("ids go without paths and since", "leave out the one or the other")
        selected = await self._select(paths, arguments.since)
        run = TestRun(self._known, progress)
        async with progress.reported():
            done = await self._left.finished(run, self._run(ids, arguments.limit, selected, run), arguments.max_seconds)
        if not done:
            run.problems.append(f"max_seconds is over: {_went_on(run)}")
        elif not (run.selected or run.problems):
            run.problems += _no_mutant(selected, paths, arguments.since)
        return await self._report(run)

    async def survivors(self, arguments: SurvivorsArguments, _: CallProgress) -> Survivors:
        """Answer the call of this tool (`tools`)."""
        takes = (await self._select(arguments.named("paths"), None)).takes
        await self._recall()
        await self._versions.look()
        results, outdated, edited = self._known.current()
        results = [result for result in results if takes(result.mutant)]
        return Survivors(
            **await self._summary(results, arguments.limit),
            outdated=sum(takes(result.mutant) for result in outdated),
            edited=edited[:MAX_EDITED],
        )

    async def show_mutant(self, arguments: ShowArguments, _: CallProgress) -> ShownMutant:
        """Answer the call of this tool (`tools`)."""
        found = await self._found(arguments.id)
        edited = [found.mutant.path] if self._known.is_edited(found) else self._known.edited_since(found.mutant)
        return ShownMutant.of(found, self._known.result(found.mutant), edited)

    async def ignore_mutant(self, arguments: IgnoreArguments, _: CallProgress) -> IgnoreEdit:
        """Answer the call of this tool (`tools`)."""
        found = await self._found(arguments.id)
        mutant, source = found.mutant, found.source
        if source is None or self._known.is_edited(found):
            raise ConfigurationError(f"{mutant.path} was edited since", f"call list_mutants: {NEW_ID}")
        async with self._workspaces.use(None) as workspace:
            edit = await workspace.ignore(mutant, arguments.reason)
        start, end = edit.location.start, edit.location.end
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

    async def results(self, arguments: ResultsArguments, _: CallProgress) -> LastResults:
        """Answer the call of this tool (`tools`)."""
        return await in_thread(kept.last_results, self._root, arguments)

    async def next_survivor(self, arguments: NextArguments, _: CallProgress) -> NextSurvivor:
        """Answer the call of this tool (`tools`)."""
        await self._versions.look()
        current, outdated, _edited = self._known.current()
        own = {result.mutant.id: (found, result) for result in (*current, *outdated) if (found := self._there(result))}
        return await in_thread(kept.next_survivor, self._root, own, arguments)

    async def accept_mutant(self, arguments: AcceptArguments, _: CallProgress) -> AcceptedMutant:
        """Answer the call of this tool (`tools`)."""
        await self._versions.look()
        found = self._known.found(arguments.id)
        result = None if found is None or self._known.is_edited(found) else self._known.result(found.mutant)
        return await in_thread(kept.accepted, self._root, arguments.id, result, arguments.reason)

    async def report(self) -> bytes:
        """All results that count, in the standard format."""
        await self._versions.look()
        return await in_thread(lambda: dump(report(self._root, self._known.current()[0])))

    async def _run(self, ids: Sequence[str] | None, limit: int, selected: Selected, run: TestRun) -> None:
        """Discover and test what is selected, after what other calls have begun."""
        await self._left.others()
        run.worth_keeping = True
        async with self._workspaces.use(None) as workspace:
            if ids is None:
                mutants, version = await discovered(workspace, selected.selection, self._known, run.problems)
                run.selected = list(filter(selected.takes, mutants))
                chosen = self._known.most_wanted(run.selected)[:limit]
            else:
                chosen, version = await self._named(workspace, ids, run.problems)
                run.selected = chosen
            if chosen:
                testing = workspace.test(Selection.of(chosen), anew=ids is not None)
                await run.test(chosen, version, testing)

    async def _report(self, run: TestRun) -> TestReport:
        tested = {result.mutant.id for result in run.results}
        _, outdated, edited = self._known.current()
        selected = run.selected or ()
        return TestReport(
            **await self._summary(run.results, SHOWN_SURVIVORS),
            selected=len(selected),
            untested=self._known.untested(mutant for mutant in selected if mutant.id not in tested),
            outdated=sum(result.mutant.id not in tested for result in outdated),
            edited=edited[:MAX_EDITED],
            problems=first_problems(run.explained()),
        )

    def _there(self, result: Result) -> Found | None:
        """The mutant of `result`, if its file is as it was."""
        found = self._known.found(result.mutant.id)
        return None if found is None or self._known.is_edited(found) else found

    async def _select(self, paths: Sequence[str] | None, since: str | None) -> Selected:
        selected = select(self._root, paths or ())
        return selected if since is None else await selected.since(self._root, since)

    async def _listed(self, selected: Selected, problems: list[str]) -> list[Mutant]:
        """The selected mutants, by place. A cancelled call is not the end of the discovery."""
        found: list[Mutant] = []

        async def discover() -> None:
            async with self._workspaces.use(None) as workspace:
                found.extend((await discovered(workspace, selected.selection, self._known, problems))[0])

        await self._left.finished(Work(worth_keeping=True), discover())
        return list(filter(selected.takes, found))

    async def _recall(self) -> None:
        """Take over the verdicts of earlier runs that hold still, once, where they are kept."""
        if self._recalled:
            return
        self._recalled = True
        with contextlib.suppress(BridgeError):  # the caller that needs the tool is told
            async with self._workspaces.use(None) as workspace:
                if workspace.projects.configuration.incremental:
                    await recall(workspace, self._known)

    async def _named(self, workspace: Workspace, ids: Sequence[str], problems: list[str]) -> tuple[list[Mutant], int]:
        """The mutants with these ids as the files are now, and their version. Ids that are gone become a problem.

        Raises ConfigurationError when all are gone.
        """
        version = await self._versions.look(self._known.paths)
        known = [self._known.found(id) for id in ids]
        edited = {found.mutant.path for found in known if found is not None and self._known.is_edited(found)}
        if None in known:
            _, version = await discovered(workspace, Selection(), self._known, problems)
        elif edited:
            there = Selection(targets=tuple(Target(path) for path in sorted(edited) if self._versions.has(path)))
            _, version = await discovered(workspace, there, self._known, problems)
        found = {id: self._known.found(id) for id in ids}
        gone = [id for id, each in found.items() if each is None or self._known.is_edited(each)]
        if gone:
            problem = f"there is no mutant with the id {named(gone)}" + (
                f": {named(sorted(edited))} was edited" if edited else ""
            )
            if len(gone) == len(found):
                raise ConfigurationError(problem, f"call list_mutants: {NEW_ID}")
            problems.append(f"{problem}; call list_mutants")
        return [each.mutant for id, each in found.items() if each is not None and id not in gone], version

    async def _found(self, id: str) -> Found:
        """The mutant with this id, and its text. Raises ConfigurationError."""
        await self._versions.look()
        if (known := self._known.found(id)) is not None:
            return known

        async def discover() -> None:
            async with self._workspaces.use(None) as workspace:
                await self._named(workspace, [id], [])

        await self._left.finished(Work(worth_keeping=True), discover())
        found = self._known.found(id)
        assert found is not None
        return found

    async def _summary(self, results: Collection[Result], limit: int) -> dict[str, Any]:
        """The fields that `Survivors` and `TestReport` have in common."""
        accepted = await in_thread(AcceptedSurvivors.of, self._root)
        results = [accepted.judged(result) for result in results]
        score, missed = Score.of(results), most_telling(results)
        shown = await self._answers(result.mutant for result in missed[:limit])
        return {
            "tested": len(results),
            "counts": {status.value: count for status, count in score.counts.items()},
            "score": score.percent,
            "reused": sum(result.reused for result in results),
            "survivors": shown,
            "more_survivors": len(missed) - len(shown),
        }

    async def _answers(self, mutants: Iterable[Mutant]) -> list[MutantAnswer]:
        """Take as many of them as fit into one answer."""
        return await in_thread(lambda: fitting(map(self._answer, mutants)))

    def _answer(self, mutant: Mutant) -> MutantAnswer:
        found = self._known.found(mutant.id)
        source = None if found is None else found.source
        outdated = bool(self._known.edited_since(mutant))
        return MutantAnswer.of(mutant, self._known.result(mutant), source, outdated=outdated)


def _no_mutant(selected: Selected, paths: Sequence[str] | None, since: str | None) -> list[str]:
    """Why nothing is selected, and what to call instead."""
    if selected.changes is not None:
        if not selected.changes.lines:
            return [f"nothing has changed since {since}"]
        files = named(sorted(selected.changes.lines))
        return [f"no mutant lies on a line that has changed since {since} ({files}): after a change of tests, {CALL}"]
    if paths is not None:
        none = "tests have none, nor other files that the tool does not mutate"
        return [f"no mutant lies in {named(paths)}: {none}; one lies wholly within lines that are named; {ALL}"]
    return []


def _went_on(run: TestRun) -> str:
    if run.selected is None:
        return "the mutants are still being listed. That goes on; the same call again has them"
    if run.worth_keeping:
        return "the tests still run without mutants. That goes on; the same call again tests the mutants then"
    return "the same call again goes on"

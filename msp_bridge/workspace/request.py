"""Request: what one tool owes to a request, from the mutants that are due to the ones left out.

`workspace` has the theory of operation; its steps 3 to 7 are here. `Request.due` is the only record of what is owed.
A mutant leaves it exactly when its result is given on, so none gets two, and what is left in the end is reported.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from attrs import define, evolve, field

from msp_bridge.concurrency import merge_streams
from msp_bridge.errors import BridgeError, SeveralErrors
from msp_bridge.model import Mutant, Result, Scope, Status
from msp_bridge.notices import Notice, ProjectFailure, Remark
from msp_bridge.workspace.projects import Part
from msp_bridge.workspace.scheduler import JobBudget, Turn

if TYPE_CHECKING:
    from msp_bridge.incremental import Incremental, Verdicts

T = TypeVar("T")
log = logging.getLogger(__name__)

ROUNDS = 3  # times that a request tests the mutants of files that change meanwhile
GONE = "its file has changed since, and it no longer exists: discover again"


@define
class ProjectErrors:
    """Errors in the parts of one request, kept until the others have done theirs."""

    parts: Sequence[Part]
    _found: dict[Part, BridgeError] = field(factory=dict)

    def merged(self, sources: Mapping[Part, AsyncGenerator[T, None]]) -> AsyncGenerator[T, None]:
        """Merge the parts' sources, each until it fails. The failure of the only one is raised at once."""
        if len(self.parts) == 1:  # the usual case, and merging takes its time for each result
            ((part, source),) = sources.items()
            return _naming(part, source) if part.tool.folder else source
        return merge_streams([self._collecting(part, source) for part, source in sources.items()])

    def collected(self) -> list[ProjectFailure]:
        """A notice for each part that failed. Raises SeveralErrors when all parts failed that were named.

        VS Code always asks by name, for all that lies at the top; with an error it drops the results of all parts.
        """
        found = sorted(self._found.items(), key=lambda item: item[0].tool.label)
        errors = [error.labelled(part.tool.label) for part, error in found]
        wanted = [part for part in self.parts if part.named] or self.parts
        if errors and all(part in self._found for part in wanted):
            raise SeveralErrors(errors)
        return [ProjectFailure(error) for error in errors]

    async def _collecting(self, part: Part, source: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        try:
            async with contextlib.aclosing(source):
                async for item in source:
                    yield item
        except Exception as error:  # a fault of one adapter is no reason for another's results to be lost
            self._found[part] = _as_bridge_error(error)
            if self._found[part] is not error:
                log.exception("a fault of %s", part.tool.label)


def _as_bridge_error(error: Exception) -> BridgeError:
    if isinstance(error, BridgeError):
        return error
    return BridgeError(f"{error!r}, a fault of the adapter", "please report it, with the log")


def named(error: Exception, part: Part) -> BridgeError:
    """The error with the name of the project, where it is one of several."""
    known = _as_bridge_error(error)
    return known.labelled(part.tool.label) if part.tool.folder else known


async def _naming(part: Part, source: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Yield from `source`; its errors name the project."""
    try:
        async with contextlib.aclosing(source):
            async for item in source:
                yield item
    except BridgeError as error:
        raise named(error, part) from error


@define(eq=False)
class Request:
    """One part of a request. `due` begins as what is owed if nothing can be discovered."""

    part: Part
    due: dict[Mutant, None]  # without a result yet, in the order of their discovery
    _discover: Callable[[Part], AsyncGenerator[Mutant | Notice, None]]  # the selected mutants of a part
    _turn: Turn
    _budget: JobBudget
    _incremental: Incremental | None
    _anew: bool  # test also where verdicts of earlier runs hold
    _is_all: bool  # the request has no other part
    _verdicts: Verdicts | None = field(default=None, init=False)

    async def results(self) -> AsyncGenerator[Result | Notice, None]:
        """Exactly one result for each mutant, as soon as it is known.

        A failure that isn't the whole answer becomes the reason of what is due still, too.
        """
        tool, failure = self.part.tool, None
        reason = f"{tool.adapter.name} gave no result for it in {ROUNDS} attempts, as when its file keeps changing"
        try:
            for number in range(ROUNDS):
                async with contextlib.aclosing(self._prepared(again=number > 0)) as known:
                    async for item in known:
                        yield item
                if self.due:
                    with self._budget.active(tool.label):
                        async with contextlib.aclosing(tool.test(list(self.due))) as testing:
                            while True:
                                await self._wait()
                                result = await anext(testing, None)
                                if result is None:
                                    break
                                if isinstance(result, Notice) or self._settles(result):
                                    yield result
                                if self._verdicts is not None and self._verdicts.due:
                                    await self._verdicts.save(tool.ran_alone())
                if self._verdicts is not None:
                    await self._verdicts.save(tool.ran_alone())
                if not self.due:
                    return
        except Exception as error:
            if self._is_all:
                raise
            reason, failure = str(named(error, self.part)), error
        for mutant in self.due:
            yield _untested(mutant, reason)
        if failure is not None:
            raise failure

    async def _prepared(self, *, again: bool) -> AsyncGenerator[Result | Notice, None]:
        """Find out what is due. Yields notices, and the results that take no test."""
        files = Scope(frozenset(mutant.path for mutant in self.due))
        found: dict[Mutant, None] = {}
        async with contextlib.aclosing(self._discover(evolve(self.part, scope=files) if again else self.part)) as items:
            async for item in items:
                if isinstance(item, Notice):
                    yield item
                else:
                    found[item] = None
        before, self.due = self.due, found
        if again:
            self.due = {mutant: None for mutant in found if mutant in before}  # with the handles of the file as it is
            for mutant in [mutant for mutant in before if mutant not in found]:
                yield _untested(mutant, GONE)
        tool, self._verdicts = self.part.tool, None
        if self.due and self._incremental is not None:
            try:
                self._verdicts = await self._incremental.verdicts(tool.label, tool.folder, tool.surroundings)
            except BridgeError as error:
                why = f"what its verdict depends on is not known: {error}"
                yield Remark(f"{tool.label}: every mutant is tested: {why}")
        if self._verdicts is None or self._anew:
            return
        for result in await self._verdicts.known(self.due):
            del self.due[result.mutant]
            yield result
        if self.due and tool.knows_reach:
            with self._budget.active(tool.label):
                await self._wait()
                unaffected = await self._verdicts.unaffected(self.due, tool.reach)
            for result in unaffected:
                del self.due[result.mutant]
                yield result

    def _settles(self, result: Result) -> bool:
        """Whether the tool's result is of a mutant that is due, which it is no more then."""
        if result.mutant not in self.due:
            log.warning("%s gave a result that is not due: %s", self.part.tool.label, result)
            return False
        del self.due[result.mutant]
        if self._verdicts is not None:
            self._verdicts.note(result)
        return True

    async def _wait(self) -> None:
        """Wait until no newer request wants to go on; meanwhile the tool's share is the others'."""
        if not self._turn.may_go_on.is_set():
            with self._budget.paused(self.part.tool.label):
                await self._turn.wait()


def _untested(mutant: Mutant, reason: str) -> Result:
    return Result(mutant, Status.IGNORED, status_reason=f"not tested: {reason}", untested=True)

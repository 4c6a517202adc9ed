"""The adapters as the workspace uses them, each mounted at the folder of its project."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import ClassVar

from attrs import evolve, frozen

from msp_bridge.adapter import (
    Adapter,
    AskRanAlone,
    Edit,
    IgnoresMutants,
    KnowsReach,
    Mutant,
    Ran,
    Reach,
    ReportsSurroundings,
    Result,
    Scope,
    Surroundings,
)
from msp_bridge.errors import BridgeError, ConfigurationError, ToolError
from msp_bridge.notices import FailingTest, Notice, Remark, UnusableFile


@frozen(eq=False)
class MountedAdapter:
    """An adapter whose project is the workspace's root, or a folder in it. All paths here are the workspace's.

    A mutant keeps its handle on the way out and back in: only its path differs. Names of tests get the folder before
    them, because two projects may have tests of one name.
    """

    adapter: Adapter
    folder: str = ""  # relative to the workspace's root, with a `/` at the end

    @property
    def label(self) -> str:
        """Its name in messages; there is one of each label in a workspace."""
        return label(self.adapter.name, self.folder)

    def claims(self, path: str) -> bool:
        """Whether the tool could mutate the file `path`."""
        return path.startswith(self.folder) and self.adapter.claims(path[len(self.folder) :])

    def discover(self, scope: Scope) -> AsyncGenerator[Mutant | Notice, None]:
        """Implement `Adapter.discover`."""
        return self._discover(scope) if self.folder else self.adapter.discover(scope)

    def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        """Implement `Adapter.test`."""
        return self._test(mutants) if self.folder else self.adapter.test(mutants)

    async def ignore(self, mutant: Mutant, reason: str) -> Edit:
        """Implement `IgnoresMutants.ignore`. Raises ToolError, too, when the tool has no comment for it."""
        if not isinstance(self.adapter, IgnoresMutants):
            raise ToolError(
                f"the bridge has no comment by which {self.label} ignores a mutant",
                "see the tool's own documentation for how it leaves out code",
            )
        try:
            edit = await self.adapter.ignore(evolve(mutant, path=mutant.path[len(self.folder) :]), reason)
        except (OSError, ValueError) as error:
            raise ToolError(f"{mutant.path} can't be read: {error}", "list its mutants again") from error
        return evolve(edit, path=self.folder + edit.path)

    async def surroundings(self) -> Surroundings | None:
        """Implement `ReportsSurroundings.surroundings`; None if the adapter has none."""
        return await self.adapter.surroundings() if isinstance(self.adapter, ReportsSurroundings) else None

    @property
    def knows_reach(self) -> bool:
        """Whether its results say what they depend on."""
        return isinstance(self.adapter, KnowsReach)

    async def reach(self, mutants: Sequence[Mutant], known: AskRanAlone, *, alone: bool) -> Mapping[Mutant, Reach]:
        """Implement `KnowsReach.reach`; the names of tests in `Reach.tests` are the adapter's own."""
        if not isinstance(self.adapter, KnowsReach):
            return {}
        outer = {evolve(mutant, path=mutant.path[len(self.folder) :]): mutant for mutant in mutants}
        found = await self.adapter.reach(list(outer), known, alone=alone)
        return {
            outer[mutant]: evolve(reach, covered_by=self._named(reach.covered_by) or ())
            for mutant, reach in found.items()
        }

    def ran_alone(self) -> Mapping[str, tuple[Ran, ...]]:
        """Implement `KnowsReach.ran_alone`."""
        return self.adapter.ran_alone() if isinstance(self.adapter, KnowsReach) else {}

    async def _discover(self, scope: Scope) -> AsyncGenerator[Mutant | Notice, None]:
        async with contextlib.aclosing(self.adapter.discover(self._inner(scope))) as mutants:
            async for mutant in mutants:
                if isinstance(mutant, Notice):
                    yield self._moved(mutant)
                else:
                    yield evolve(mutant, path=self.folder + mutant.path)

    async def _test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        outer = {evolve(mutant, path=mutant.path[len(self.folder) :]): mutant for mutant in mutants}
        async with contextlib.aclosing(self.adapter.test(list(outer))) as results:
            async for result in results:
                if isinstance(result, Notice):
                    yield self._moved(result)
                    continue
                known = outer.get(result.mutant)
                yield evolve(
                    result,
                    mutant=known or evolve(result.mutant, path=self.folder + result.mutant.path),
                    covered_by=self._named(result.covered_by),
                    killed_by=self._named(result.killed_by),
                )

    def _moved(self, notice: Notice) -> Notice:
        if isinstance(notice, UnusableFile) or (isinstance(notice, Remark) and notice.path):
            return evolve(notice, path=self.folder + notice.path)
        if isinstance(notice, FailingTest):
            return evolve(notice, test=f"{self.folder}: {notice.test}")
        return notice

    def _named(self, tests: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if tests is None else tuple(f"{self.folder}: {test}" for test in tests)

    def _inner(self, scope: Scope) -> Scope:
        if scope.paths is None or scope.covers(self.folder):
            return Scope()
        return Scope(frozenset(path[len(self.folder) :] for path in scope.paths if path.startswith(self.folder)))


@frozen(eq=False)
class UnavailableAdapter:
    """Stands where the tools of a folder can't be used, and raises the reason for every request.

    It claims all files of its folder, so that none falls to a tool around it. It has the methods of an adapter that a
    workspace calls.
    """

    name: ClassVar[str] = "msp-bridge"
    reason: BridgeError

    def claims(self, path: str) -> bool:
        """All of them."""
        return True

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        """Raises ConfigurationError."""
        raise ConfigurationError(self.reason.problem, self.reason.remedy)
        yield  # what makes it a generator

    async def aclose(self) -> None:
        """Nothing runs."""


def label(name: str, folder: str) -> str:
    """The name in messages of the adapter `name` in `folder`."""
    return f"{name} in {folder}" if folder else name

"""Tool: an adapter at its place in the workspace, and the way between the workspace's paths and its own."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence

from attrs import evolve, frozen

from msp_bridge.adapter import Adapter
from msp_bridge.model import Mutant, Result, Scope


@frozen(eq=False)
class Tool:
    """An adapter whose project is the workspace's root, or a folder in it. All paths here are the workspace's."""

    adapter: Adapter
    folder: str = ""  # relative to the workspace's root, with a `/` at the end

    @property
    def label(self) -> str:
        """What a person calls it; there is one of each label in a workspace."""
        return label(self.adapter.name, self.folder)

    def claims(self, path: str) -> bool:
        """Whether the tool could mutate the file `path`."""
        return path.startswith(self.folder) and self.adapter.claims(path[len(self.folder) :])

    def discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        """See `Adapter.discover`."""
        return self._discover(scope) if self.folder else self.adapter.discover(scope)

    def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        """See `Adapter.test`."""
        return self._test(mutants) if self.folder else self.adapter.test(mutants)

    async def _discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        async with contextlib.aclosing(self.adapter.discover(self._inner(scope))) as mutants:
            async for mutant in mutants:
                yield evolve(mutant, path=self.folder + mutant.path)

    async def _test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        outer = {evolve(mutant, path=mutant.path[len(self.folder) :]): mutant for mutant in mutants}
        async with contextlib.aclosing(self.adapter.test(list(outer))) as results:
            async for result in results:
                known = outer.get(result.mutant)
                yield evolve(result, mutant=known or evolve(result.mutant, path=self.folder + result.mutant.path))

    def _inner(self, scope: Scope) -> Scope:
        if scope.paths is None or scope.covers(self.folder):
            return Scope()
        return Scope(frozenset(path[len(self.folder) :] for path in scope.paths if path.startswith(self.folder)))


def label(name: str, folder: str) -> str:
    """What a person calls the adapter `name` in `folder`."""
    return f"{name} in {folder}" if folder else name

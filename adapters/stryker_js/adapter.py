"""StrykerJs: the adapter, which puts StrykerJS's own server, or its command line, to work in private copies."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import ClassVar, Self

from msp_bridge.adapter import Finding, Mutant, Project, Result, Scope, Status

from .bench import Benches, Toolchain
from .configuration import CORE, MUTABLE, NAMES, configured
from .diagnosis import diagnose
from .discovery import Discovery
from .installation import Installation, setup_commands
from .mutants import Chosen, Found, result_of
from .node import find_node
from .settings import Settings


class StrykerJs:
    """StrykerJS on one project: exactly the mutants that are asked for, each result as soon as it is known.

    Every result is StrykerJS's own. The project's tree is only read: StrykerJS runs in a private copy of it.
    """

    name: ClassVar[str] = "stryker-js"
    markers: ClassVar[tuple[str, ...]] = ("package.json", *NAMES)
    sources: ClassVar[tuple[str, ...]] = tuple(f"*{ending}" for ending in MUTABLE if ending not in (".html", ".htm"))

    def __init__(self, project: Project) -> None:
        self._project = project
        self._discovery = Discovery(project)
        self._benches = Benches(project)
        self._known: tuple[Installation, Toolchain] | None = None

    @classmethod
    def detect(cls, project: Project) -> Self | None:
        """If there is a configuration file of StrykerJS's, or package.json depends on it."""
        return cls(project) if configured(project) else None

    @classmethod
    def absent(cls, project: Project) -> Finding:
        """See `Adapter.absent`."""
        text = f"there is no stryker.config.json in {project.root}, and package.json doesn't ask for {CORE}"
        return Finding(False, "stryker-js", text, setup_commands(project.root))

    def claims(self, path: str) -> bool:
        """JavaScript, TypeScript, and what they are embedded in; which of them are mutated, the configuration says."""
        return path.endswith(MUTABLE) and "node_modules" not in path.split("/")

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        """See `Adapter.discover`."""
        if scope.paths is not None and not any(path.endswith("/") or self.claims(path) for path in scope.paths):
            return
        for one in await self._discover(scope):
            yield one.mutant

    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        """See `Adapter.test`. Those that StrykerJS ignores come first."""
        if not mutants:
            return
        paths = frozenset(mutant.path for mutant in mutants)
        async with self._benches.lease(await self._toolchain(), paths) as bench:
            found = await self._discovery.find(bench, Scope(paths))
            known = {one.mutant: one for one in found}
            due: dict[Mutant, Mutant] = {}
            for mutant in mutants:
                one = known.get(mutant)
                if one is not None and one.ignored is not None:
                    yield Result(mutant, Status.IGNORED, status_reason=one.ignored)
                elif one is not None:
                    due[mutant] = mutant
            if not due:
                return
            chosen = Chosen.of(due, (one.mutant for one in found if one.ignored is None))
            jobs = max(1, min(self._project.jobs, len(due)))
            tool = await bench.tool(chosen, jobs)
            async with aclosing(tool.test(chosen, jobs)) as results:
                async for told, raw in results:
                    mine = due.pop(told, None)
                    if mine is not None:
                        yield result_of(mine, raw)

    async def diagnose(self) -> AsyncGenerator[Finding, None]:
        """See `Adapter.diagnose`."""
        async with aclosing(diagnose(self._project, self._toolchain, self._discover)) as findings:
            async for finding in findings:
                yield finding

    async def aclose(self) -> None:
        """End every process."""
        await self._benches.aclose()

    async def _discover(self, scope: Scope) -> list[Found]:
        async with self._benches.lease(await self._toolchain()) as bench:
            return await self._discovery.find(bench, scope)

    async def _toolchain(self) -> Toolchain:
        """Looked up anew for each request, for projects are installed while they are open; Node only if need be."""
        installation = Installation.find(self._project.root)
        if self._known is None or self._known[0] != installation or not self._known[1].node.program.exists():
            node = await find_node(self._project.root, installation, Settings.of(self._project).node)
            self._known = installation, Toolchain(node, installation)
        return self._known[1]

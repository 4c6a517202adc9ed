"""StrykerNet: the adapter, which reads anew for each request what is set up in the project."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import ClassVar, Self

from msp_bridge.adapter import Finding, Mutant, Project, Result, Scope

from .assumptions import BUILT, CONFIG_NAMES, INSTALL, OUTPUT, PROJECTS, SOLUTIONS, SOURCES
from .base import bases_of, has_solution
from .diagnosis import diagnose
from .discovery import Discovery
from .plan import Plan
from .testing import Testing

OUTPUT_DIRS = {*BUILT, OUTPUT}


class StrykerNet:
    """Stryker.NET on one project, in private copies, for it writes into the tree that it tests.

    It is driven by its own mutation server if it has one, else by its command line.

    Back-pressure: Stryker.NET itself decides when it starts which mutant, so it runs ahead of who asks. A newer request
    ends an older one's run, which goes on with the mutants that are left.
    """

    name: ClassVar[str] = "stryker-net"
    markers: ClassVar[tuple[str, ...]] = (*CONFIG_NAMES, *SOLUTIONS, *PROJECTS)
    sources: ClassVar[tuple[str, ...]] = tuple(f"*{ending}" for ending in SOURCES)

    def __init__(self, project: Project) -> None:
        self._project = project
        self._discovery = Discovery(project)
        self._testing = Testing(project)

    @classmethod
    def detect(cls, project: Project) -> Self | None:
        """By a stryker-config file, a tool manifest that names it, or the global tool beside a project of tests."""
        return cls(project) if bases_of(project) else None

    @classmethod
    def absent(cls, project: Project) -> Finding:
        """See `Adapter.absent`."""
        if has_solution(project.root):
            text = (
                f"there is no {CONFIG_NAMES[0]} in {project.root}, no tool manifest that names it, and no global tool"
            )
            return Finding(False, "stryker-net", text, INSTALL)
        text = f"there is no {CONFIG_NAMES[0]} and no solution in {project.root}"
        return Finding(False, "stryker-net", text, "dotnet stryker init")

    def claims(self, path: str) -> bool:
        """C# files, but not what builds generate."""
        *directories, name = path.split("/")
        return name.endswith(SOURCES) and OUTPUT_DIRS.isdisjoint(directories)

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        """Builds the project and runs its tests once, unless no file has changed since that was last done."""
        if not self._may_find(scope):
            return
        found = await self._discovery.mutants(Plan.make(self._project))
        for path, mutants in found.files.items():
            if scope.covers(path) and self.claims(path):
                for mutant in mutants:
                    yield mutant

    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        """See `Adapter.test`."""
        if not mutants:
            return
        plan = Plan.make(self._project)
        found = await self._discovery.mutants(plan)
        async with contextlib.aclosing(self._testing.test(plan, found, mutants)) as results:
            async for result in results:
                yield result

    async def diagnose(self) -> AsyncGenerator[Finding, None]:
        """See `Adapter.diagnose`."""
        async with contextlib.aclosing(diagnose(self._project)) as findings:
            async for finding in findings:
                yield finding

    async def aclose(self) -> None:
        """End the servers, and let others have the copies. Without servers, nothing runs between requests."""
        await self._testing.aclose()
        await self._discovery.aclose()

    def _may_find(self, scope: Scope) -> bool:
        """Whether it is worth a build: a scope of files that aren't there has no mutants."""
        root = self._project.root
        return scope.paths is None or any(
            (root / path).is_dir() if path.endswith("/") else self.claims(path) and (root / path).is_file()
            for path in ((path.lstrip("/") or "./") for path in scope.paths)
        )

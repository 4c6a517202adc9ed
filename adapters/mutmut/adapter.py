"""Mutmut: the adapter, which finds out what is installed when it is first used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import ClassVar, Self

from msp_bridge.adapter import Finding, Mutant, Project, Result, Scope

from .diagnosis import diagnose
from .discovery import Discovery
from .installation import REQUIREMENT, Installation, is_installed
from .settings import config_file_of, environment_of, is_configured
from .testing import Testing


class Mutmut:
    """mutmut on one project: its mutants, its rules and its words, and our own judge.

    `mutmut run` can't stream, and is wrong where code runs at import, where tests leave state behind, and where its
    stats are stale. Here each mutant gets the status that a fresh process gives with the mutant active from its start.
    """

    name: ClassVar[str] = "mutmut"

    def __init__(self, project: Project) -> None:
        self._project = project
        self._lock = asyncio.Lock()
        self._discovery: Discovery | None = None
        self._testing: Testing | None = None

    @classmethod
    def detect(cls, project: Project) -> Self | None:
        """If mutmut is configured in the project or installed in its environment."""
        if is_configured(project.root) or (project.python is not None and is_installed(project.python)):
            return cls(project)
        return None

    @classmethod
    def absent(cls, project: Project) -> Finding:
        """See `Adapter.absent`."""
        python = project.python or "python"
        return Finding(False, "mutmut", "not installed", f"{python} -m pip install {REQUIREMENT}")

    def claims(self, path: str) -> bool:
        """Python files; which of them mutmut mutates, its configuration says."""
        return path.endswith(".py")

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        """See `Adapter.discover`."""
        discovery, _ = await self._parts()
        async with aclosing(discovery.mutants(scope)) as mutants:
            async for mutant in mutants:
                yield mutant

    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        """See `Adapter.test`."""
        if not mutants:
            return
        _, testing = await self._parts()
        async with aclosing(testing.test(mutants)) as results:
            async for result in results:
                yield result

    async def diagnose(self) -> AsyncGenerator[Finding, None]:
        """See `Adapter.diagnose`."""
        async with aclosing(diagnose(self._project, self._parts)) as findings:
            async for finding in findings:
                yield finding

    async def aclose(self) -> None:
        """End every process."""
        if self._testing is not None:
            await self._testing.aclose()
        if self._discovery is not None:
            await self._discovery.aclose()

    async def _parts(self) -> tuple[Discovery, Testing]:
        """Made on first use; raises ToolError or ConfigurationError when the project can't be worked on."""
        async with self._lock:
            if self._discovery is None or self._testing is None:
                project = self._project
                config_file = config_file_of(project)
                installation = await Installation.look(project.python, project.root)
                installation.check()
                python, root, cache = installation.executable, project.root, project.cache
                env = environment_of(python, cache)
                self._discovery = Discovery(root, cache, python, config_file, env)
                self._testing = Testing(self._discovery, root, cache, python, config_file, max(1, project.jobs), env)
            return self._discovery, self._testing

"""Mutmut: the adapter, which finds out what is installed when it is first used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from msp_bridge.adapter import Edit, Finding, Mutant, Notice, Project, Result, Scope, Setup
from msp_bridge.python_adapter import PythonAdapter, is_installed, python_setup

from .configuration import NAMES, REQUIREMENTS, first_configuration, is_configured, place_of_options

if TYPE_CHECKING:
    from msp_bridge.python_engine import TestPlan

    from .discovery import MutmutDiscovery


class Mutmut(PythonAdapter):
    """mutmut on one project: its mutants and its rules, tested by the Python engine.

    `mutmut run` can't stream, and is wrong where code runs at import, where tests leave state behind, and where its
    stats are stale. Here each mutant gets the status that a fresh process with the mutated file gives.
    """

    name: ClassVar[str] = "mutmut"
    markers: ClassVar[tuple[str, ...]] = NAMES
    sources: ClassVar[tuple[str, ...]] = ("*.py",)

    parts: ClassVar[tuple[str, ...]] = ("_engine", "_discovery")

    def __init__(self, project: Project) -> None:
        super().__init__(project)
        self._lock = asyncio.Lock()

    @classmethod
    def detect(cls, project: Project) -> Self | None:
        """Find mutmut where it is configured in the project, or installed in its environment.

        A nested project's environment is one that lies in it: any other may have mutmut for the sake of another.
        """
        if project.config_file is not None and project.config_file.name not in NAMES:
            return None
        return cls(project) if is_configured(project.root) or _has_mutmut(project) else None

    @classmethod
    def absent(cls, project: Project) -> Finding:
        """Implement `Adapter.absent`."""
        from msp_bridge.toolkit.install import python_install

        python = project.python or "python"
        if project.python is not None and is_installed(project.python, cls.name):
            text = f"installed, but there are no Python files in {project.root}, nor in the folders right below it"
            place = place_of_options(project.root, None)
            return Finding(False, "mutmut", text, f"if they lie deeper, set source_paths in {place}")
        return Finding(False, "mutmut", "not installed", python_install(Path(python), *REQUIREMENTS, root=project.root))

    @classmethod
    def setup(cls, project: Project) -> Setup | None:
        """Implement `SetsUp.setup`."""
        return python_setup(project, "mutmut", REQUIREMENTS, first_configuration(project.root))

    def claims(self, path: str) -> bool:
        """Python files; which of them mutmut mutates, its configuration says."""
        return path.endswith(".py")

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant | Notice, None]:
        """Implement `Adapter.discover`."""
        discovery = await self._discover()
        self._engine.prepare_ahead(discovery.plan)
        async with aclosing(discovery.mutants(scope)) as mutants:
            async for mutant in mutants:
                yield mutant

    def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        """Implement `Adapter.test`."""
        return self._engine.test(mutants, self.engine_plan)

    async def engine_plan(self) -> TestPlan:
        """Implement `PythonAdapter.engine_plan`."""
        return await (await self._discover()).plan()

    async def ignore(self, mutant: Mutant, reason: str) -> Edit:
        """Implement `IgnoresMutants.ignore`."""
        return await (await self._discover()).ignore(mutant, reason)

    def diagnose(self) -> AsyncGenerator[Finding, None]:
        """Implement `Adapter.diagnose`."""
        from .diagnosis import diagnose

        return diagnose(self._project, self._discover, self._engine)

    async def _discover(self) -> MutmutDiscovery:
        """Made on first use; raises ToolError or ConfigurationError when the project can't be worked on."""
        async with self._lock:
            if "_discovery" not in vars(self):
                from .discovery import MutmutDiscovery

                discovery = MutmutDiscovery(self._project)
                await discovery.start()
                self._discovery = discovery
            return self._discovery


def _has_mutmut(project: Project) -> bool:
    if project.python is None or not is_installed(project.python, "mutmut"):
        return False
    return project.python.is_relative_to(project.root) if project.nested else _holds_python(project.root)


def _holds_python(root: Path) -> bool:
    named = any((root / name).is_file() for name in (*NAMES, "setup.py"))
    return named or any(True for pattern in ("*.py", "*/*.py") for _ in root.glob(pattern))

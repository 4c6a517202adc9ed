"""PythonAdapter: what the adapters of Python tools have in common, whose mutants the Python engine tests."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from msp_bridge.adapter import AskRanAlone, Finding, Mutant, Project, Ran, Reach, Surroundings
from msp_bridge.concurrency import shields

if TYPE_CHECKING:
    from msp_bridge.python_engine import PythonEngine, TestPlan


class PythonAdapter:
    """The engine of one project, and the optional protocols that it implements for a tool."""

    parts: ClassVar[tuple[str, ...]] = ("_engine",)  # cached properties that are closed, in this order

    def __init__(self, project: Project) -> None:
        self._project = project

    @cached_property
    def _engine(self) -> PythonEngine:
        from msp_bridge.python_engine import PythonEngine  # here, and below: to configure needs no engine

        return PythonEngine(self._project)

    async def engine_plan(self) -> TestPlan | None:
        """How the engine runs the tests; None where it can't. Raises BridgeError."""
        raise NotImplementedError

    async def reach(self, mutants: Sequence[Mutant], known: AskRanAlone, *, alone: bool) -> Mapping[Mutant, Reach]:
        """Implement `KnowsReach`."""
        plan = await self.engine_plan()
        return {} if plan is None else await self._engine.reach(mutants, plan, known, alone=alone)

    def ran_alone(self) -> Mapping[str, tuple[Ran, ...]]:
        """Implement `KnowsReach`."""
        return self._engine.ran_alone()

    async def surroundings(self) -> Surroundings | None:
        """Implement `ReportsSurroundings`. The tool itself is one of the installed packages."""
        from msp_bridge.python_engine import python_surroundings

        python = self._project.python
        return None if python is None else await python_surroundings(self._project, python)

    async def test_command(self) -> tuple[str, ...] | None:
        """Implement `HasTestCommand`."""
        from msp_bridge.python_engine import pytest_command

        plan = await self.engine_plan()
        return None if plan is None else pytest_command(plan.python, *plan.arguments)

    def check_tests(self) -> AsyncGenerator[Finding, None]:
        """Implement `ChecksTests.check_tests`."""
        return self._engine.check_tests()

    @shields
    async def aclose(self) -> None:
        """End every process. A cancel is raised when that is done."""
        async with AsyncExitStack() as stack:
            for name in reversed(self.parts):
                if name in vars(self):  # else nobody has asked for it
                    stack.push_async_callback(getattr(self, name).aclose)

"""PythonAdapter: what the adapters of Python tools have in common, whose mutants the Python engine tests."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from msp_bridge.adapter import AskRanAlone, Finding, Mutant, Project, Ran, Reach, Setup, Surroundings, ToolError
from msp_bridge.concurrency import LazyParts

if TYPE_CHECKING:
    from msp_bridge.python_engine import PythonEngine, TestPlan


OF_A_PROJECT = (
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "requirements.txt",
    "tox.ini",
    "pytest.ini",
    "cosmic-ray.toml",
)
OF_TESTS = ("test*.py", "*_test.py", "test/test*.py", "tests/test*.py", "tests/*/test*.py")


def interpreter(project: Project) -> Path:
    """The project's interpreter; raises ToolError when there is none."""
    if project.python is None:
        raise ToolError(
            f"no Python interpreter found for {project.root}",
            "create an environment in .venv, or name an interpreter with the setting `python`",
        )
    return project.python


def is_installed(python: Path, name: str) -> bool:
    """Whether the distribution `name`, written with `_`, lies in the environment of `python`. Cheap."""
    patterns = (f"{name}{version}.{kind}-info" for version in ("", "-*") for kind in ("dist", "egg"))
    return any(True for pattern in patterns for site in _site_packages(python) for _ in site.glob(pattern))


def _site_packages(python: Path) -> Iterator[Path]:
    prefix = python.parent.parent  # not resolved: a virtual environment's python is a link to its base's
    yield from prefix.glob("lib/python3*/site-packages")
    yield from prefix.glob("lib/python3*/dist-packages")
    yield from prefix.glob("local/lib/python3*/dist-packages")


def python_setup(
    project: Project, name: str, requirements: Sequence[str], files: Mapping[str, str] | None = None
) -> Setup | None:
    """Say what the distribution `name` needs in a Python project; None where there is neither a project nor a test.

    `requirements` install it, and `files` configure it. A script beside other code makes no Python project.
    """
    from msp_bridge.toolkit.install import python_checkout, python_install

    root, python = project.root, project.python
    tests = chain.from_iterable(map(root.glob, OF_TESTS))
    if not any((root / one).is_file() for one in OF_A_PROJECT) and next(tests, None) is None:
        return None
    here = python is not None and is_installed(python, name)
    install = python_install(python or Path("python"), *requirements, root=root)
    return Setup(None if here else install, files or {}, checkout=(python_checkout(root, *requirements),))


class PythonAdapter(LazyParts):
    """The engine of one project, and the optional protocols that it implements for a tool."""

    parts: ClassVar[tuple[str, ...]] = ("_engine",)

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
        if plan is None:
            return None
        failing = await self._engine.failing_tests(plan)
        return pytest_command(plan.python, *plan.arguments, *(f"--deselect={test}" for test in failing))

    def check_tests(self) -> AsyncGenerator[Finding, None]:
        """Implement `ChecksTests.check_tests`."""
        return self._engine.check_tests()

"""MutmutInstallation: which versions a project's interpreter has of mutmut and pytest, and whether they will do."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from msp_bridge.adapter import Project, ToolError
from msp_bridge.python_adapter import interpreter
from msp_bridge.python_engine import python_environment, start_program
from msp_bridge.text import release
from msp_bridge.toolkit.install import python_install
from msp_bridge.toolkit.json_lines import JsonLinesProcess

from .configuration import REQUIREMENTS

PROGRAMS = Path(__file__).with_name("programs")  # ours, run by the project's interpreter
OLDEST_MUTMUT, NEXT_MUTMUT = (3, 8, 1), (4,)
OLDEST_PYTEST = (9, 2)


async def start_discovery(project: Project, config_file: str | None = None) -> JsonLinesProcess:
    """Run the program that greets with what is installed; raises ToolError when no interpreter runs it."""
    python = interpreter(project)
    try:
        return await start_program(
            python,
            "discovery",
            {"config_file": config_file},
            name="mutmut's discovery",
            cwd=project.root,
            env=python_environment(python, project.cache),
            folder=PROGRAMS,
        )
    except ToolError as error:
        raise ToolError(
            f"{python} doesn't run as Python 3.10 or later: {error.problem}",
            "set `python` to the project's interpreter",
        ) from None


@frozen
class MutmutInstallation:
    """The versions that the project's interpreter has installed."""

    executable: Path
    python: str
    implementation: str  # "CPython", "PyPy" …
    mutmut: str | None
    libcst: str | None  # which mutmut needs
    pytest: str | None

    @classmethod
    def of(cls, python: Path, discovery: JsonLinesProcess) -> MutmutInstallation:
        """From the greeting of the program that `python` runs."""
        names = ("python", "implementation", "mutmut", "libcst", "pytest")
        return cls(python, **{name: discovery.greeting[name] for name in names})

    @property
    def remedy(self) -> str:
        """The command that installs what is needed."""
        return python_install(self.executable, *REQUIREMENTS)

    @property
    def fault(self) -> tuple[str, str] | None:
        """Why the bridge can't work with it, and what to do."""
        if self.implementation != "CPython":
            what = f"{self.executable} is {self.implementation}, and the bridge tests mutants of CPython projects only"
            return what, "set `python` to a CPython, 3.10 or later"
        if self.mutmut is None:
            return f"mutmut isn't installed for {self.executable}", self.remedy
        if release(self.mutmut) < OLDEST_MUTMUT:
            edits = ", which edits your files in place," if release(self.mutmut) < (3,) else ""
            return f"mutmut {self.mutmut}{edits} is too old (3.8.1 or later is needed)", self.remedy
        if release(self.mutmut) >= NEXT_MUTMUT:
            return f"mutmut {self.mutmut} is newer than this bridge supports", self.remedy
        if self.pytest is None:
            return f"pytest isn't installed (9.2 or later is needed) in {self.executable}", self.remedy
        if release(self.pytest) < OLDEST_PYTEST:
            found = f"pytest {self.pytest} is too old for mutmut {self.mutmut}"
            return f"{found} (9.2 or later is needed) in {self.executable}", self.remedy
        return None

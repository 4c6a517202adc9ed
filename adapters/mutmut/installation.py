"""What there is of mutmut in a project: which interpreter has which version, whether that will do, and its settings."""

from __future__ import annotations

import configparser
import importlib.metadata
import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from msp_bridge import reading
from msp_bridge.adapter import ConfigurationError, Project, ToolError
from msp_bridge.python_engine import start_program
from msp_bridge.toolkit.install import python_install

PROGRAMS = Path(__file__).with_name("target")  # ours, run by the project's interpreter
OLDEST_MUTMUT, NEXT_MUTMUT = (3, 8, 1), (4,)
OLDEST_PYTEST = (9, 2)
REQUIREMENTS = ("mutmut>=3.8.1,<4", "pytest>=9.2")
NAMES = ("pyproject.toml", "setup.cfg")


@frozen
class MutmutInstallation:
    """What the project's interpreter has installed."""

    executable: Path
    python: str
    implementation: str  # "CPython", "PyPy" …
    mutmut: str | None
    pytest: str | None
    fork: bool

    @classmethod
    async def look(cls, python: Path | None, root: Path) -> MutmutInstallation:
        """Run the interpreter; raises ToolError when there is none that runs."""
        if python is None:
            raise ToolError(
                f"no Python interpreter found for {root}",
                "create an environment in .venv, or name an interpreter with the setting `python`",
            )
        try:
            process = await start_program(
                python,
                "installed",
                {},
                name=str(python),
                cwd=root,
                env={"PYTHONDONTWRITEBYTECODE": "1"},
                folder=PROGRAMS,
            )
        except ToolError as error:
            raise ToolError(
                f"{python} doesn't run as Python 3.10 or later: {error.problem}",
                "set `python` to the project's interpreter",
            ) from None
        found = process.greeting
        await process.close()
        return cls(python, found["python"], found["implementation"], found["mutmut"], found["pytest"], found["fork"])

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
        if not self.fork:
            return "mutmut doesn't run on Windows", "use WSL"
        if self.mutmut is None:
            return f"mutmut isn't installed for {self.executable}", self.remedy
        if numbers(self.mutmut) < OLDEST_MUTMUT:
            edits = ", which edits your files in place," if numbers(self.mutmut) < (3,) else ""
            return f"mutmut {self.mutmut}{edits} is too old (3.8.1 or later is needed)", self.remedy
        if numbers(self.mutmut) >= NEXT_MUTMUT:
            return f"mutmut {self.mutmut} is newer than this bridge supports", self.remedy
        if self.pytest is None:
            return f"pytest isn't installed (9.2 or later is needed) in {self.executable}", self.remedy
        if numbers(self.pytest) < OLDEST_PYTEST:
            found = f"pytest {self.pytest} is too old for mutmut {self.mutmut}"
            return f"{found} (9.2 or later is needed) in {self.executable}", self.remedy
        return None

    def check(self) -> None:
        """Raises ToolError with `fault`."""
        if (fault := self.fault) is not None:
            raise ToolError(*fault)


def is_installed(python: Path) -> bool:
    """Whether mutmut lies in the environment of `python`; reads directories only."""
    paths = [str(path) for path in _site_packages(python)]
    return next(iter(importlib.metadata.distributions(name="mutmut", path=paths)), None) is not None


def _site_packages(python: Path) -> Iterator[Path]:
    prefix = python.parent.parent  # not resolved: a virtual environment's python is a link to its base's
    yield from prefix.glob("lib/python3*/site-packages")
    yield from prefix.glob("lib/python3*/dist-packages")
    yield from prefix.glob("local/lib/python3*/dist-packages")


def numbers(version: str) -> tuple[int, ...]:
    """The release numbers of a version, for comparing: (3, 8, 1) of "3.8.1.post2"."""
    release = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, release[0].split("."))) if release else ()


def is_configured(root: Path) -> bool:
    """Whether pyproject.toml has a table `tool.mutmut`, or setup.cfg a section `mutmut`."""
    return any(holds_configuration(root / name) for name in NAMES)


def holds_configuration(file: Path) -> bool:
    """Whether mutmut finds its options in `file`; False when it can't be read."""
    try:
        if file.name == "setup.cfg":
            parser = configparser.ConfigParser()
            parser.read_string(reading.text(file))
            return parser.has_section("mutmut")
        tools = reading.toml(file).get("tool")
        return isinstance(tools, dict) and "mutmut" in tools
    except (OSError, ValueError, configparser.Error):
        return False


def place_of_options(root: Path, config_file: str | None) -> str:
    """Where mutmut's options are written: "[tool.mutmut] of pyproject.toml"; `config_file` is one that was named."""
    found = (name for name in NAMES if holds_configuration(root / name))
    name = Path(config_file).name if config_file is not None else next(found, NAMES[0])
    return f"{'[tool.mutmut]' if name == 'pyproject.toml' else '[mutmut]'} of {name}"


def config_file_of(project: Project) -> str | None:
    """The file that the user named for mutmut, absolute. Raises ConfigurationError for what mutmut couldn't read."""
    file = project.config_file
    project.check_settings("mutmut", (), place_of_options(project.root, None if file is None else file.name))
    if file is None:
        return None
    absolute = project.root / file
    if absolute.name not in NAMES or not absolute.resolve().is_relative_to(project.root.resolve()):
        raise ConfigurationError(f"mutmut reads pyproject.toml or setup.cfg within the project, not {file}")
    if not absolute.is_file():
        raise ConfigurationError(f"there is no mutmut configuration {absolute}")
    return str(absolute)

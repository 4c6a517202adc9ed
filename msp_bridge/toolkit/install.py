"""The command that installs a Python package, as it must be typed in this very project and environment.

`pip` is missing in environments that uv made, Debian's Python takes no packages, and what `pip` installs into a Poetry
project is in no lock file. So the package manager is the one whose lock file is nearest above the project, within its
repository; without one, the environment decides.
"""

import contextlib
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from msp_bridge import reading
from msp_bridge.errors import ConfigurationError, ShellCommand

LOCKS = {
    "uv.lock": "uv add --dev",
    "poetry.lock": "poetry add --group dev",
    "pdm.lock": "pdm add --dev",
    "Pipfile.lock": "pipenv install --dev",
}
FROM_LOCKS = {  # in a fresh checkout
    "uv.lock": "pip install uv && uv sync",
    "poetry.lock": "pip install poetry && poetry install",
    "pdm.lock": "pip install pdm && pdm install",
    "Pipfile.lock": "pip install pipenv && pipenv install --dev",
}
REQUIREMENTS = (
    "requirements.txt",
    *(name for kind in ("dev", "test") for name in (f"requirements-{kind}.txt", f"{kind}-requirements.txt")),
)
EXTRAS = ("test", "tests", "testing", "dev")  # names of what the tests need, in pyproject.toml
VENV_CONFIG = "pyvenv.cfg"


def python_install(python: Path, *requirements: str, root: Path | None = None) -> ShellCommand:
    """The command, to be typed in `root`, that installs `requirements` where `python` (absolute) finds them.

    `root` is the project's; without it, the directory around the interpreter's environment.
    """
    what, environment = shlex.join(requirements), python.parent.parent
    is_virtual = (environment / VENV_CONFIG).is_file()
    if root is None and is_virtual:
        root = environment.parent
    for directory in () if root is None else _upwards(root):
        for lock, command in LOCKS.items():
            if (directory / lock).is_file():
                return ShellCommand(f"{command} {what}")
    if is_virtual and _made_by_uv(environment):
        return ShellCommand(f"uv pip install --python {shlex.quote(str(python))} {what}")
    if not is_virtual and any(environment.glob("lib/python3*/EXTERNALLY-MANAGED")):
        return ShellCommand(f"{shlex.quote(str(python))} -m venv .venv && .venv/bin/python -m pip install {what}")
    return ShellCommand(f"{shlex.quote(str(python))} -m pip install {what}")


def python_checkout(root: Path, *requirements: str) -> ShellCommand:
    """The command that installs the project at `root`, what its tests need and `requirements` in a fresh checkout."""
    for directory in _upwards(root):
        for lock, command in FROM_LOCKS.items():
            if (directory / lock).is_file():
                return ShellCommand(command)
    return ShellCommand(shlex.join(["pip", "install", *_needed_by_tests(root), *requirements]))


def _needed_by_tests(root: Path) -> Iterator[str]:
    for name in REQUIREMENTS:
        if (root / name).is_file():
            yield from ("-r", name)
    table = reading.table(root / "pyproject.toml")
    if not table.keys().isdisjoint(("project", "build-system")) or (root / "setup.py").is_file():
        extra = _first_extra(table.get("project"), "optional-dependencies")
        yield from ("-e", f".[{extra}]" if extra else ".")
    if group := _first_extra(table, "dependency-groups"):
        yield from ("--group", group)


def _first_extra(table: object, key: str) -> str | None:
    extras = table.get(key) if isinstance(table, dict) else None
    return next((name for name in EXTRAS if isinstance(extras, dict) and name in extras), None)


def own_install(*requirements: str) -> str:
    """The command that installs `requirements` into the environment in which the bridge itself runs."""
    prefix = Path(sys.prefix)
    if prefix.parent.parts[-2:] == ("pipx", "venvs"):
        return f"pipx inject {prefix.name} {shlex.join(requirements)}"
    if prefix.parent.parts[-2:] == ("uv", "tools"):
        return f"uv tool install {prefix.name} {' '.join(f'--with {shlex.quote(each)}' for each in requirements)}"
    return python_install(Path(sys.executable), *requirements)


@contextlib.contextmanager
def of_extra(name: str, what: str) -> Iterator[None]:
    """Import in the block what the extra `name` installs; `what` says what needs it. Raises ConfigurationError."""
    try:
        yield
    except ImportError as error:  # also when an older version is there
        raise ConfigurationError(f"{what} ({error})", own_install(f"msp-bridge[{name}]")) from None


def _upwards(root: Path) -> Iterator[Path]:
    """`root` and the directories above it, up to the root of its repository; without one, only `root`."""
    directories = [root, *root.parents]
    top = next((number for number, directory in enumerate(directories) if (directory / ".git").exists()), 0)
    yield from directories[: top + 1]


def _made_by_uv(environment: Path) -> bool:
    try:
        lines = (environment / VENV_CONFIG).read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    return any(line.partition("=")[0].strip() == "uv" for line in lines)

"""Whether a project uses mutmut, by its files alone, and where mutmut's options are written."""

from __future__ import annotations

import json
from pathlib import Path

from msp_bridge import reading
from msp_bridge.adapter import ConfigurationError, Project

REQUIREMENTS = ("mutmut>=3.8.1,<4", "pytest>=9.2")
NAMES = ("pyproject.toml", "setup.cfg")


def is_configured(root: Path) -> bool:
    """Whether pyproject.toml has a table `tool.mutmut`, or setup.cfg a section `mutmut`."""
    return any(holds_configuration(root / name) for name in NAMES)


def holds_configuration(file: Path) -> bool:
    """Whether mutmut finds its options in `file`; False when it can't be read."""
    if file.name == "setup.cfg":
        text = reading.text_or_empty(file)
        return "mutmut" in text and _has_section(text)
    tools = reading.table(file).get("tool")
    return isinstance(tools, dict) and "mutmut" in tools


def _has_section(text: str) -> bool:
    import configparser  # here: few projects have a setup.cfg

    parser = configparser.ConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error:
        return False
    return parser.has_section("mutmut")


def place_of_options(root: Path, config_file: str | None) -> str:
    """Where mutmut's options are written, or would be: "[tool.mutmut] of pyproject.toml"; `config_file` was named."""
    name = Path(config_file).name if config_file is not None else _file_of_options(root)
    return f"{_table(name)} of {name}"


def _file_of_options(root: Path) -> str:
    found = (name for has in (holds_configuration, Path.is_file) for name in NAMES if has(root / name))
    return next(found, NAMES[0])


def _table(name: str) -> str:
    return "[tool.mutmut]" if name == "pyproject.toml" else "[mutmut]"


def setting_of_sources(root: Path, name: str) -> str | None:
    """The line of the file `name` by which mutmut gets the sources that the project seems to have; None without any."""
    from msp_bridge.python_engine import likely_sources  # here: a search for projects doesn't wait for it

    found = likely_sources(root)
    if name.endswith(".toml"):
        return f"source_paths = {json.dumps(found)}" if found else None
    return f"source_paths = {found[0]}" if len(found) == 1 else None


def first_configuration(root: Path) -> dict[str, str]:
    """Say where the sources are, as text for a file by its name; nothing where mutmut guesses it.

    It guesses by names: `_guess_source_paths` of mutmut's module `configuration`.
    """
    own = root.name
    folders = ("lib", "src", own, *(own.replace(old, new) for old in "- " for new in ("_", "")))
    guessed = any((root / folder).is_dir() for folder in folders) or (root / f"{own}.py").is_file()
    name = _file_of_options(root)
    setting = None if guessed or is_configured(root) else setting_of_sources(root, name)
    return {} if setting is None else {name: f"{_table(name)}\n{setting}\n"}


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

"""Configuration: which file configures StrykerJS in a project, and whether anything does."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msp_bridge import reading
from msp_bridge.adapter import ConfigurationError, Project

NAMES = tuple(  # in StrykerJS's own order
    f"{prefix}stryker{suffix}.{extension}"
    for prefix in ("", ".")
    for suffix in (".conf", ".config")
    for extension in ("json", "js", "mjs", "cjs")
)
EXTENSIONS = frozenset({".json", ".js", ".mjs", ".cjs"})
MUTABLE = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue", ".svelte", ".html", ".htm")
CORE = "@stryker-mutator/core"
RUNNER = re.compile(r"@stryker-mutator/(\w+)-runner")
DEPENDENCIES = ("dependencies", "devDependencies", "optionalDependencies")


def configured(project: Project) -> bool:
    """Whether StrykerJS is set up in the project: by a configuration file, or as a dependency."""
    if project.config_file is not None:
        return could_configure(project.config_file)
    return found(project.root) is not None or depends_on_core(project.root)


def config_file(project: Project) -> Path | None:
    """The file that configures StrykerJS, if any."""
    return project.config_file or found(project.root)


def found(root: Path) -> Path | None:
    """The configuration file in `root` that StrykerJS takes by itself."""
    files = (root / name for name in NAMES)
    return next((file for file in files if file.is_file() and could_configure(file)), None)


def could_configure(file: Path) -> bool:
    """Whether `file` may be StrykerJS's: by its name, and a JSON file also by what is in it."""
    if file.suffix.lower() not in EXTENSIONS or file.name == "package.json":
        return False
    return file.suffix.lower() != ".json" or "stryker-config" not in read_json(file)  # that is Stryker.NET's


def depends_on_core(root: Path) -> bool:
    """Whether package.json asks for StrykerJS, or seems to, if it is broken: `check_package` tells that."""
    try:
        package = reading.json_value(root / "package.json", errors="replace")
    except OSError:
        return False
    except ValueError:
        return f'"{CORE}"' in reading.text(root / "package.json", errors="replace")
    return isinstance(package, dict) and CORE in dependencies(package)


def runner_of(root: Path) -> str | None:
    """The test runner whose plugin package.json asks for: "mocha"."""
    names = map(RUNNER.fullmatch, sorted(dependencies(read_json(root / "package.json"))))
    return next((match[1] for match in names if match), None)


def check_package(root: Path) -> None:
    """Raises ConfigurationError when the package.json that holds for `root` is broken: Node couldn't live with that."""
    files = (directory / "package.json" for directory in (root, *root.parents))
    file = next(filter(os.path.isfile, files), None)
    if file is None:
        return
    try:
        reading.json_value(file, errors="replace")
    except ValueError as error:
        raise ConfigurationError(f"{file} is not valid JSON: {error}; correct it") from None
    except OSError as error:
        raise ConfigurationError(f"{file} can't be read: {error.strerror}; correct it") from None


def read_json(file: Path) -> dict[str, Any]:
    """The object in `file`; empty when there is none, or it can't be read."""
    try:
        value = reading.json_value(file)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def dependencies(package: Mapping[str, Any], *further: str) -> set[str]:
    """The packages that a package.json asks for; `further` are tables to look in, too."""
    tables = (package.get(name) for name in (*DEPENDENCIES, *further))
    return {name for table in tables if isinstance(table, dict) for name in table}

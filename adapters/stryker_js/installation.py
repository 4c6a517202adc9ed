"""Installation: where the project's StrykerJS lies, which one it is, and how its package manager installs another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from attrs import frozen

from msp_bridge.adapter import ToolError

from . import plug_n_play
from .configuration import CORE, check_package, depends_on_core, read_json

OLDEST = (6, 4)
SERVES = (9, 3)  # since then `stryker serve` speaks the Mutation Server Protocol
LOCKS = {
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
}
INSTALL = {"npm": "npm install --save-dev", "pnpm": "pnpm add -D", "yarn": "yarn add -D", "bun": "bun add -d"}
RUN = {"npm": "npx", "pnpm": "pnpm exec", "yarn": "yarn", "bun": "bunx"}
Version = tuple[int, ...]


@frozen
class Installation:
    """One @stryker-mutator/core."""

    directory: Path  # of the package, links resolved
    version: str
    engine: str  # the range of Node's versions that it needs, ">=20.0.0"

    @classmethod
    def find(cls, root: Path) -> Self:
        """The one that Node would take in `root`: there, or hoisted to a directory above.

        Raises ToolError when there is none, or one that is too old; ConfigurationError when package.json is broken.
        """
        check_package(root)
        directory, package = _core_of(root)
        found = cls(directory, str(package.get("version")), _engine(package.get("engines")))
        if found.numbers < OLDEST:
            raise ToolError(
                f"StrykerJS {found.version} in {directory} is too old (6.4 or later is needed): "
                f"run `{install_command(root, CORE)}`"
            )
        return found

    @property
    def numbers(self) -> Version:
        """(9, 6, 1) of 9.6.1."""
        return numbers(self.version)

    @property
    def serves(self) -> bool:
        """Whether `stryker serve` can be used; else the command line is driven."""
        return self.numbers >= SERVES

    @property
    def program(self) -> Path:
        """The script that Node runs."""
        return self.directory / "bin" / "stryker.js"


def package_manager(root: Path) -> str:
    """npm, pnpm, yarn or bun: what package.json names, else whose lock file is nearest."""
    for directory in upwards(root):
        named = str(read_json(directory / "package.json").get("packageManager", "")).partition("@")[0]
        if named in INSTALL:
            return named
        for lock, manager in LOCKS.items():
            if (directory / lock).is_file():
                return manager
    return "npm"


def install_command(root: Path, *packages: str) -> str:
    """What the user runs to install `packages`."""
    return " ".join([INSTALL[package_manager(root)], *packages])


def setup_commands(root: Path) -> str:
    """What the user runs to install StrykerJS and to configure it."""
    return f"{install_command(root, CORE)} && {RUN[package_manager(root)]} stryker init"


def upwards(directory: Path) -> Iterator[Path]:
    """The directory, and those above it."""
    yield directory
    yield from directory.parents


def numbers(version: str) -> Version:
    """The release numbers in `version`, for comparing: (20, 11, 0) of "v20.11.0", (22,) of ">=22"."""
    release = re.search(r"\d+(\.\d+)*", version)
    return tuple(map(int, release[0].split("."))) if release else ()


def _core_of(root: Path) -> tuple[Path, dict[str, Any]]:
    for directory in upwards(root):
        core = directory / "node_modules" / CORE
        if package := read_json(core / "package.json"):
            return core.resolve(), package
        if plug_n_play.is_used(directory) and (found := plug_n_play.core_of(directory)):
            return found
    raise _missing(root)


def _missing(root: Path) -> ToolError:
    """To add a package that is asked for already could change package.json and the lock file."""
    asking = next(filter(depends_on_core, upwards(root)), None)
    if asking is None:
        return ToolError(f"StrykerJS is not installed for {root}: run `{install_command(root, CORE)}`")
    return ToolError(f"StrykerJS is not installed for {asking}: run `{package_manager(asking)} install`")


def _engine(engines: object) -> str:
    return str(engines.get("node", "")) if isinstance(engines, dict) else ""

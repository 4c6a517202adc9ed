"""The programs that run: the project's StrykerJS, its Node, and the package manager that installs others."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from attrs import frozen

from msp_bridge import reading
from msp_bridge.adapter import BridgeError, Project, ShellCommand, ToolError
from msp_bridge.processes import ProcessTree
from msp_bridge.text import release

from . import plug_n_play
from .configuration import CORE, TABLE, Settings, check_package, dependencies, depends_on_core

log = logging.getLogger(__name__)

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
NODE_TIMEOUT_S = 30.0  # for the answer to --version: a version manager's stand-in may want to download something first
PINS = (".nvmrc", ".node-version", ".tool-versions")
VERSION_MANAGERS = (  # each: a variable for its home, the usual home, where in it the programs are
    ("NVM_DIR", "~/.nvm", "versions/node/*/bin/node"),
    ("FNM_DIR", "~/.local/share/fnm", "node-versions/*/installation/bin/node"),
    ("VOLTA_HOME", "~/.volta", "tools/image/node/*/bin/node"),
    ("ASDF_DATA_DIR", "~/.asdf", "installs/nodejs/*/bin/node"),
    ("MISE_DATA_DIR", "~/.local/share/mise", "installs/node/*/bin/node"),
)
NODE_REMEDY = f"correct the setting `node` of {TABLE!r}, or PATH"
Version = tuple[int, ...]


@frozen
class StrykerJsInstallation:
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
        engines = package.get("engines")
        engine = str(engines.get("node", "")) if isinstance(engines, dict) else ""
        found = cls(directory, str(package.get("version")), engine)
        if found.numbers < OLDEST:
            raise ToolError(
                f"StrykerJS {found.version} in {directory} is too old (6.4 or later is needed)",
                install_command(root, CORE),
            )
        return found

    @property
    def numbers(self) -> Version:
        """(9, 6, 1) of 9.6.1."""
        return release(self.version)

    @property
    def serves(self) -> bool:
        """Whether `stryker serve` can be used; else the command line is driven."""
        return self.numbers >= SERVES

    @property
    def program(self) -> Path:
        """The script that Node runs."""
        return self.directory / "bin" / "stryker.js"


@frozen
class Node:
    """A program that answers `--version`."""

    program: Path
    version: str  # "v20.11.0"

    @classmethod
    async def ask(cls, program: Path) -> Node:
        """Run it once; raises ToolError when it is no Node, or doesn't answer."""
        try:
            async with (
                asyncio.timeout(NODE_TIMEOUT_S),
                ProcessTree.running([program, "--version"], cwd=program.parent) as tree,
                contextlib.aclosing(tree.lines()) as lines,
            ):
                said = (await anext(lines, b"")).decode("utf-8", "replace")  # no more: it may go on for ever
        except TimeoutError:
            raise ToolError(f"{program} doesn't answer", NODE_REMEDY) from None
        if not said.startswith("v") or not release(said):
            raise ToolError(f"{program} is no Node", NODE_REMEDY)
        return cls(program, said.strip())

    def runs(self, engine: str) -> bool:
        """Whether it is new enough for `engine`, a range like ">=20.0.0"."""
        return release(self.version) >= release(engine)


@frozen
class Toolchain:
    """The programs that run."""

    node: Node
    installation: StrykerJsInstallation

    @classmethod
    async def find(cls, project: Project, known: Toolchain | None) -> Toolchain:
        """Looked up anew for each request: packages are installed while a project is open; Node only if need be.

        Raises ToolError and ConfigurationError.
        """
        installation = StrykerJsInstallation.find(project.root)
        if known is not None and known.installation == installation and known.node.program.exists():
            return known
        return cls(await find_node(project.root, installation, Settings.of(project).node), installation)


async def find_node(root: Path, installation: StrykerJsInstallation, named: Path | None) -> Node:
    """The Node that the user named, or the project pins, or the first on PATH, or the newest that some manager keeps.

    The first of these that StrykerJS can run on; only that which the user named is taken without a choice.
    Raises ToolError when there is none.
    """
    if named is not None:
        node = await Node.ask(named)
        if not node.runs(installation.engine):
            raise _unfit(installation, node, f"name a newer one with the setting `node` of {TABLE!r}")
        return node
    unfit: Node | None = None
    for program in _candidates(root):
        try:
            node = await Node.ask(program)
        except ToolError as error:  # as a version manager's stand-in that knows no version to run here
            log.warning("%s", error)
            continue
        if node.runs(installation.engine):
            return node
        unfit = unfit or node
    if unfit is None:
        remedy = f"install Node {installation.engine}, or name it with the setting `node` of {TABLE!r}"
        raise ToolError("there is no Node that works on PATH", remedy)
    major = release(installation.engine)[0]
    remedy = f"install one (`nvm install {major}`), or name it with the setting `node` of {TABLE!r}"
    raise _unfit(installation, unfit, remedy)


def _unfit(installation: StrykerJsInstallation, node: Node, remedy: str) -> ToolError:
    needed = f"StrykerJS {installation.version} needs Node {installation.engine}"
    return ToolError(f"{needed}, but {node.program} is {node.version}", remedy)


def _candidates(root: Path) -> Iterator[Path]:
    kept = _kept_by_version_managers()
    pinned = _pinned(root)
    if pinned:
        yield from (program for version, program in kept if version[: len(pinned)] == pinned)
    own = root / "node_modules" / ".bin" / "node"  # npm's package `node`
    if os.access(own, os.X_OK):
        yield own.resolve()
    on_path = shutil.which("node")
    if on_path is not None:
        yield Path(on_path)
    yield from (program for _, program in kept)


def _pinned(root: Path) -> Version:
    """The version that the project asks for, perhaps only its beginning; empty when it doesn't."""
    for directory in (root, *root.parents):
        for name in PINS:
            try:
                lines = reading.text(directory / name).splitlines()
            except (OSError, ValueError):
                continue
            if name == ".tool-versions":
                lines = [line for line in lines if line.startswith("nodejs ")]
            if lines and release(lines[0]):
                return release(lines[0])
        volta = reading.table(directory / "package.json").get("volta")
        if isinstance(volta, dict) and "node" in volta:
            return release(str(volta["node"]))
    return ()


def _kept_by_version_managers() -> list[tuple[Version, Path]]:
    """Programs that version managers have installed, the newest first."""
    found: list[tuple[Version, Path]] = []
    for variable, usual, pattern in VERSION_MANAGERS:
        home = Path(os.environ.get(variable) or usual).expanduser()
        depth = pattern.split("/").index("*")
        found += ((release(program.relative_to(home).parts[depth]), program) for program in home.glob(pattern))
    return sorted(found, reverse=True)


def package_manager(root: Path) -> str:
    """npm, pnpm, yarn or bun: what package.json names, else whose lock file is nearest."""
    for directory in (root, *root.parents):
        named = str(reading.table(directory / "package.json").get("packageManager", "")).partition("@")[0]
        if named in INSTALL:
            return named
        for lock, manager in LOCKS.items():
            if (directory / lock).is_file():
                return manager
    return "npm"


def install_command(root: Path, *packages: str) -> ShellCommand:
    """The command that installs `packages` in `root`. At the root of a workspace pnpm and Yarn 1 want that said."""
    manager = package_manager(root)
    command = INSTALL[manager]
    if manager == "pnpm" and (root / "pnpm-workspace.yaml").is_file():
        command += " -w"
    elif manager == "yarn" and "workspaces" in reading.table(root / "package.json") and _has_lock_of_yarn_1(root):
        command += " -W"
    return ShellCommand(" ".join([command, *packages]))


def plugin_install(root: Path, package: str) -> ShellCommand:
    """The command that installs a plugin of StrykerJS's own in `root`: each goes with one version of it alone."""
    return install_command(root, f"{package}@{StrykerJsInstallation.find(root).version}")


def setup_commands(root: Path) -> ShellCommand:
    """The commands that install StrykerJS and configure it."""
    return ShellCommand(f"{install_command(root, CORE)} && {RUN[package_manager(root)]} stryker init")


def lacking_packages(root: Path, plugin: str | None) -> ShellCommand | None:
    """The command that installs StrykerJS and its plugin `plugin`, as far as package.json doesn't ask for them."""
    asked = dependencies(reading.table(root / "package.json"))
    lacking = [name for name in (CORE, plugin) if name is not None and name not in asked]
    try:
        StrykerJsInstallation.find(root)
    except BridgeError as error:
        if not lacking:
            return error.remedy if isinstance(error.remedy, ShellCommand) else None
        return install_command(root, *lacking)
    return plugin_install(root, plugin) if plugin is not None and plugin in lacking else None


def checkout_command(root: Path) -> ShellCommand:
    """The command that installs the packages of `root` in a fresh checkout."""
    manager = package_manager(root)
    if manager == "npm":
        return ShellCommand("npm ci" if (root / "package-lock.json").is_file() else "npm install")
    frozen = "--immutable" if manager == "yarn" and not _has_lock_of_yarn_1(root) else "--frozen-lockfile"
    start = "npm install --global bun" if manager == "bun" else "corepack enable"
    return ShellCommand(f"{start} && {manager} install {frozen}")


def _has_lock_of_yarn_1(root: Path) -> bool:
    """Whether Yarn 1 is used; later ones refuse some of its options."""
    return "yarn lockfile v1" in reading.text_or_empty(root / "yarn.lock")


def _core_of(root: Path) -> tuple[Path, dict[str, Any]]:
    for directory in (root, *root.parents):
        core = directory / "node_modules" / CORE
        if package := reading.table(core / "package.json"):
            return core.resolve(), package
        if plug_n_play.is_used(directory) and (found := plug_n_play.core_of(directory)):
            return found
    raise _missing(root)


def _missing(root: Path) -> ToolError:
    """The error for StrykerJS that is not installed. Adding what package.json asks for could change the lock file."""
    asking = next(filter(depends_on_core, (root, *root.parents)), None)
    if asking is None:
        return ToolError(f"StrykerJS is not installed for {root}", install_command(root, CORE))
    return ToolError(f"StrykerJS is not installed for {asking}", ShellCommand(f"{package_manager(asking)} install"))

"""CargoCommand: how cargo-mutants is called, and the errors for its failures."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from attrs import define, field

from msp_bridge import reading
from msp_bridge.adapter import ToolError
from msp_bridge.processes import ProcessTree
from msp_bridge.toolkit import walk

from .installation import CONFIGURATION, INSTALL, MANIFEST, cargo, home, search_path

SUCCESS = frozenset({0, 2, 3})  # all caught; some missed; some timed out
BASELINE_FAILED = 4
LOCK = "Cargo.lock"
MISSING = "no such command: `mutants`"
SHOWN_CHARS = 500  # at the end of stderr, in an error message


@define(eq=False)
class CargoCommand:
    """Calls of cargo in the project at `root`. None of them writes into it."""

    root: Path
    config_file: Path | None = None
    _workspace: Path | None = field(default=None, init=False)

    async def output(self, *arguments: str) -> str:
        """The stdout of `cargo mutants`; raises `ToolError` when it fails."""
        async with self.running(*arguments) as tree:
            printed = await tree.output()
            if await tree.exited() not in SUCCESS:
                raise self.failure(tree)
        return printed.decode("utf-8", "replace")

    def running(
        self,
        *arguments: str,
        cwd: Path | None = None,
        env: Mapping[str, str | None] | None = None,
        within: Callable[[list[str]], list[str]] | None = None,
    ) -> AbstractAsyncContextManager[ProcessTree]:
        """`cargo mutants`, to be ended with the block. `within` makes the command one that runs it isolated.

        `cwd`: by default the project.
        """
        config = () if self.config_file is None else ("--config", str(self.config_file))
        argv = [cargo(), "mutants", "--colors", "never", *config, *arguments]
        argv = argv if within is None else within(argv)
        return ProcessTree.running(argv, cwd=cwd or self.root, env={"PATH": search_path(), **(env or {})})

    async def workspace_root(self) -> Path:
        """The directory that cargo-mutants writes paths relative to, links resolved. It is asked for once."""
        if self._workspace is None:
            self._workspace = await self._located()
        return self._workspace

    async def configuration(self) -> Path:
        """The file that configures cargo-mutants, where there is one."""
        return self.config_file or await self.workspace_root() / ".cargo" / CONFIGURATION

    async def _located(self) -> Path:
        argv = [cargo(), "locate-project", "--workspace", "--message-format", "plain"]
        async with ProcessTree.running(argv, cwd=self.root) as tree:
            found = await tree.output()
            if await tree.exited() != 0 or not found:
                raise self.failure(tree)
        return Path(os.fsdecode(found.splitlines()[0])).parent.resolve()

    def failure(self, tree: ProcessTree) -> ToolError:
        """The error for an exit code that is no result."""
        printed = tree.errors.partition("Stack backtrace:")[0]
        if MISSING in printed:
            return ToolError("cargo-mutants is not installed", INSTALL)
        reason = " ".join(printed.split())[-SHOWN_CHARS:] or tree.outcome
        return ToolError(f"cargo-mutants can't work on {self.root}: {reason}", "fix what `cargo mutants --list` prints")


async def compiler(root: Path) -> list[str]:
    """Ask the compiler of the project at `root` for its version; raises `ToolError` when there is none."""
    program = shutil.which(os.environ.get("RUSTC") or "rustc", path=search_path())
    if program is None:
        raise ToolError("there is no rustc on PATH, nor in ~/.cargo/bin", "install Rust from https://rustup.rs")
    async with ProcessTree.running([program, "-vV"], cwd=root) as tree:
        return (await tree.output()).decode("utf-8", "replace").splitlines()


def configurations(workspace: Path) -> list[Path]:
    """Where cargo's configuration outside of `workspace` may stand."""
    directories = [home(), *(above / ".cargo" for above in workspace.parents)]
    return [directory / name for directory in directories for name in ("config.toml", "config")]


def is_pinned(workspace: Path) -> bool:
    """Whether each package is of a registry or repository and pinned by Cargo.lock, or lies in `workspace`."""
    try:
        return not unpinned_packages(workspace, reading.toml(workspace / LOCK))
    except (OSError, ValueError):
        return False


def unpinned_packages(workspace: Path, lock: Mapping[str, Any]) -> set[str]:
    """Return the names of packages outside of `workspace` that `lock`, from Cargo.lock, does not pin. Blocks."""
    loose = {package["name"] for package in lock.get("package", []) if "source" not in package}
    return loose - own_packages(workspace) if loose else loose


def own_packages(workspace: Path) -> set[str]:
    """Return the names of packages that lie in `workspace`. Blocks."""
    packages = (manifest.get("package") for manifest in _manifests(workspace))
    return {package["name"] for package in packages if isinstance(package, dict) and "name" in package}


def has_dependencies(workspace: Path) -> bool:
    """Whether cargo builds packages from elsewhere: by Cargo.lock, or where there is none by the manifests. Blocks."""
    if (workspace / LOCK).exists():
        return any("source" in package for package in reading.table(workspace / LOCK).get("package", []))
    return any(map(_names_dependencies, _manifests(workspace)))


def _manifests(workspace: Path) -> Iterator[dict[str, Any]]:
    found = (Path(directory) / MANIFEST for directory, _, files in walk(workspace) if MANIFEST in files)
    return map(reading.table, found)


def _names_dependencies(table: Mapping[str, Any]) -> bool:
    tables = {name: value for name, value in table.items() if isinstance(value, dict)}
    return any(
        (value and name.endswith("dependencies")) or _names_dependencies(value) for name, value in tables.items()
    )

"""CargoMutants: the adapter that asks cargo-mutants for its mutants, and has it test them in its own copies."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from attrs import evolve

from msp_bridge.adapter import BridgeError, ConfigurationError, Finding, Mutant, Project, Result, Scope, ToolError

from .builds import Builds
from .command import INSTALL, Command, cargo, is_installed
from .listing import Sources
from .package import MANIFEST, is_member, is_package
from .run import Run

CONFIGURATION = "mutants.toml"


class CargoMutants:
    """cargo-mutants on one package or workspace.

    Listing takes some hundredths of a second, so nothing is remembered. Tests run as in `cargo mutants`: it copies the
    project, builds it and tests it without a mutant, and then with each; what it has begun goes on until it is closed.
    Only what it builds may be kept for the next request.
    """

    name: ClassVar[str] = "cargo-mutants"
    markers: ClassVar[tuple[str, ...]] = (MANIFEST,)
    sources: ClassVar[tuple[str, ...]] = ("*.rs",)

    def __init__(self, project: Project) -> None:
        self._project = project
        self._command = Command(project.root, project.config_file)
        self._builds = Builds(project)
        self._workspace: Path | None = None

    @classmethod
    def detect(cls, project: Project) -> Self | None:
        """A package or workspace where cargo-mutants is installed; a member of a workspace is that one's business."""
        if project.config_file is not None and project.config_file.name != CONFIGURATION:
            return None
        if not is_package(project.root) or (project.nested and is_member(project.root, project.opened)):
            return None
        if not is_installed() and not (project.root / ".cargo" / CONFIGURATION).is_file():
            return None
        if project.settings:
            unknown = ", ".join(sorted(project.settings))
            raise ConfigurationError(
                f"cargo-mutants has no settings in the bridge's configuration: move {unknown} to .cargo/{CONFIGURATION}"
            )
        return cls(project)

    @classmethod
    def absent(cls, project: Project) -> Finding:
        """Whether it is the package or the tool that is missing."""
        if not is_package(project.root):
            return Finding(False, "cargo-mutants", f"there is no {MANIFEST} in {project.root}")
        return Finding(False, "cargo-mutants", "it is not installed", INSTALL)

    def claims(self, path: str) -> bool:
        """Any Rust file may belong to a package here."""
        return path.endswith(".rs")

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        """What `cargo mutants --list` lists, in its order, which is file by file."""
        if scope.paths == frozenset():
            return
        for mutant in await self._listed():
            if scope.covers(mutant.path):
                yield mutant

    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        """Results in the order in which cargo-mutants gets them. Those of files that have changed get none."""
        if not mutants:
            return
        sources = await self._sources()
        due = {mutant: mutant for mutant in await asyncio.to_thread(sources.unchanged, mutants)}
        if not due:
            return
        run = Run(self._command, sources, self._builds, self._project.jobs, await self._options())
        async with contextlib.aclosing(run.results(list(due))) as results:
            async for result in results:
                mutant = due.pop(result.mutant, None)
                if mutant is not None:
                    yield evolve(result, mutant=mutant)

    async def diagnose(self) -> AsyncGenerator[Finding, None]:
        """cargo, cargo-mutants, and how many mutants it lists."""
        try:
            yield Finding(True, "cargo", cargo())
            async with contextlib.aclosing(self._command.lines("--version")) as lines:
                versions = [line.decode() async for line in lines]
            yield Finding(True, "cargo-mutants", " ".join(versions))
            yield Finding(True, "mutants", f"{len(await self._listed())} in {self._project.root}")
        except BridgeError as error:
            yield Finding.of_error("cargo-mutants", error)

    async def aclose(self) -> None:
        """Give back the directories for builds; no process outlives its request."""
        await self._builds.aclose()

    async def _listed(self) -> list[Mutant]:
        sources, entries = await self._sources(), await self._list("--json")
        names: Sequence[str] = ()
        if any("name" not in entry for entry in entries):  # before 26.1
            names = await self._list()
            if len(names) != len(entries):
                raise ToolError("the sources changed while cargo-mutants read them: try again")
        try:
            return await asyncio.to_thread(_mutants, sources, entries, names or [""] * len(entries))
        except KeyError as error:
            raise self._unreadable(f"it lacks {error}") from None
        except (TypeError, ValueError) as error:
            raise self._unreadable(str(error)) from None

    async def _list(self, *how: str) -> Any:
        options = await self._options()
        async with contextlib.aclosing(self._command.lines("--list", *how, *options)) as lines:
            said = [line async for line in lines]
        return self._entries(b"\n".join(said)) if how else [line.decode() for line in said]

    def _entries(self, said: bytes) -> list[dict[str, Any]]:
        try:
            entries = json.loads(said or b"[]")
        except ValueError as error:
            raise self._unreadable(str(error)) from None
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise self._unreadable("it is no list of objects")
        return entries

    def _unreadable(self, why: str) -> ToolError:
        return ToolError(
            f"the list of mutants of cargo-mutants in {self._project.root} can't be read: {why}; "
            "look at what `cargo mutants --list --json` prints"
        )

    async def _options(self) -> list[str]:
        """In a workspace's root all packages count, as any of their files may be open in the editor."""
        return ["--workspace"] if await self._workspace_root() == self._project.root.resolve() else []

    async def _sources(self) -> Sources:
        return Sources(self._project.root.resolve(), await self._workspace_root())

    async def _workspace_root(self) -> Path:
        if self._workspace is None:
            self._workspace = (await self._command.workspace_root()).resolve()
        return self._workspace


def _mutants(sources: Sources, entries: Sequence[dict[str, Any]], names: Sequence[str]) -> list[Mutant]:
    found = (sources.mutant(entry, name) for entry, name in zip(entries, names, strict=True))
    return [mutant for mutant in found if mutant is not None]

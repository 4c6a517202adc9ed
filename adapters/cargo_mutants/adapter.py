"""CargoMutants: the adapter that lists cargo-mutants' mutants, and runs it on some of them in its own copies."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from msp_bridge import reading
from msp_bridge.adapter import (
    BridgeError,
    Edit,
    Finding,
    Mutant,
    Project,
    Result,
    Scope,
    Setup,
    Surroundings,
    ToolError,
)
from msp_bridge.concurrency import in_thread
from msp_bridge.source import SourceText, above_line, in_comment

from .installation import CONFIGURATION, INSTALL, MANIFEST, cargo, is_installed

if TYPE_CHECKING:
    from .cargo import CargoCommand
    from .listing import CargoListing
    from .run import CargoRun

FUNCTION = re.compile(r'\s*(pub(\([^)]*\))?\s+)?((default|const|async|unsafe|extern(\s+"[^"]*")?)\s+)*fn\s')


class CargoMutants:
    """cargo-mutants on one package or workspace.

    Tests run as in `cargo mutants`: it builds a copy of the project and tests it without a mutant, and then with each;
    what it has begun goes on until it is closed. The copies are kept for the next request (`kept_copies`).
    """

    name: ClassVar[str] = "cargo-mutants"
    markers: ClassVar[tuple[str, ...]] = (MANIFEST,)
    sources: ClassVar[tuple[str, ...]] = ("*.rs",)

    def __init__(self, project: Project) -> None:
        self._project = project
        self._made: CargoRun | None = None

    @classmethod
    def detect(cls, project: Project) -> Self | None:
        """A package or workspace where cargo-mutants is installed; a member of a workspace is that one's business."""
        if project.config_file is not None and project.config_file.name != CONFIGURATION:
            return None
        if not is_package(project.root) or (project.nested and is_member(project.root, project.opened)):
            return None
        if not is_installed() and not (project.root / ".cargo" / CONFIGURATION).is_file():
            return None
        project.check_settings(cls.name, (), f".cargo/{CONFIGURATION}")
        return cls(project)

    @classmethod
    def absent(cls, project: Project) -> Finding:
        """Whether it is the package or the tool that is missing."""
        if not is_package(project.root):
            return Finding(False, "cargo-mutants", f"there is no {MANIFEST} in {project.root}")
        return Finding(False, "cargo-mutants", "it is not installed", INSTALL)

    @classmethod
    def setup(cls, project: Project) -> Setup | None:
        """Implement `SetsUp.setup`: a package or workspace needs no configuration."""
        if not is_package(project.root) or (project.nested and is_member(project.root, project.opened)):
            return None
        return Setup(None if is_installed() else INSTALL, toolchain="rust", checkout=(INSTALL,))

    @cached_property
    def _command(self) -> CargoCommand:
        from .cargo import CargoCommand  # here, and below: a client that only configures doesn't wait for it

        return CargoCommand(self._project.root, self._project.config_file)

    @cached_property
    def _listing(self) -> CargoListing:
        from .listing import CargoListing

        return CargoListing(self._project.root, self._command)

    def claims(self, path: str) -> bool:
        """Any Rust file may belong to a package here."""
        return path.endswith(".rs")

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        """List the mutants of `cargo mutants --list`, in its order, which is file by file."""
        if scope.paths == frozenset():
            return
        for mutant in await self._listing.mutants():
            if scope.covers(mutant.path):
                yield mutant

    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        """Results in the order in which cargo-mutants gets them."""
        if not mutants:
            return
        run = await self._run()
        async with contextlib.aclosing(run.results(list(dict.fromkeys(mutants)))) as results:
            async for result in results:
                yield result

    async def ignore(self, mutant: Mutant, reason: str) -> Edit:
        """Implement `IgnoresMutants.ignore`. In this form the attribute, of a whole function, needs no dependency."""
        source = SourceText.read(self._project.root / mutant.path)
        lines = source.text.split("\n")
        start = mutant.location.start.line
        line = next((line for line in range(start, 0, -1) if FUNCTION.match(lines[line - 1])), None)
        if line is None:
            raise ToolError(
                f"{mutant.path}:{start} is in no function whose first line can be found",
                f"exclude it by exclude_re in .cargo/{CONFIGURATION}",
            )
        comment = f"#[cfg_attr(test, mutants::skip)]{in_comment(reason, ' // ')}"
        return above_line(mutant.path, source, line, comment, "every mutant of this function")

    async def surroundings(self) -> Surroundings | None:
        """Implement `ReportsSurroundings`. None when packages come from elsewhere that Cargo.lock does not pin."""
        from .cargo import compiler, configurations, is_pinned

        workspace = await self._command.workspace_root()
        if not await in_thread(is_pinned, workspace):
            return None
        values = {
            "cargo-mutants": (await self._command.output("--version")).splitlines(),
            "rustc": await compiler(self._project.root),
            "cargo": [await in_thread(reading.digest, file) for file in configurations(workspace)],
        }
        return Surroundings(values, (workspace,))

    async def test_command(self) -> tuple[str, ...] | None:
        """Implement `HasTestCommand`: it runs the tests as cargo-mutants does."""
        from .fresh_tests import command

        return command(
            await in_thread(reading.table, await self._command.configuration()), await self._listing.options()
        )

    async def diagnose(self) -> AsyncGenerator[Finding, None]:
        """cargo, cargo-mutants, and how many mutants it lists."""
        try:
            yield Finding(True, "cargo", cargo())
            yield Finding(True, "cargo-mutants", " ".join((await self._command.output("--version")).splitlines()))
            yield Finding(True, "mutants", f"{len(await self._listing.mutants())} in {self._project.root}")
            yield Finding(True, "isolation", await (await self._run()).isolation.described())
        except BridgeError as error:
            yield Finding.of_error("cargo-mutants", error)

    async def _run(self) -> CargoRun:
        """Return what runs cargo-mutants, in copies of the whole workspace and isolated from it."""
        options, workspace = await self._listing.options(), await self._command.workspace_root()
        configuration = await self._command.configuration()
        if self._made is None:  # from here on nothing is awaited: no other request makes another one
            from msp_bridge.toolkit import Isolation

            from .kept_copies import KeptCopies
            from .run import CargoRun

            project, isolation = self._project, Isolation.of(self.name, workspace, network=False)
            copies = KeptCopies(project.cache, isolation.root, configuration)
            self._made = CargoRun(project.root, self._command, copies, project.jobs, options, isolation)
        return self._made

    async def aclose(self) -> None:
        """Give back the copies; no process outlives its request."""
        if self._made is not None:
            await self._made.copies.aclose()


def is_package(root: Path) -> bool:
    """Whether `root` has a Cargo.toml."""
    return (root / MANIFEST).is_file()


def is_member(root: Path, opened: Path | None) -> bool:
    """Whether the package at `root` belongs to a workspace around it, whose project has its mutants, too.

    A workspace around the directory that the user `opened` is no project, and what one excludes is none of its members.
    """
    if "workspace" in reading.table(root / MANIFEST):
        return False
    around = (above for above in root.parents if opened is None or above.is_relative_to(opened))
    workspaces = ((above, reading.table(above / MANIFEST).get("workspace")) for above in around)
    return any(isinstance(table, dict) and not _excludes(above, table, root) for above, table in workspaces)


def _excludes(workspace: Path, table: Mapping[str, Any], root: Path) -> bool:
    """Whether the workspace, whose manifest has the `table`, excludes the package at `root`."""
    excluded = table.get("exclude")
    names = excluded if isinstance(excluded, list) else []
    return any(isinstance(name, str) and root.is_relative_to(workspace / name) for name in names)

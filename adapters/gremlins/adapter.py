"""Gremlins: the adapter that lists gremlins' mutants, and tests them with go itself."""

from __future__ import annotations

import shlex
from collections.abc import AsyncGenerator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

from msp_bridge.adapter import BridgeError, Finding, Mutant, Notice, Project, Result, Scope, Setup, Surroundings
from msp_bridge.concurrency import LazyParts, in_thread
from msp_bridge.source import Edit
from msp_bridge.text import counted

from .installation import INSTALL, go, gremlins, is_installed

if TYPE_CHECKING:
    from .module import GoModule

MODULE = "go.mod"
CONFIGURATION = ".gremlins.yaml"
# A directory that has files for other systems alone has no tests: `go test` fails there, `go test ./...` does not.
TESTS_OF_PACKAGE = """directory=$1; shift
files='{{{{if .Dir}}}}{{{{or .GoFiles .CgoFiles .TestGoFiles .XTestGoFiles}}}}{{{{end}}}}'
[ "$(go list -e -f "$files" "$@" "$directory" 2> /dev/null)" != "[]" ] || exit 0
exec {test} "$@" "$directory"
"""
# A result that go has kept may be of other files: of those from which tests build programs it knows nothing.
TEST = ("go", "test", "-vet=off", "-count=1")


class Gremlins(LazyParts):
    """gremlins on one Go module. Its binaries are deleted when it is closed; no process outlives its request."""

    name: ClassVar[str] = "gremlins"
    markers: ClassVar[tuple[str, ...]] = (MODULE,)
    sources: ClassVar[tuple[str, ...]] = ("*.go",)
    parts: ClassVar[tuple[str, ...]] = ("_module",)

    def __init__(self, project: Project) -> None:
        self._project = project

    @classmethod
    def detect(cls, project: Project) -> Self | None:
        """Find a module where gremlins is installed, or that has its configuration."""
        if project.config_file is not None and project.config_file.suffix not in (".yaml", ".yml"):
            return None
        if not (project.root / MODULE).is_file():
            return None
        if not is_installed() and not (project.root / CONFIGURATION).is_file():
            return None
        project.check_settings(cls.name, (), CONFIGURATION)
        return cls(project)

    @classmethod
    def absent(cls, project: Project) -> Finding:
        """Say whether the module, go or the tool is missing."""
        if not (project.root / MODULE).is_file():
            return Finding(False, cls.name, f"there is no {MODULE} in {project.root}")
        return Finding(False, cls.name, "it is not installed", INSTALL)

    @classmethod
    def setup(cls, project: Project) -> Setup | None:
        """Implement `SetsUp.setup`: a module needs no configuration."""
        if not (project.root / MODULE).is_file():
            return None
        return Setup(None if is_installed() else INSTALL, toolchain="go", checkout=(INSTALL,))

    @cached_property
    def _module(self) -> GoModule:
        from .module import GoModule  # here: a client that only configures doesn't wait for it

        return GoModule(self._project)

    def claims(self, path: str) -> bool:
        """Any Go file but a test may belong to a package here."""
        return path.endswith(".go") and not path.endswith("_test.go")

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant | Notice, None]:
        """List the mutants of `gremlins unleash --dry-run`, file by file."""
        if scope.paths == frozenset():
            return
        for item in await self._module.listing.items(scope):
            yield item

    def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        """Yield results package by package."""
        return self._module.results(mutants)

    async def ignore(self, mutant: Mutant, reason: str) -> Edit:
        """Implement `IgnoresMutants.ignore`. The bridge itself heeds the comment, as long as gremlins doesn't."""
        from .listing import ignoring

        return await in_thread(ignoring, self._project.root, mutant, reason)

    async def surroundings(self) -> Surroundings | None:
        """Implement `ReportsSurroundings`. None where go can't name the modules."""
        return await self._module.surroundings()

    async def test_command(self) -> tuple[str, ...] | None:
        """Implement `HasTestCommand`."""
        options, test = self._module.listing.options, (*TEST, *self._module.skipped)
        if options.everything:
            return (*test, *options.for_builds, "./...")
        words = shlex.join(test)
        return ("sh", "-c", TESTS_OF_PACKAGE.format(test=words), words, "./{directory}", *options.for_builds)

    async def diagnose(self) -> AsyncGenerator[Finding, None]:
        """Yield the versions of go and gremlins, how many mutants there are, and what is isolated."""
        try:
            version = (await self._module.go.output("version")).decode().strip()
            yield Finding(True, "go", f"{version} ({go()})")
            yield Finding(True, self.name, gremlins())
            items = await self._module.listing.items(Scope())
            mutants = [item for item in items if isinstance(item, Mutant)]
            packages = (await self._module.go.listed(*self._module.listing.options.for_builds)).packages
            yield Finding(
                True, "mutants", f"{len(mutants)} in {counted(len(packages), 'package')} of {self._project.root}"
            )
            yield Finding(True, "isolation", await self._module.runner.isolation.described())
        except BridgeError as error:
            yield Finding.of_error(self.name, error)

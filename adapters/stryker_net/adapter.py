"""StrykerNet: the adapter."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

from msp_bridge.adapter import BridgeError, Edit, Finding, Mutant, Notice, Project, Result, Scope, Setup, Surroundings
from msp_bridge.concurrency import LazyParts, in_thread
from msp_bridge.source import SourceText, above_line, in_comment

from .plan import (
    BUILT,
    OUTPUT,
    PROJECTS,
    SOLUTIONS,
    StrykerNetPlan,
    bases_of,
    floats,
    has_solution,
    has_tests,
    local_tool,
    manifest_of,
)
from .setup import CONFIG_NAMES, INSTALL, INSTALL_LOCAL, RESTORE, VERIFIED, StrykerNetConfiguration, global_tool

if TYPE_CHECKING:
    from .preparation import Preparation
    from .testing import Testing

SOURCES = (".cs",)  # the mutators for F# were never finished
OUTPUT_DIRS = {*BUILT, OUTPUT}


class StrykerNet(LazyParts):
    """Stryker.NET on one project, in a private copy, because it writes into the tree that it tests.

    One run of it prepares the copy for each state of the project; mutants are then tested by test hosts.
    """

    name: ClassVar[str] = "stryker-net"
    markers: ClassVar[tuple[str, ...]] = (*CONFIG_NAMES, *SOLUTIONS, *PROJECTS)
    sources: ClassVar[tuple[str, ...]] = tuple(f"*{ending}" for ending in SOURCES)
    parts: ClassVar[tuple[str, ...]] = ("_preparation",)

    def __init__(self, project: Project) -> None:
        self._project = project

    @classmethod
    def detect(cls, project: Project) -> Self | None:
        """Find a stryker-config file, a tool manifest that names the tool, or the global tool beside tests."""
        return cls(project) if bases_of(project) else None

    @classmethod
    def absent(cls, project: Project) -> Finding:
        """Implement `Adapter.absent`."""
        if has_solution(project.root):
            text = (
                f"there is no {CONFIG_NAMES[0]} in {project.root}, no tool manifest that names it, and no global tool"
            )
            return Finding(False, "stryker-net", text, INSTALL)
        text = f"there is no {CONFIG_NAMES[0]} and no solution in {project.root}"
        return Finding(False, "stryker-net", text, "dotnet stryker init")

    @classmethod
    def setup(cls, project: Project) -> Setup | None:
        """Implement `SetsUp.setup`: the tool goes into the tool manifest where there is one."""
        root = project.root
        if cls.detect(project) is None and not has_tests(root):
            return None
        if manifest_of(root) is None:
            return Setup(None if global_tool() else INSTALL, toolchain="dotnet", checkout=(INSTALL,))
        return Setup(None if local_tool(root) else INSTALL_LOCAL, toolchain="dotnet", checkout=(RESTORE,))

    @cached_property
    def _preparation(self) -> Preparation:
        from .preparation import Preparation  # here, and below: a client that only configures doesn't wait for it

        return Preparation(self._project)

    @cached_property
    def _testing(self) -> Testing:
        from .testing import Testing

        return Testing(self._project, self._preparation)

    def claims(self, path: str) -> bool:
        """C# files, but not what builds generate."""
        *directories, name = path.split("/")
        return name.endswith(SOURCES) and OUTPUT_DIRS.isdisjoint(directories)

    async def test_command(self) -> tuple[str, ...] | None:
        """Implement `HasTestCommand`."""
        return ("dotnet", "test")

    def threshold(self) -> float | None:
        """Implement `HasThreshold.threshold`; None where several runs of the tool have one each."""
        bases = bases_of(self._project)
        file = bases[0].config if len(bases) == 1 else None
        return None if file is None else StrykerNetConfiguration.read(file).threshold

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant | Notice, None]:
        """Builds the project and runs its tests once, unless no file has changed since that was last done."""
        if not await in_thread(self._may_find, scope):
            return
        prepared = await self._preparation.current()
        for remark in prepared.remarks:
            if scope.covers(remark.path):
                yield remark
        for path, mutants in prepared.listed.items():
            if scope.covers(path) and self.claims(path):
                for mutant in mutants:
                    yield mutant
        self._preparation.measure_ahead(prepared)  # not before: a discovery that is cancelled leaves no process

    def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        """Implement `Adapter.test`."""
        return self._testing.test(mutants)

    async def ignore(self, mutant: Mutant, reason: str) -> Edit:
        """Implement `IgnoresMutants.ignore`. Its reports don't have the names that its comments take: it is `all`."""
        source = SourceText.read(self._project.root / mutant.path)
        comment = f"// Stryker disable once all{in_comment(reason, ' : ')}"
        effect = "every mutant of the statement below the comment"
        return above_line(mutant.path, source, mutant.location.start.line, comment, effect)

    async def surroundings(self) -> Surroundings | None:
        """Implement `ReportsSurroundings`. None where the version of a package is a pattern."""
        if await in_thread(floats, self._project.root):
            return None
        from .sandbox import ENVIRONMENT, what_is_above
        from .sdk import sdk_version

        root, tool = str(self._project.root), StrykerNetPlan.make(self._project).installation
        stamp = "" if tool.stamp.startswith(root) else tool.stamp  # a manifest in the project counts by its content
        above = await in_thread(what_is_above, self._project.root.resolve())
        values = {
            "sdk": await sdk_version(self._project.root, ENVIRONMENT),
            "tool": [str(tool).replace(root, "."), stamp],
            "above": {name: content.decode("utf-8", "replace") for name, content in above.items()},
        }
        return Surroundings(values)

    async def diagnose(self) -> AsyncGenerator[Finding, None]:
        """The tool, where it will run, the SDK, and what tests the mutants. Builds nothing."""
        from .sandbox import ENVIRONMENT
        from .sdk import sdk_version
        from .tool import HAS_PAGE

        try:
            plan = StrykerNetPlan.make(self._project)
            for base in plan.bases:
                plan.check(base)
        except BridgeError as error:
            yield Finding.of_error("stryker-net", error)
            return
        yield Finding(True, "stryker-net", f"`{plan.installation}`; verified with {VERIFIED}")
        for base in plan.bases:
            config = f"with {base.config}" if base.config else "without a configuration"
            yield Finding(True, "configuration", f"in {self._project.root / base.directory}, {config}")
        try:
            yield Finding(True, ".NET SDK", await sdk_version(self._project.root, ENVIRONMENT))
        except BridgeError as error:
            yield Finding.of_error(".NET SDK", error)
        if plan.uses_hosts and HAS_PAGE:
            platforms = {"Microsoft.Testing.Platform" if plan.uses_platform(base) else "VSTest" for base in plan.bases}
            yield Finding(True, "tests", f"run in test hosts of {' and '.join(sorted(platforms))}")
        else:
            why = "as `engine` says" if HAS_PAGE else "its page would open a browser on this system"
            yield Finding(True, "tests", f"are run by Stryker.NET itself: {why}. Results come at the end of a run")

    def _may_find(self, scope: Scope) -> bool:
        """Whether it is worth a build: a scope of files that aren't there has no mutants."""
        root = self._project.root
        return scope.paths is None or any(
            (root / path).is_dir() if path.endswith("/") else self.claims(path) and (root / path).is_file()
            for path in ((path.lstrip("/") or "./") for path in scope.paths)
        )

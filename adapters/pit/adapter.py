"""Pit: the adapter that lists PIT's mutants, and tests each by PIT's own code."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from msp_bridge.adapter import (
    BridgeError,
    ConfigurationError,
    Finding,
    Mutant,
    Notice,
    Project,
    Result,
    Scope,
    Setup,
    ShellCommand,
    Surroundings,
)
from msp_bridge.concurrency import LazyParts

from .installation import POM, java, maven, poms

if TYPE_CHECKING:
    from .modules import MavenModules

PLUGIN = "pitest-maven"
GRADLE = ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts")
WITH_GRADLE = "set up the generic adapter: it reads the reports of pitest-mutation-testing-elements-plugin"
SETTING = "version"
NEWEST = "1.25.9"  # that was tried
OF_TESTS = ("src/test", "*/src/test", "*/*/src/test")
MAX_POMS = 200  # that are looked at


class Pit(LazyParts):
    """PIT on one Maven project, with all its modules."""

    name: ClassVar[str] = "pit"
    markers: ClassVar[tuple[str, ...]] = (POM,)
    sources: ClassVar[tuple[str, ...]] = ("*.java", "*.kt")
    parts: ClassVar[tuple[str, ...]] = ("_modules",)

    def __init__(self, project: Project) -> None:
        self._project = project

    @classmethod
    def detect(cls, project: Project) -> Self | None:
        """Find a pom that has PIT's plug-in, in it or in one of its modules, or whose PIT the settings name."""
        root = project.root
        if project.config_file is not None and project.config_file.resolve() != (root / POM).resolve():
            return None
        if not (root / POM).is_file() or (project.nested and (root.parent / POM).is_file()):
            return None  # a module belongs to the project around it
        project.check_settings(cls.name, (SETTING,))
        version = project.settings.get(SETTING)
        if version is not None and not (isinstance(version, str) and version):
            raise ConfigurationError(f"pit.{SETTING} is {version!r}", f'write a version of PIT, such as "{NEWEST}"')
        return cls(project) if version is not None or _names_plugin(root) else None

    @classmethod
    def absent(cls, project: Project) -> Finding:
        """Say whether the pom or the plug-in is missing."""
        if not (project.root / POM).is_file():
            missing = f"there is no {POM} in {project.root}"
            if any((project.root / name).is_file() for name in GRADLE):
                return Finding(False, cls.name, f"{missing}, and Gradle is not supported", WITH_GRADLE)
            return Finding(False, cls.name, missing)
        by_hand = f"add the plug-in org.pitest:{PLUGIN}, or set `version` in the table `pit` of the configuration"
        remedy = by_hand if cls.setup(project) is None else ShellCommand("msp-bridge init")
        return Finding(False, cls.name, f"no {POM} names {PLUGIN}", remedy)

    @classmethod
    def setup(cls, project: Project) -> Setup | None:
        """Implement `SetsUp.setup`: Maven gets PIT by itself, when its version is known."""
        root = project.root
        if not (root / POM).is_file() or (project.nested and (root.parent / POM).is_file()):
            return None
        here = cls.detect(project) is not None
        if not here and not any(next(root.glob(pattern), None) for pattern in OF_TESTS):
            return None
        return Setup(settings={} if here else {SETTING: NEWEST}, toolchain="java")

    @cached_property
    def _modules(self) -> MavenModules:
        from .modules import MavenModules  # here: a client that only configures doesn't wait for it

        return MavenModules(self._project, self._project.settings.get(SETTING))

    def claims(self, path: str) -> bool:
        """Any file of Java or Kotlin but those of tests may belong to a module here."""
        return path.endswith((".java", ".kt")) and "src/test/" not in path

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant | Notice, None]:
        """List the mutants of the files in scope, after compiling them in a private copy."""
        if scope.paths == frozenset():
            return
        for item in await self._modules.items(scope):
            yield item

    def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        """Yield results as they come."""
        return self._modules.results(mutants)

    async def fresh_results(self, results: Sequence[Result]) -> Sequence[Result]:
        """Implement `HasFreshResults`, by PIT's plug-in for Maven."""
        return await self._modules.fresh_results(results)

    async def surroundings(self) -> Surroundings | None:
        """Implement `ReportsSurroundings`."""
        return await self._modules.surroundings()

    def threshold(self) -> float | None:
        """Implement `HasThreshold`: `mutationThreshold`, where all modules have the same."""
        return self._modules.threshold

    async def diagnose(self) -> AsyncGenerator[Finding, None]:
        """Yield where Java and Maven are, PIT's versions, and how many mutants there are."""
        try:
            yield Finding(True, "java", java())
            yield Finding(True, "maven", maven(self._project.root))
            items = await self._modules.items(Scope())
            for module, version in self._modules.versions:
                yield Finding(True, self.name, f"{version} for {module or self._project.root.name}")
            count = sum(isinstance(item, Mutant) for item in items)
            yield Finding(True, "mutants", f"{count} in {self._project.root}")
            yield Finding(True, "isolation", await self._modules.isolation())
        except BridgeError as error:
            yield Finding.of_error(self.name, error)


def _names_plugin(root: Path) -> bool:
    """Whether a pom of the project names the plug-in. Blocks."""
    return any(PLUGIN in text for _, text in islice(poms(root), MAX_POMS))

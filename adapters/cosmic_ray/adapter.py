"""CosmicRay: the adapter that takes cosmic-ray's configuration and mutants, and runs them in a pool of its own."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator, Sequence
from typing import ClassVar, Self

from msp_bridge.adapter import BridgeError, ConfigurationError, Finding, Mutant, Project, Result, Scope
from msp_bridge.counts import counted

from .command import TestCommand
from .configuration import Configuration, find
from .discovery import Discovery
from .mutation import Mutation
from .pool import Batch, Pool
from .proposal import proposal

log = logging.getLogger(__name__)


class CosmicRay:
    """cosmic-ray on one project. The user's tree is only read: everything that runs, runs in private copies.

    The statuses are those of `cosmic-ray exec`, apart from mutants that are no valid Python (CompileError there, killed
    by cosmic-ray) and those that its filters skip (Ignored). The configuration is read anew for each request.
    """

    name: ClassVar[str] = "cosmic-ray"
    markers: ClassVar[tuple[str, ...]] = ("*.toml",)
    sources: ClassVar[tuple[str, ...]] = ("*.py",)

    def __init__(self, project: Project) -> None:
        self._project = project
        self._discovery = Discovery(project)
        self._pool = Pool(project)
        self._seen: Configuration | None = None

    @classmethod
    def detect(cls, project: Project) -> Self | None:
        """cosmic-ray is set up where there is a TOML file with a table `[cosmic-ray]`."""
        return cls(project) if find(project) is not None else None

    @classmethod
    def absent(cls, project: Project) -> Finding:
        """Proposes a configuration for the project."""
        text = f"there is no cosmic-ray.toml in {project.root}"
        return Finding(False, "cosmic-ray", text, f"write cosmic-ray.toml:\n{proposal(project.root)}")

    def claims(self, path: str) -> bool:
        """Whether `path` is in `module-path` and not in `excluded-modules`."""
        try:
            return (self._seen or self._configuration()).claims(path)
        except ConfigurationError:
            return path.endswith(".py")  # whoever asks for it is told what is wrong

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        """Every work item of `cosmic-ray init`, file by file; those that the filters skip are Ignored when tested."""
        configuration = self._configuration()
        for path in configuration.modules(self._project.root):
            if scope.covers(path):
                for mutant in await self._discovery.mutations(configuration, path):
                    yield mutant

    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        """Results as the tests end, those that need no test first."""
        configuration = self._configuration()
        modules = configuration.modules(self._project.root)

        async def resolve(mutant: Mutant) -> Mutation | None:
            if mutant.path not in listed:
                return None
            return (await self._discovery.mutations(configuration, mutant.path)).get(mutant)

        listed = set(modules)
        mutations = []
        for mutant in mutants:
            mutation = await resolve(mutant)
            if mutation is not None and mutation.known is not None:
                yield mutation.known
            elif mutation is not None:
                mutations.append(mutation)
        if not mutations:
            return
        batch = Batch(await self._command(configuration), tuple(modules), mutations, resolve)
        async with contextlib.aclosing(self._pool.run(batch)) as results:
            async for result in results:
                yield result

    async def diagnose(self) -> AsyncGenerator[Finding, None]:
        """The interpreter, cosmic-ray in it, the configuration and its modules; a proposal where there's none."""
        try:
            greeting = await self._discovery.greeting()
        except BridgeError as error:
            text, _, remedy = str(error).partition(": run ")
            yield Finding(False, "cosmic-ray", text, remedy.strip("`") or None)
        else:
            yield Finding(True, "cosmic-ray", f"{greeting['version']} in {self._discovery.python}")
        if find(self._project) is None:
            yield self.absent(self._project)
            return
        try:
            configuration = self._configuration()
            modules = configuration.modules(self._project.root)
        except ConfigurationError as error:
            text, _, remedy = str(error).rpartition(": ")
            yield Finding(False, "configuration", text, remedy)
            return
        text = f"{configuration.file}: {counted(len(modules), 'module')}"
        yield Finding(bool(modules), "configuration", text, _no_modules(modules))
        if configuration.distributor != "local":
            yield Finding(True, "distributor", _distributor_word(configuration))

    async def aclose(self) -> None:
        """End the workers and the discovery."""
        await self._pool.aclose()
        await self._discovery.aclose()

    def _configuration(self) -> Configuration:
        file = find(self._project)
        if file is None:
            raise ConfigurationError(
                f"there is no cosmic-ray.toml in {self._project.root}: `msp-bridge doctor` proposes one"
            )
        configuration = Configuration.read(file)
        if configuration.distributor != "local" and (
            self._seen is None or self._seen.distributor != configuration.distributor
        ):
            log.info("%s", _distributor_word(configuration))
        self._seen = configuration
        return configuration

    async def _command(self, configuration: Configuration) -> TestCommand:
        greeting = await self._discovery.greeting()
        return TestCommand.of(configuration, self._project.root, self._discovery.python, greeting["paths"])


def _distributor_word(configuration: Configuration) -> str:
    name = configuration.distributor
    return f"the distributor {name!r} isn't used: the bridge runs mutants in private copies on this machine"


def _no_modules(modules: Sequence[str]) -> str | None:
    return None if modules else "correct module-path and excluded-modules"

"""CosmicRay: the adapter that takes cosmic-ray's configuration and mutants, and tests them itself."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, Self

from msp_bridge.adapter import (
    BridgeError,
    ConfigurationError,
    Edit,
    Finding,
    Mutant,
    Notice,
    Project,
    Result,
    Scope,
    Setup,
    ToolError,
)
from msp_bridge.concurrency import in_thread
from msp_bridge.phases import DISCOVERING, Phase
from msp_bridge.python_adapter import PythonAdapter, python_setup
from msp_bridge.source import as_discovered, in_comment
from msp_bridge.text import counted

from .configuration import NAMES, REQUIREMENT, CosmicRayConfiguration, find, proposal

if TYPE_CHECKING:
    from msp_bridge.python_engine import TestPlan

    from .command import CommandRunner, TestCommand
    from .discovery import CosmicRayDiscovery

log = logging.getLogger(__name__)

PRAGMA = "# pragma: no mutate"
BASELINE_TIMEOUT_FACTOR = 5.0  # times `timeout` for the run of all tests that measures what each of them runs
BASELINE_START_S = 30.0  # and for the start of pytest


class CosmicRay(PythonAdapter):
    """cosmic-ray on one project. The user's tree is only read: everything that runs, runs in sandboxes.

    Where the test command is pytest, the Python engine tests the mutants; any other command is run as it is, once for
    each mutant. The statuses are those of `cosmic-ray exec`, apart from mutants that are no valid Python (CompileError
    here, killed by cosmic-ray), mutants that its filters skip (Ignored), and mutants that no test runs (NoCoverage).
    """

    name: ClassVar[str] = "cosmic-ray"
    markers: ClassVar[tuple[str, ...]] = ("*.toml",)
    sources: ClassVar[tuple[str, ...]] = ("*.py",)

    parts: ClassVar[tuple[str, ...]] = ("_engine", "_runner", "_discovery")

    def __init__(self, project: Project) -> None:
        super().__init__(project)
        self._seen: CosmicRayConfiguration | None = None

    @classmethod
    def detect(cls, project: Project) -> Self | None:
        """cosmic-ray is set up where there is a TOML file with a table `[cosmic-ray]`."""
        return cls(project) if find(project) is not None else None

    @classmethod
    def absent(cls, project: Project) -> Finding:
        """Proposes a configuration for the project."""
        text = f"there is no cosmic-ray.toml in {project.root}"
        return Finding(False, "cosmic-ray", text, f"write cosmic-ray.toml:\n{proposal(project.root)}")

    @classmethod
    def setup(cls, project: Project) -> Setup | None:
        """Implement `SetsUp.setup`."""
        files = {} if find(project) else {NAMES[0]: proposal(project.root)}
        return python_setup(project, "cosmic_ray", (REQUIREMENT, "pytest"), files)

    @cached_property
    def _discovery(self) -> CosmicRayDiscovery:
        from .discovery import CosmicRayDiscovery  # here, and below: a client that only configures doesn't wait for it

        return CosmicRayDiscovery(self._project)

    @cached_property
    def _runner(self) -> CommandRunner:
        from .command import CommandRunner

        return CommandRunner(self._project)

    def claims(self, path: str) -> bool:
        """Whether `path` is in `module-path` and not in `excluded-modules`."""
        try:
            return (self._seen or self._configuration()).claims(path)
        except ConfigurationError:
            return path.endswith(".py")  # so that `discover` raises the error

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant | Notice, None]:
        """Every work item of `cosmic-ray init`, file by file; items that the filters skip are Ignored when tested."""
        configuration = self._configuration()
        self._engine.prepare_ahead(self.engine_plan)
        paths = [path for path in configuration.modules(self._project.root) if scope.covers(path)]
        phase = Phase(DISCOVERING, len(paths))
        for number, path in enumerate(paths):
            phase.reached(number)
            for mutant in await self._discovery.mutants(configuration, path):
                yield mutant

    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        """Results as the tests end, mutants that need no test first."""
        to_test: list[Mutant] = []
        found = attrgetter("handle.source.digest")
        for mutant in await in_thread(as_discovered, self._project.root, mutants, found):
            if (known := mutant.handle.known_result(mutant)) is None:
                to_test.append(mutant)
            else:
                yield known
        if not to_test:
            return
        command = await self._command()
        as_it_is = command.pytest_arguments is None
        tested = self._runner.test(to_test, command) if as_it_is else self._engine.test(to_test, self.engine_plan)
        async with aclosing(tested) as results:
            async for result in results:
                yield result

    async def ignore(self, mutant: Mutant, reason: str) -> Edit:
        """Implement `IgnoresMutants.ignore`. The filter `pragma_no_mutate` is about the line in which a mutant ends."""
        item, pragma = mutant.handle, f"{PRAGMA}{in_comment(reason, '  # ')}"
        edit = item.source.comment(max(item.start, item.end - 1), pragma)
        if edit is None:
            raise ToolError(
                f"no comment can stand at the end of {mutant.path}:{mutant.location.end.line}",
                "give the expression a line of its own, and list the mutants again",
            )
        return Edit(mutant.path, edit.location, edit.replacement, "every mutant that ends in this line")

    async def test_command(self) -> tuple[str, ...] | None:
        """Implement `HasTestCommand`."""
        return await super().test_command() or (await self._command()).words

    async def diagnose(self) -> AsyncGenerator[Finding, None]:
        """Check all from the interpreter to the engine's first run of the tests; propose a missing configuration."""
        greeting = None
        try:
            greeting = await self._discovery.greeting()
        except BridgeError as error:
            yield Finding.of_error("cosmic-ray", error)
        else:
            yield Finding(True, "cosmic-ray", f"{greeting['version']} in {self._discovery.python}")
        if find(self._project) is None:
            yield self.absent(self._project)
            return
        try:
            configuration = self._configuration()
            modules = configuration.modules(self._project.root)
        except ConfigurationError as error:
            yield Finding.of_error("configuration", error)
            return
        text = f"{configuration.file}: {counted(len(modules), 'module')}"
        remedy = None if modules else "correct module-path and excluded-modules"
        yield Finding(bool(modules), "configuration", text, remedy)
        if configuration.distributor != "local":
            yield Finding(True, "distributor", _on_distributor(configuration))
        if greeting is None or not modules:
            return
        plan = await self.engine_plan()
        if plan is None:
            shown = (await self._command()).shown
            text = f"`{shown}` runs as it is, once for each mutant: it isn't pytest of the project's interpreter"
            yield Finding(True, "tests", text)
            return
        async with aclosing(self._engine.diagnose(plan)) as findings:
            async for finding in findings:
                yield finding

    async def engine_plan(self) -> TestPlan | None:
        """Implement `PythonAdapter.engine_plan`. None where the test command runs as it is."""
        command = await self._command()
        if command.pytest_arguments is None:
            return None
        from msp_bridge.python_engine import TestPlan

        return TestPlan(
            python=command.python,
            arguments=tuple(command.pytest_arguments),
            sources=command.sources,
            limit=(command.limit_s, 1.0),
            remedy=f"select other tests by {command.setting}",
            exit_kills=True,
            baseline_timeout_s=command.limit_s * BASELINE_TIMEOUT_FACTOR + BASELINE_START_S,
        )

    async def _command(self) -> TestCommand:
        from .command import TestCommand

        configuration, root = self._configuration(), self._project.root
        greeting = await self._discovery.greeting()
        return TestCommand.of(configuration, root, self._discovery.python, greeting)

    def _configuration(self) -> CosmicRayConfiguration:
        """The configuration as of now: the file is read for each request. Raises `ConfigurationError`."""
        file = find(self._project)
        if file is None:
            problem = f"there is no cosmic-ray.toml in {self._project.root}"
            raise ConfigurationError(problem, "`msp-bridge doctor` proposes one")
        self._project.check_settings(self.name, (), f"[cosmic-ray] of {file.name}")
        configuration = CosmicRayConfiguration.read(file)
        before = None if self._seen is None else self._seen.distributor
        if configuration.distributor not in ("local", before):
            log.info("%s", _on_distributor(configuration))
        self._seen = configuration
        return configuration


def _on_distributor(configuration: CosmicRayConfiguration) -> str:
    name = configuration.distributor
    return f"the distributor {name!r} isn't used: the bridge tests mutants in sandboxes on this machine"

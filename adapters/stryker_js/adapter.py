"""StrykerJs: the adapter, which has StrykerJS's own server, or its command line, work in private copies."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from msp_bridge import reading
from msp_bridge.adapter import (
    BridgeError,
    Edit,
    Finding,
    Mutant,
    Notice,
    Project,
    Result,
    Scope,
    Setup,
    ShellCommand,
    Status,
    Surroundings,
    ToolError,
)
from msp_bridge.concurrency import LazyParts, in_thread, meanwhile
from msp_bridge.rows import reported_result
from msp_bridge.source import SourceText, above_line, as_discovered, in_comment
from msp_bridge.text import counted, counted_mutants

from .configuration import (
    CODE,
    CORE,
    MUTABLE,
    NAMES,
    NEW_FILE,
    SOURCES,
    as_option,
    config_file,
    configured,
    patterns_of_packages,
)
from .mutants import StrykerJsTestPlan, unknown_option

if TYPE_CHECKING:
    from .discovery import StrykerJsDiscovery
    from .installation import Toolchain
    from .sessions import SessionPool, StrykerJsSession

log = logging.getLogger(__name__)

COMMAND = "a command (`npm test` by default) runs all tests, in new processes for each mutant"


class StrykerJs(LazyParts):
    """StrykerJS on one project: exactly the mutants of the request, each result as soon as it is known.

    Every result is StrykerJS's own. The project's tree is only read: StrykerJS runs in a private copy of it.
    """

    name: ClassVar[str] = "stryker-js"
    markers: ClassVar[tuple[str, ...]] = ("package.json", *NAMES)
    sources: ClassVar[tuple[str, ...]] = tuple(f"*{ending}" for ending in CODE)
    parts: ClassVar[tuple[str, ...]] = ("_sessions",)

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: Toolchain | None = None

    @classmethod
    def detect(cls, project: Project) -> Self | None:
        """Find a configuration file of StrykerJS's, or a package.json that depends on it."""
        return cls(project) if configured(project) else None

    @classmethod
    def absent(cls, project: Project) -> Finding:
        """Implement `Adapter.absent`."""
        from .installation import setup_commands  # here, and below: a client that only configures doesn't wait for it

        text = f"there is no stryker.config.json in {project.root}, and package.json doesn't ask for {CORE}"
        by_init = ShellCommand("msp-bridge init") if cls.setup(project) is not None else None
        return Finding(False, "stryker-js", text, by_init or setup_commands(project.root))

    @classmethod
    def setup(cls, project: Project) -> Setup | None:
        """Implement `SetsUp.setup`: StrykerJS, its plugin for the test runner, and what configures them."""
        from .first_configuration import first_configuration, plugin_of
        from .installation import checkout_command, lacking_packages

        root = project.root
        file, plugin = config_file(project), plugin_of(root)
        configuration = {} if file else first_configuration(root)
        if configuration is None:
            return None
        uses_plugin = file is None or f"{plugin}" in reading.text_or_empty(file)
        return Setup(
            lacking_packages(root, plugin if uses_plugin else None),
            {NEW_FILE: f"{json.dumps(configuration, indent=2)}\n"} if configuration else {},
            toolchain="node",
            checkout=(checkout_command(root),),
        )

    @cached_property
    def _discovery(self) -> StrykerJsDiscovery:
        from .discovery import StrykerJsDiscovery

        return StrykerJsDiscovery(self._project)

    @cached_property
    def _sessions(self) -> SessionPool:
        from .sessions import SessionPool

        return SessionPool(self._project)

    def threshold(self) -> float | None:
        """Implement `HasThreshold.threshold`."""
        return self._discovery.threshold

    async def test_command(self) -> tuple[str, ...] | None:
        """Implement `HasTestCommand`: the packages' own, whatever runs their tests."""
        return ("npm", "test")

    def claims(self, path: str) -> bool:
        """JavaScript, TypeScript, and what they are embedded in; which of them are mutated, the configuration says.

        Without one, files that StrykerJS mutates by default.
        """
        folders = path.split("/")
        could_be = path.endswith(MUTABLE) and "node_modules" not in folders
        return could_be and (folders[0] in SOURCES or config_file(self._project) is not None)

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant | Notice, None]:
        """Implement `Adapter.discover`."""
        if scope.paths is not None and not any(path.endswith("/") or self.claims(path) for path in scope.paths):
            return
        async with self._sessions.lease(await self._toolchain()) as session:
            found = await self._discovery.find(session, scope)
        for mutant in found:
            yield mutant

    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        """Implement `Adapter.test`. Mutants that StrykerJS ignores come first."""
        if not mutants:
            return
        paths = frozenset(mutant.path for mutant in mutants)
        async with self._sessions.lease(await self._toolchain(), paths) as session:
            due = []
            for mutant in as_discovered(session.sandbox.path, mutants):
                if mutant.handle.ignored is not None:
                    yield Result(mutant, Status.IGNORED, status_reason=mutant.handle.ignored)
                else:
                    due.append(mutant)
            key = (paths, session.depends_on)
            if (failure := self._sessions.failures.of(key)) is None:
                with self._sessions.failures.noted(key):
                    async with aclosing(session.isolation.run(partial(self._tested, session, due))) as results:
                        async for result in results:
                            yield result
        if due and failure is not None:  # here, for StrykerJS stays warm
            raise failure

    async def ignore(self, mutant: Mutant, reason: str) -> Edit:
        """Implement `IgnoresMutants.ignore`. The comment goes above an expression or statement."""
        source = SourceText.read(self._project.root / mutant.path)
        comment = f"// Stryker disable next-line {mutant.mutator}{in_comment(reason, ': ')}"
        effect = f"every {mutant.mutator} mutant that begins in the line below the comment"
        return above_line(mutant.path, source, mutant.location.start.line, comment, effect)

    async def _tested(
        self, session: StrykerJsSession, mutants: Sequence[Mutant], isolated: bool
    ) -> AsyncGenerator[Result, None]:
        """Their results. StrykerJS that crashes is started again, once, for mutants that have none."""
        await session.isolate(isolated)
        due = {mutant: mutant for mutant in as_discovered(session.sandbox.path, mutants)}
        for attempt in (1, 2):
            if not due:
                return
            plan = StrykerJsTestPlan(tuple(due))
            jobs = max(1, min(self._project.jobs, len(due)))
            process = await session.process(plan, jobs)
            try:
                async with aclosing(process.test(plan, jobs)) as results:
                    async for reported, raw in results:
                        if (mutant := due.pop(reported, None)) is not None:
                            yield reported_result(mutant, raw)
            except ToolError as error:
                if attempt == 2 or not process.crashed:
                    raise
                missing = counted(len(due), "mutant")
                log.warning("%s; it is started again for %s that had no result", error.problem, missing)
                await session.end_process()
            else:
                return

    async def surroundings(self) -> Surroundings | None:
        """Implement `ReportsSurroundings`. Packages count by name and version, a workspace around it by its files."""
        from .workspace import surroundings_of

        tools = await self._toolchain()
        packages, trees = await in_thread(surroundings_of, self._project)
        return Surroundings(
            {"node": tools.node.version, "stryker": tools.installation.version, "packages": packages}, trees
        )

    async def diagnose(self) -> AsyncGenerator[Finding, None]:
        """Check all from the installation to the mutants; stop at the first thing that is wrong. Runs no test."""
        from .failures import faster_runner
        from .installation import install_command, package_manager

        manager, install = package_manager(self._project.root), install_command(self._project.root)
        try:
            tools = await self._toolchain()
        except BridgeError as error:
            yield Finding.of_error("stryker-js", error)
            return
        installation, node = tools.installation, tools.node
        way = "served" if installation.serves else "by its command line; from 9.3 on it stays warm between requests"
        yield Finding(True, "stryker-js", f"{installation.version} in {installation.directory}, {way}")
        yield Finding(True, "node", f"{node.version} ({node.program})")
        yield Finding(True, "packages", f"installed with {manager} (`{install} <package>`)")
        file, defaults = config_file(self._project), "no stryker.config.json: StrykerJS works with its defaults"
        yield Finding(True, "configuration", defaults if file is None else str(file))
        try:
            async with self._sessions.lease(tools) as session:
                listing = await self._discovery.list(session, anew=True)
                found = await self._discovery.find(session, Scope())
        except BridgeError as error:
            yield Finding.of_error("mutants", error)
            return
        for option, remedy in listing.unknown.items():
            yield Finding(False, "configuration", unknown_option(option), remedy)
        if listing.missing_runner is not None:
            yield Finding.of_error("test runner", listing.missing_runner)
        elif listing.runner == "command":
            yield Finding(True, "test runner", COMMAND, faster_runner(self._project.root))
        yield Finding(True, "isolation", self._sessions.isolation.description)
        mutants = [mutant for mutant in found if isinstance(mutant, Mutant)]
        ignored = sum(mutant.handle.ignored is not None for mutant in mutants)
        text = counted_mutants(mutants) + (f", {ignored} of them ignored" if ignored else "")
        if not mutants and listing.patterns:
            text += f"; the option `mutate` is {', '.join(listing.patterns)}"
        to_do = None if mutants else await in_thread(self._files_to_mutate)
        yield Finding(bool(mutants), "mutants", text, to_do)

    async def _toolchain(self) -> Toolchain:
        """Find the toolchain, and ask meanwhile what the machine permits: both start a process the first time."""
        from .installation import Toolchain

        async with meanwhile(self._sessions.isolation.probe(), "probe of isolation") as probing:
            self._known = await Toolchain.find(self._project, self._known)
            await probing
        return self._known

    def _files_to_mutate(self) -> str:
        """The remedy where nothing is mutated: a pattern for each package, where there are some below."""
        from msp_bridge.toolkit import walk

        root = self._project.root
        files = (Path(directory, name) for directory, _, names in walk(root) for name in names)
        patterns = patterns_of_packages(root, (file.relative_to(root).as_posix() for file in files))
        if patterns:
            return as_option("mutate", patterns)
        return "set `mutate` in StrykerJS's configuration to the files to mutate"

"""Builds: private copies of the project that Maven has compiled, shared by the requests of one state of the files.

Theory of operation
-------------------
A copy belongs to one state of the project's files. A request takes the copy that is as the project is now; if there is
none, the one that no request uses is brought up to date and compiled, or another one is claimed. So a request that
began before an edit keeps the class files that it began with.

Compiled files of an earlier state are deleted first. Maven compares times, and a file may be replaced by an older one.
What a build makes (`target`) is not copied from the user's tree, nor put back when a copy is brought up to date. Where
a pom names another directory, which is known only then, all is compiled once more, without the user's own build. Where
all is as it was, the next bridge takes what this one has compiled (`compiled`).

For each module that is needed a host (`host`) runs beside the copy, for as long as the files are the same.
"""

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path

from attrs import define, field

from msp_bridge.adapter import ConfigurationError, Project, ToolError
from msp_bridge.concurrency import in_thread, shields
from msp_bridge.toolkit import Sandbox, WarmSandbox
from msp_bridge.toolkit.kept_answers import KeptAnswers

from .compiled import CompiledCopy
from .host import Host
from .installation import poms
from .kept import KeptCoverage
from .maven import Module, compile_modules
from .outside import Outside
from .testers import World
from .tool import Tools

EFFECTIVE_POM = "effective-pom.xml"
QUOTATION_MARKS = frozenset("'\"")  # from 1.19 on its JVMs, which read their class path from a file, find nothing there
TARGET = "target"  # the directory that Maven builds in, as long as no pom says otherwise


@define(eq=False)
class Build:
    """The modules of a compiled copy, and their hosts. Ended by its `WarmProcess`."""

    copy: Sandbox
    tools: Tools
    answers: KeptAnswers
    modules: tuple[Module, ...]
    outside: Outside
    temporary: Path
    world: World
    named: tuple[str, ...]  # variables that the tests read, as the user says
    closed: bool = False
    _hosts: dict[str, Host] = field(factory=dict, init=False)
    _starting: asyncio.Lock = field(factory=asyncio.Lock, init=False)

    @property
    def root(self) -> Path:
        """The root of the copy."""
        return self.copy.path

    @property
    def pom(self) -> Path:
        """The effective pom of all modules."""
        return self.temporary / EFFECTIVE_POM

    async def host(self, module: Module) -> Host:
        """Return the host of `module`; raises `ToolError`."""
        async with self._starting:
            if self.closed:
                raise ToolError("PIT was ended", "try again")
            host = self._hosts.get(module.name)
            if host is None or host.closed:
                tool = await self.tools.of(module)
                fails = module.configuration.flags["skipFailingTests"]
                world = World(self.world.copy, self.world.project, is_real=True) if fails else self.world
                parts = await world.parts()
                keeping = partial(KeptCoverage.of, self.answers, self.copy, self.pom, module, tool, parts, self.named)
                kept = await in_thread(keeping)
                host = self._hosts[module.name] = await Host.start(module, tool, self.temporary, world, kept)
            return host

    async def end_measuring(self) -> None:
        """End hosts that run tests, for a request that is over: the files are about to change."""
        await asyncio.gather(*(host.close() for host in self._hosts.values() if host.measured.running))

    @shields
    async def close(self) -> None:
        """End the hosts."""
        self.closed = True
        async with self._starting:
            await asyncio.gather(*(host.close() for host in self._hosts.values()))
        await in_thread(shutil.rmtree, self.temporary, True)


@define(eq=False)
class _Copy:
    warm: WarmSandbox[Sandbox, Build]
    requests: int = 0  # that use it

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1


class Builds:
    """All copies of one project in this bridge. One that no request uses is kept for the next one."""

    def __init__(self, project: Project, version: str | None) -> None:
        self._root = project.root.resolve()
        self._cache = project.cache
        self._claim = partial(Sandbox.claim, self._cache, self._root, left_out=frozenset({TARGET}))
        self._version, self._named = version, project.environment
        self._tools, self._answers = Tools(project.cache / "pit"), KeptAnswers.of(project.cache)
        self._copies: list[_Copy] = []  # the last one is as the files were when they were last seen
        self._preparing = asyncio.Lock()
        self._worlds: dict[Path, World] = {}  # by copies

    @contextlib.asynccontextmanager
    async def current(self) -> AsyncIterator[Build]:
        """The build of the files as they are now. Raises `ToolError` when they don't compile, `ConfigurationError`."""
        try:
            with contextlib.ExitStack() as use:
                async with self._preparing:
                    warm = await self._up_to_date(use)
                    build = await warm.process.get(partial(self._compiled, warm.sandbox), warm.sandbox.digest)
                yield build
        finally:
            await self._close_surplus()

    async def _up_to_date(self, use: contextlib.ExitStack) -> WarmSandbox[Sandbox, Build]:
        for copy in self._copies[:]:
            with copy.used():
                if await in_thread(copy.warm.sandbox.is_current) and not await _is_outdated(copy):
                    use.enter_context(copy.used())
                    return copy.warm
        copy = next((copy for copy in self._copies if not copy.requests), None) or await self._claimed()
        use.enter_context(copy.used())
        self._copies = [*(other for other in self._copies if other is not copy), copy]
        copy.warm.sandbox.overlaid |= await in_thread(targets, self._root)
        if (build := copy.warm.process.current) is not None:
            await build.end_measuring()
            if await _is_outdated(copy):
                await copy.warm.process.close()
        await copy.warm.refresh()
        return copy.warm

    async def _claimed(self) -> _Copy:
        if not QUOTATION_MARKS.isdisjoint(str(self._cache)):
            problem = f"PIT finds no tests through {self._cache}, whose name has a quotation mark"
            is_ours = QUOTATION_MARKS.isdisjoint(self._root.name)  # else the cache has it from there
            remedy = "set MSP_BRIDGE_CACHE to a directory without one" if is_ours else f"rename {self._root}"
            raise ConfigurationError(problem, remedy)
        await in_thread(lambda: self._copies.append(_Copy(WarmSandbox(self._claim()))))
        return self._copies[-1]

    @shields
    async def _close_surplus(self) -> None:
        surplus = [copy for copy in self._copies if not copy.requests][:-1]
        self._copies = [copy for copy in self._copies if copy not in surplus]
        for copy in surplus:
            await copy.warm.close()

    async def _compiled(self, sandbox: Sandbox) -> Build:
        temporary = Path(tempfile.mkdtemp(prefix="msp-bridge-"))
        try:
            copy = CompiledCopy(self._answers, sandbox, temporary / EFFECTIVE_POM, self._version)
            modules = await copy.modules()
            if modules is None:
                modules = await self._compiled_anew(copy)
            outside = await in_thread(Outside.of, sandbox.path.resolve(), copy.pom, modules)
        except BaseException:
            await in_thread(shutil.rmtree, temporary, True)
            raise
        if sandbox.path not in self._worlds:
            self._worlds[sandbox.path] = World(sandbox.path, self._root)
        world = self._worlds[sandbox.path]
        return Build(sandbox, self._tools, self._answers, modules, outside, temporary, world, self._named)

    async def _compiled_anew(self, copy: CompiledCopy) -> tuple[Module, ...]:
        modules = await self._compiled_without(copy, {TARGET, *copy.sandbox.overlaid})
        if stale := await in_thread(built_by_the_user, copy.sandbox, modules):
            return await self._compiled_without(copy, stale)
        await in_thread(copy.save, modules)
        return modules

    async def _compiled_without(self, copy: CompiledCopy, places: Collection[str]) -> tuple[Module, ...]:
        for place in places:
            await in_thread(shutil.rmtree, copy.sandbox.path / place, True)
        return await compile_modules(copy.sandbox.path, copy.pom, self._version)

    @shields
    async def aclose(self) -> None:
        """End all hosts, and let other bridges have the copies."""
        await asyncio.gather(*(copy.warm.close() for copy in self._copies))
        self._copies.clear()


async def _is_outdated(copy: _Copy) -> bool:
    """Whether something has changed that its build depends on beside the project's files."""
    build = copy.warm.process.current
    return build is not None and not await in_thread(build.outside.is_current)


def targets(root: Path) -> set[str]:
    """Where Maven builds the modules below `root`. Blocks."""
    found = (os.path.relpath(directory, root) for directory, _ in poms(root))
    return {f"{directory}/{TARGET}/" for directory in found if directory != os.curdir}


def built_by_the_user(sandbox: Sandbox, modules: Iterable[Module]) -> set[str]:
    """Where Maven builds in the copy beside `target`, and the user has files of an earlier build. Blocks."""
    root, found = sandbox.path.resolve(), set[str]()
    for configuration in (module.configuration for module in modules):
        for place in (configuration.built, configuration.classes, configuration.test_classes):
            if place.is_relative_to(root) and not configuration.directory.is_relative_to(place):
                found.add(f"{place.relative_to(root).as_posix()}/")
    kept = tuple(f"{name}/" for name in sandbox.left_out)
    beside = {name for name in found if not (name.startswith(kept) or sandbox.is_overlaid(name))}
    return {name for name in beside if any(file.startswith(name) for file in sandbox.records)}

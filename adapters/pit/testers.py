"""Testers: JVMs that test mutants, and World: what a JVM that runs tests can reach, which goes with it.

Where Linux permits namespaces each tester (`testers`) runs in a world of its own, and the host (`host`) in one with the
JVMs that it starts. What they write into the copy of the project, the user's tree, the home directory or among
temporary files is dropped when they end, and their processes end with them. They have the machine's network.

Which parts are on: the most that the tests without a mutant pass in. Where what they cover is known they are not run,
so it is kept for these parts alone. With `skipFailingTests` nothing shows that a test fails inside: all run outside.

A tester is used again as long as it says that the mutant has changed nothing beyond its loader. It is ended when the
request of its mutant is cancelled.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from msp_bridge import reading
from msp_bridge.adapter import ToolError
from msp_bridge.concurrency import in_thread
from msp_bridge.toolkit import Around, Isolation, JsonLinesProcess, PrivateDirectory, SandboxPool, WarmSandbox

from .installation import java
from .maven import Module
from .tool import Tool

NAME = "a JVM of PIT's tests"
MUTANTS = 100  # of one JVM, whose memory may grow
MUTATED = "mutated"  # a directory
LOADER = "-Djava.system.class.loader=SystemLoader"
SHELL = ("sh", "-c", 'exec "$@" 3>&1 >&2', "sh")  # a test may write to descriptor 1
OF_FRAMEWORK = re.compile(r"/(?:org/(?:junit|hamcrest|opentest4j|apiguardian|testng)|junit/junit)/")
OF_TESTNG = re.compile(r"/(?:com/beust/jcommander|org/slf4j/slf4j-api|org/apache-extras/beanshell|com/google/inject)/")
UNCOVERED = re.compile(  # what may run code without coverage; `exec` is of Runtime, and a part of libraries' names
    rb"java/lang/ProcessBuilder|\x01\0\x04exec|/exec/|jupiter/api/AfterAll"
)
NATIVE = re.compile(rb"loadLibrary")  # a library can be loaded by one class loader of a JVM


@define
class World:
    """The worlds for one copy of the project."""

    copy: Path
    project: Path  # the user's tree
    is_real: bool = False  # nothing is isolated
    isolation: Isolation = field(init=False)
    _deciding: asyncio.Lock = field(factory=asyncio.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self.isolation = Isolation.of("PIT's tests", self.copy, network=True, home=True)
        if self.is_real:
            self.isolation = Isolation("PIT's tests", self.isolation.root, ())

    async def command(
        self, argv: Sequence[str], home: Path, share: Sequence[Path] = ()
    ) -> tuple[Sequence[str], frozenset[str]]:
        """Return the arguments that run `argv` in a new world, as far as there can be one, and the parts of that.

        `home` is private; `share`: directories that stay the real ones.
        """
        parts = await self.parts()
        if not parts:
            return argv, parts
        around = Around([], outside=[] if self.copy.is_relative_to(self.project) else [self.project])
        isolation = self.isolation
        return await in_thread(isolation.command, isolation.root, argv, share, home, around), parts

    async def parts(self) -> frozenset[str]:
        """The parts that are wanted now."""
        await self.isolation.probe()
        return self.isolation.wanted

    async def drops_writes(self) -> bool:
        """Whether what is written into the copy is dropped."""
        return "overlay" in await self.parts() and "overlay" not in self.isolation.refused

    async def decide(self, passes: Callable[[], Awaitable[bool]]) -> bool:
        """Find the most parts with which the tests without a mutant pass, one module at a time."""
        async with self._deciding:
            return await self.isolation.decide(passes)


@frozen
class Launch:
    """How a tester is started."""

    argv: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]

    @classmethod
    def of(cls, module: Module, tool: Tool, class_path: Sequence[str], jvm_arguments: Sequence[str]) -> Launch:
        """`class_path` is all that the tests see; of it, the tool and the test framework are loaded once in a JVM.

        What the framework needs is loaded for it, and for the project once more.
        """
        framework = [entry for entry in module.class_path if OF_FRAMEWORK.search(entry)]
        shared = {*framework, *tool.class_path} - ({*module.class_path} - {*framework})
        own = [entry for entry in class_path if entry not in shared]
        needed = [entry for entry in module.class_path if OF_TESTNG.search(entry)]
        parent = os.pathsep.join([str(tool.program), *framework, *needed, *tool.class_path])
        argv = (java(), *jvm_arguments, LOADER, "-cp", parent)
        paths = (os.pathsep.join(own), os.pathsep.join(class_path))
        configuration = module.configuration
        return cls((*SHELL, *argv, "Tester", *paths), configuration.directory, configuration.environment)


@define(eq=False)
class Testers:
    """The testers of one module in one state of its files. Cancelling: `test` ends the tester of its mutant."""

    launch: Launch
    world: World
    _places: SandboxPool[PrivateDirectory, JsonLinesProcess] = field(
        factory=lambda: SandboxPool(PrivateDirectory), init=False
    )
    _closed: bool = field(default=False, init=False)

    async def test(self, arguments: str, **question: Any) -> dict[str, Any]:
        """Test the mutant that `arguments` of PIT's minion are for. No "status": a JVM of its own must decide.

        Then "error" says why, if it was an error. The `question` may ask for more: see `programs/Tester.java`.
        Raises `ToolError` when the testers were closed.
        """
        try:
            async with self._places.lease() as tester:
                process = await tester.process.get(partial(self._started, tester))
                answer = await process.ask({"arguments": arguments, **question})
                tester.noted += 1
                if answer["changed"] or tester.noted == MUTANTS:
                    await tester.process.close()
                return answer
        except ToolError as error:  # it could not be started, or has ended
            if self._closed:
                raise
            return {"error": error.problem}

    async def _started(self, tester: WarmSandbox[PrivateDirectory, JsonLinesProcess]) -> JsonLinesProcess:
        await tester.refresh()
        tester.noted = 0  # mutants that it has tested
        dropped = await self.world.drops_writes()
        mutated = () if dropped else (str(tester.sandbox.path / MUTATED),)
        argv, _ = await self.world.command((*self.launch.argv, *mutated), tester.sandbox.path)
        directory, environment = self.launch.directory, self.launch.environment
        return await JsonLinesProcess.start(argv, name=NAME, cwd=directory, env=environment)

    async def close(self) -> None:
        """End all testers."""
        self._closed = True
        await self._places.aclose()


def has_class(pattern: re.Pattern[bytes], *directories: Path) -> bool:
    """Whether a class file below `directories` has the `pattern`. Blocks."""
    files = (file for directory in directories for file in directory.rglob("*.class"))
    return any(pattern.search(reading.content(file)) for file in files)

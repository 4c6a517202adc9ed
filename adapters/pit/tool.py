"""Calls of Maven, and Tool: the class path of PIT and its plug-ins for a module, and our own program, compiled once."""

import asyncio
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from xml.sax.saxutils import escape

from attrs import define, field, frozen

from msp_bridge import reading
from msp_bridge.adapter import ConfigurationError, ToolError
from msp_bridge.concurrency import in_thread
from msp_bridge.phases import report_phase
from msp_bridge.processes import ProcessTree

from .configuration import Artifact, ModuleConfiguration, configurations
from .installation import java, maven

COMPILING = "compiling with Maven"
RESOLVING = "resolving PIT with Maven"
QUICK_START = "-XX:TieredStopAtLevel=1"  # half of Maven's CPU time is its own JIT compiler's
CLASS_PATH = ".msp-bridge-class-path"  # in the directory of each module of the copy
# What it says when something is not in the local repository, as far as one can know without the network.
SAYS_ABSENT = re.compile(r"offline mode|No plugin found for prefix|has not been downloaded|is not accessible \(offline")
ESCAPES = re.compile(r"\x1b\[[\d;]*m")  # it writes some even without colours
LOGGED = "[ERROR] "
HEADING = "COMPILATION ERROR"
SUMMARY = "Failed to execute goal"  # says again what went wrong, and then how to see more
MAVEN_CHARS = 1200  # of what it prints, in an error message
TOOL_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>msp-bridge</groupId><artifactId>pit</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
PROGRAMS = Path(__file__).parent / "programs"
PLATFORM = re.compile(r"junit-platform-engine-([\w.-]+)\.jar$")
JUNIT5_PLUGIN = Artifact("org.pitest", "pitest-junit5-plugin", "1.2.1")
SHOWN_CHARS = 600


@frozen
class Module:
    """A compiled module of the copy at `root`."""

    name: str  # its directory relative to the root, with `/`; "" for the root
    configuration: ModuleConfiguration
    class_path: tuple[str, ...]  # of its dependencies, for tests


async def compile_modules(root: Path, pom: Path, version: str | None) -> tuple[Module, ...]:
    """Compile classes and tests of the copy at `root`; raises `ToolError`, `ConfigurationError`.

    `pom` becomes the effective pom. `version` is that of PIT where no pom names it.
    """
    report_phase(COMPILING)
    # The pom first: plug-ins set properties while they run, which may have names that are none in XML.
    goals = ("help:effective-pom", "test-compile", "dependency:build-classpath")
    await run(root, goals[1], *goals, f"-Doutput={pom}", f"-Dmdep.outputFile={CLASS_PATH}", "-Dmdep.pathSeparator=:")
    return await in_thread(_modules, root.resolve(), pom, version)


def _modules(root: Path, pom: Path, version: str | None) -> tuple[Module, ...]:
    found = []
    for configuration in configurations(reading.text(pom), version):
        name = configuration.directory.resolve().relative_to(root).as_posix()
        class_path = reading.text_or_empty(configuration.directory / CLASS_PATH).strip()
        entries = tuple(entry for entry in class_path.split(":") if entry)
        found.append(Module("" if name == "." else name, configuration, entries))
    return tuple(found)


async def tool_class_path(directory: Path, artifacts: Sequence[Artifact]) -> tuple[str, ...]:
    """The class path of `artifacts` and what they need; `directory` is empty and gets a pom. Raises `ToolError`."""
    report_phase(RESOLVING)
    dependencies = "".join(DEPENDENCY.format(*map(escape, (each.group, each.name, each.version))) for each in artifacts)
    await in_thread((directory / "pom.xml").write_text, TOOL_POM.format(dependencies=dependencies), "utf-8")
    goal = "dependency:build-classpath"
    await run(directory, goal, goal, f"-Dmdep.outputFile={CLASS_PATH}", "-Dmdep.pathSeparator=:")
    return tuple((await in_thread(reading.text, directory / CLASS_PATH)).strip().split(":"))


async def run(root: Path, what: str, *arguments: str, heard: Callable[[bytes], object] = lambda _: None) -> None:
    """Run Maven in `root`; `heard` gets what it prints. Raises `ToolError`, in which the goals are called `what`."""
    problem = await _problem(root, heard, "-o", *arguments)
    if problem is not None and SAYS_ABSENT.search(problem):
        problem = await _problem(root, heard, *arguments)
    if problem is not None:
        raise ToolError(f"`mvn {what}` fails: {shown(problem, root)}", "correct what it says")


def shown(printed: str, root: Path) -> str:
    """Shorten what Maven has `printed` about the copy at `root` to its errors, without advice."""
    printed = ESCAPES.sub("", printed)
    lines = [line.partition(LOGGED)[2].strip() for line in printed.splitlines() if LOGGED in line]  # or after progress
    lines = [line for line in lines if not line.startswith(HEADING)]
    end = next((at for at, line in enumerate(lines) if line.startswith(SUMMARY)), len(lines))
    text = " ".join(lines[:end] or lines[end:] or printed.split())
    return text.replace(f"{root.resolve()}{os.sep}", "").replace(f"{root}{os.sep}", "")[:MAVEN_CHARS]


async def _problem(root: Path, heard: Callable[[bytes], object], *arguments: str) -> str | None:
    """Return what Maven prints if it fails."""
    options = f"{QUICK_START} {os.environ.get('MAVEN_OPTS', '')}"
    argv = [maven(root), "--batch-mode", "--quiet", "-Dstyle.color=never", *arguments]
    async with ProcessTree.running(argv, cwd=root, env={"MAVEN_OPTS": options}) as tree:
        printed = bytearray()
        while piece := await tree.read():
            printed = (printed + piece)[: 1 << 20]
            heard(piece)
        if await tree.exited() == 0:
            return None
        return printed.decode("utf-8", "replace") + tree.errors


@frozen
class Tool:
    """PIT for one module."""

    class_path: tuple[str, ...]  # of PIT and its plug-ins
    program: Path  # a directory of class files


def artifacts(module: Module) -> tuple[Artifact, ...]:
    """Name what makes up PIT for `module`; raises `ConfigurationError` when a plug-in for its tests is missing.

    A project whose pom doesn't have PIT gets the plug-in for JUnit 5 if it needs it.
    """
    configuration = module.configuration
    found = [Artifact("org.pitest", "pitest-entry", configuration.version), *configuration.plugins]
    names = [Path(entry).name for entry in module.class_path]
    platform = next((match[1] for match in map(PLATFORM.search, names) if match), None)
    if platform is not None:
        if not any(each.name == JUNIT5_PLUGIN.name for each in configuration.plugins):
            if configuration.in_pom and not any(name.startswith("junit-4.") for name in names):
                raise ConfigurationError(
                    "the tests are of JUnit 5, and pitest-maven has no plug-in for it",
                    f"add {JUNIT5_PLUGIN.group}:{JUNIT5_PLUGIN.name} to the <dependencies> of pitest-maven",
                )
            found += [] if configuration.in_pom else [JUNIT5_PLUGIN]
        if not any(name.startswith("junit-platform-launcher-") for name in names):
            found.append(Artifact("org.junit.platform", "junit-platform-launcher", platform))
    return tuple(dict.fromkeys(found))


@define
class Tools:
    """The tools of one project, kept in `directory`."""

    directory: Path
    _turn: asyncio.Lock = field(factory=asyncio.Lock, init=False)

    async def of(self, module: Module) -> Tool:
        """Return PIT for `module`, resolved and compiled when it isn't kept; raises `ToolError`."""
        wanted = artifacts(module)
        async with self._turn:
            key = await in_thread(_key, wanted)
            tool = await in_thread(self._kept, key)
            return tool or await self._made(key, wanted)

    def _kept(self, key: str) -> Tool | None:
        place = self.directory / key
        try:
            entries = reading.json_value(place / "class-path.json")
        except (OSError, ValueError):
            return None
        whole = all(Path(entry).is_file() for entry in entries)  # Maven's repository may have been cleaned
        return Tool(tuple(entries), place / "classes") if whole else None

    async def _made(self, key: str, wanted: Sequence[Artifact]) -> Tool:
        await in_thread(partial(self.directory.mkdir, parents=True, exist_ok=True))
        fresh = Path(tempfile.mkdtemp(prefix="new-", dir=self.directory))
        try:
            class_path = await tool_class_path(fresh, wanted)
            await self._compile(class_path, fresh / "classes")
            await in_thread((fresh / "class-path.json").write_text, json.dumps(class_path), "utf-8")
            if await in_thread(self._kept, key) is None:  # else another bridge runs it already
                await in_thread(_replace, fresh, self.directory / key)
        finally:
            await in_thread(shutil.rmtree, fresh, True)
        return Tool(class_path, self.directory / key / "classes")

    async def _compile(self, class_path: Sequence[str], target: Path) -> None:
        argv = [java("javac"), f"-J{QUICK_START}", "--release", "11", "-proc:none", "-cp", ":".join(class_path)]
        async with ProcessTree.running([*argv, "-d", str(target), *map(str, sources())], cwd=self.directory) as tree:
            while await tree.read():
                pass
            if await tree.exited() != 0:
                name = next((Path(entry).stem for entry in class_path if "/pitest-entry/" in entry), "PIT")
                printed = tree.first_errors.strip()[:SHOWN_CHARS]
                raise ToolError(
                    f"the bridge can't work with {name}: {printed}", "use PIT 1.17 to 1.25, and JDK 11 or newer"
                )


def sources() -> list[Path]:
    """The files of our program."""
    return sorted(PROGRAMS.glob("*.java"))


def _key(wanted: Sequence[Artifact]) -> str:
    text = json.dumps([[str(each) for each in wanted], [reading.digest(file) for file in sources()]])
    return reading.digest_of(text.encode())


def _replace(fresh: Path, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    fresh.rename(place)

"""Calls of Maven, in a private copy of the project: without the network first, and with it if something is missing."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from attrs import frozen

from msp_bridge import reading
from msp_bridge.adapter import ToolError
from msp_bridge.concurrency import in_thread
from msp_bridge.phases import report_phase
from msp_bridge.processes import ProcessTree

from .configuration import Artifact, ModuleConfiguration, configurations
from .installation import maven

COMPILING = "compiling with Maven"
READING = "reading the poms with Maven"
RESOLVING = "resolving PIT with Maven"
QUICK_START = "-XX:TieredStopAtLevel=1"  # half of Maven's CPU time is its own JIT compiler's
# They fail in a copy: it has no version control for what puts the commit's name into the build, and has files of ours
# without the head that RAT wants.
SKIP_PLUGINS = ("-Dmaven.gitcommitid.skip=true", "-Dmaven.buildNumber.skip=true", "-Drat.skip=true")
POM_GOAL = "help:effective-pom"
CLASS_PATH = ".msp-bridge-class-path"  # in the directory of each module of the copy
# What it says when something is not in the local repository, as far as one can know without the network.
SAYS_ABSENT = re.compile(r"offline mode|No plugin found for prefix|has not been downloaded|is not accessible \(offline")
ESCAPES = re.compile(r"\x1b\[[\d;]*m")  # it writes some even without colours
# It may stand behind progress. The compiler names what it "cannot find" in a line of its own.
ERROR = re.compile(r"\[ERROR\] (.*)|^ +symbol: +(.*)", re.MULTILINE)
HEADING = "COMPILATION ERROR"
SUMMARY = "Failed to execute goal"  # says again what went wrong, and then how to see more
SHOWN_CHARS = 1200  # of what it prints, in an error message
TOOL_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>msp-bridge</groupId><artifactId>pit</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


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
    goals = (POM_GOAL, "test-compile", "dependency:build-classpath")
    await run(root, goals[1], *goals, f"-Doutput={pom}", f"-Dmdep.outputFile={CLASS_PATH}", "-Dmdep.pathSeparator=:")
    return await in_thread(modules_of, root.resolve(), pom, version)


async def read_poms(root: Path, pom: Path) -> None:
    """Have `pom` become the effective one of the project at `root`, and nothing be compiled; raises `ToolError`."""
    report_phase(READING)
    await run(root, POM_GOAL, POM_GOAL, f"-Doutput={pom}")


def modules_of(root: Path, pom: Path, version: str | None) -> tuple[Module, ...]:
    """Find the modules of the compiled copy at `root`; raises `ConfigurationError`. Blocks."""
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
    lines = [(error or symbol).strip() for error, symbol in ERROR.findall(printed)]
    lines = [line for line in lines if not line.startswith(HEADING)]
    end = next((at for at, line in enumerate(lines) if line.startswith(SUMMARY)), len(lines))
    text = " ".join(lines[:end] or lines[end:] or printed.split())
    return text.replace(f"{root.resolve()}{os.sep}", "").replace(f"{root}{os.sep}", "")[:SHOWN_CHARS]


async def _problem(root: Path, heard: Callable[[bytes], object], *arguments: str) -> str | None:
    """Return what Maven prints if it fails."""
    options = f"{QUICK_START} {os.environ.get('MAVEN_OPTS', '')}"
    argv = [maven(root), "--batch-mode", "--quiet", "-Dstyle.color=never", *SKIP_PLUGINS, *arguments]
    async with ProcessTree.running(argv, cwd=root, env={"MAVEN_OPTS": options}) as tree:
        printed = bytearray()
        while piece := await tree.read():
            printed = (printed + piece)[: 1 << 20]
            heard(piece)
        if await tree.exited() == 0:
            return None
        return printed.decode("utf-8", "replace") + tree.errors

"""Tool: the class path of PIT and its plug-ins for one module, and our own program for it, compiled once."""

import asyncio
import json
import re
import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from attrs import define, field, frozen

from msp_bridge import reading
from msp_bridge.adapter import ConfigurationError, ToolError
from msp_bridge.concurrency import in_thread
from msp_bridge.processes import ProcessTree

from .configuration import Artifact
from .installation import java
from .maven import QUICK_START, Module, tool_class_path

PROGRAMS = Path(__file__).parent / "programs"
PLATFORM = re.compile(r"junit-platform-engine-([\w.-]+)\.jar$")
JUNIT5_PLUGIN = Artifact("org.pitest", "pitest-junit5-plugin", "1.2.1")
SHOWN_CHARS = 600


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

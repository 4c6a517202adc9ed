"""Discovery: mutmut's mutants of the files as they are now, from a warm process that runs nothing of the project."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from hashlib import blake2b
from pathlib import Path

from attrs import frozen

from msp_bridge.adapter import Mutant, Scope, ToolError
from msp_bridge.reading import content
from msp_bridge.source import BOM, SourceText
from msp_bridge.toolkit import identity

from .channel import Answer, Channel, ChannelClosed
from .settings import place_of_options

log = logging.getLogger(__name__)

Stamp = tuple[int, int, int]
UNKNOWN_SOURCES = "Could not figure out where the code to mutate is"  # in mutmut's words


class NoSources(ToolError):
    """No option says where the sources are, and mutmut can't guess it: the `fault`, and the `remedy`."""

    def __init__(self, root: Path, config_file: str | None) -> None:
        self.fault = f"mutmut finds no sources in {root}"
        self.remedy = f"set source_paths in {place_of_options(root, config_file)}"
        super().__init__(f"{self.fault}: {self.remedy}")


@frozen
class Discovered:
    """The mutants of one file, as it was at `stamp`; `digest` names its bytes."""

    stamp: Stamp
    digest: str
    mutants: Mapping[Mutant, Mutant]  # to itself: the one that is found knows its handle


class Discovery:
    """Files are read here, each once for each of its versions, so that offsets and text always belong together."""

    def __init__(
        self, root: Path, cache: Path, python: Path, config_file: str | None, env: Mapping[str, str | None]
    ) -> None:
        self._root, self._cache, self._python, self._config_file, self._env = root, cache, python, config_file, env
        self._channel: Channel | None = None
        self._stands_in: tuple[int, int] | None = None  # the directory that the process is in
        self._lock = asyncio.Lock()
        self._known: dict[str, Discovered] = {}
        self._complaints: set[str] = set()

    async def mutants(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        """Those of the files in scope, file by file. Raises ToolError."""
        for path in (await self.files())["files"]:
            if scope.covers(path):
                for mutant in (await self.of(path)).mutants:
                    yield mutant

    async def files(self) -> Answer:
        """The `files` that mutmut mutates, and what its configuration says. Raises ToolError."""
        answer = await self._ask({"do": "files"})
        if UNKNOWN_SOURCES in answer.get("problem", ""):
            raise NoSources(self._root, self._config_file)
        if "problem" in answer:
            raise ToolError(
                f"mutmut can't work with its configuration in {self._root}, correct it: {answer['problem']}"
            )
        return answer

    async def find(self, mutant: Mutant) -> tuple[Mutant, str] | None:
        """The same mutant of the file as it is now, and the file's digest; None when there is no such mutant."""
        discovered = await self.of(mutant.path)
        found = discovered.mutants.get(mutant)
        return (found, discovered.digest) if found is not None else None

    async def of(self, path: str) -> Discovered:
        """What is in the file at `path`; nothing when it is gone or mutmut can't read it. Raises ToolError."""
        file = self._root / path
        try:
            stamp = _stamp(file)
            known = self._known.get(path)
            if known is not None and known.stamp == stamp:
                return known
            data = await asyncio.to_thread(content, file)
        except OSError:
            self._known.pop(path, None)
            return Discovered((0, 0, 0), "", {})
        digest = blake2b(data, digest_size=16).hexdigest()
        mutants = await self._discover(path, data)
        self._known[path] = discovered = Discovered(stamp, digest, mutants)
        return discovered

    async def aclose(self) -> None:
        """End the process."""
        async with self._lock:
            if self._channel is not None:
                await self._channel.close()
                self._channel = None

    async def _discover(self, path: str, data: bytes) -> dict[Mutant, Mutant]:
        try:
            source = SourceText(data.decode("utf-8").removeprefix(BOM))
        except UnicodeDecodeError as error:
            self._complain(path, f"not UTF-8: {error.reason}")
            return {}
        answer = await self._ask({"do": "mutants", "path": path, "text": source.text})
        if "problem" in answer:
            self._complain(path, answer["problem"])
            return {}
        found: dict[Mutant, Mutant] = {}
        for handle, mutator, start, end, replacement in answer["mutants"]:
            mutant = Mutant(path, mutator, source.location(start, end), replacement, description=handle, handle=handle)
            found.setdefault(mutant, mutant)  # f(a, a) without its first or its second argument is the same text
        return found

    def _complain(self, path: str, problem: str) -> None:
        complaint = f"{path} has no mutants, mutmut can't mutate it: {problem}"
        if complaint not in self._complaints:
            self._complaints.add(complaint)
            log.warning("%s", complaint)

    async def _ask(self, question: Mapping[str, object]) -> Answer:
        """Tries once more when the process dies: perhaps somebody has killed it while it had nothing to do."""
        try:
            return await (await self._opened()).ask(question)
        except ChannelClosed as error:
            log.warning("trying once more: %s", error)
        return await (await self._opened()).ask(question)

    async def _opened(self) -> Channel:
        """Raises ToolError."""
        async with self._lock:
            directory = identity(self._root)
            if self._channel is None or self._channel.closed or self._stands_in != directory:
                if self._channel is not None:
                    await self._channel.close()
                self._stands_in = directory
                options = {"config_file": self._config_file}
                self._channel = await Channel.open(self._python, "discovery", options, cwd=self._root, env=self._env)
            return self._channel


def _stamp(file: Path) -> Stamp:
    status = file.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino

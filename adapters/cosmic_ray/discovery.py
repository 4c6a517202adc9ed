"""Discovery: every mutation of a module, from a warm script, remembered while the file is the same."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from pathlib import Path
from typing import Any

from msp_bridge.adapter import ConfigurationError, Mutant, Project, ToolError
from msp_bridge.toolkit import identity
from msp_bridge.toolkit.install import python_install

from .configuration import Configuration
from .module import Module
from .mutation import Mutation
from .script import Script, ScriptEnded

log = logging.getLogger(__name__)

REQUIREMENT = "cosmic-ray>=8.7,<9"
OLDEST, NEXT = (8, 7), (9,)
GREETING = 60.0  # s to import cosmic-ray
ANSWER = 300.0  # s for one module


class Discovery:
    """One script for one project; requests take turns. A cancelled one ends it, and the next one starts another."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._turn = asyncio.Lock()
        self._script: Script | None = None
        self._stands_in: tuple[int, int] | None = None  # the directory that the script is in
        self._greeting: dict[str, Any] = {}
        self._known: dict[
            str, tuple[str, dict[Mutant, Mutation]]
        ] = {}  # path to what it was found for, and what was found

    @property
    def python(self) -> Path:
        """The project's interpreter; raises `ToolError` when there is none."""
        if self._project.python is None:
            raise ToolError(
                f"no Python interpreter found for {self._project.root}: set `python` to the one that runs its tests"
            )
        return self._project.python

    async def greeting(self) -> dict[str, Any]:
        """The `version` of cosmic-ray and the `paths` that its interpreter imports from; raises `ToolError`."""
        async with self._turn:
            await self._started()
            return self._greeting

    async def mutations(self, configuration: Configuration, path: str) -> dict[Mutant, Mutation]:
        """Every mutation of the module `path`, in cosmic-ray's order; none when the file is gone or is no Python.

        Raises `ToolError` and `ConfigurationError`.
        """
        try:
            module = await asyncio.to_thread(Module.read, self._project.root, path)
        except (OSError, SyntaxError, ValueError) as error:
            log.warning("%s is not mutated: %s", path, error)
            return {}
        request = {
            "path": path,
            "operators": configuration.operators,
            "filters": configuration.filters,
            "config": str(configuration.file),
        }
        key = json.dumps([module.digest, request], default=str)
        async with self._turn:
            known = self._known.get(path)
            if (
                known is None or known[0] != key or "git-filter" in configuration.filters
            ):  # its answer depends on git too
                known = self._known[path] = (key, await self._discover(request, module))
        return known[1]

    async def _discover(self, request: dict[str, Any], module: Module) -> dict[Mutant, Mutation]:
        reply = await self._reply({**request, "source": module.normal})
        if "error" in reply:
            raise ConfigurationError(f"{request['config']}: {reply['error']}")
        for warning in reply["warnings"]:
            log.warning("%s", warning)
        found: dict[Mutant, Mutation] = {}
        for row in reply["mutants"]:
            mutation = Mutation.of(row, module)
            found.setdefault(mutation.mutant, mutation)  # two work items may make the same change
        return found

    async def _reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """Tries once more when the script dies."""
        try:
            return await (await self._started()).ask(request, ANSWER)
        except ScriptEnded as error:
            log.warning("%s", error)
        try:
            return await (await self._started()).ask(request, ANSWER)
        except ScriptEnded as error:
            raise ToolError(f"cosmic-ray's mutants of {request['path']} can't be listed: {error}") from error

    async def _started(self) -> Script:
        directory = identity(self._project.root)
        if self._script is not None and self._stands_in != directory:
            await self._script.end()
        if self._script is None or self._script.ended:
            self._stands_in = directory
            script = await Script.start(self.python, "discovery", cwd=self._project.root)
            try:
                greeting = await script.ask(None, GREETING)
            except ScriptEnded as error:
                greeting = {"error": str(error)}
            fault = greeting["error"] if "error" in greeting else _fault(greeting["version"])
            if fault is not None:
                await script.end()
                raise ToolError(
                    f"cosmic-ray can't be used by {self.python} ({fault}): "
                    f"run `{python_install(self.python, REQUIREMENT)}`"
                )
            self._script, self._greeting = script, greeting
        return self._script

    async def aclose(self) -> None:
        """End the script."""
        async with self._turn:
            if self._script is not None:
                await self._script.end()


def _fault(version: str) -> str | None:
    """Why we can't work with this version."""
    release = re.match(r"\d+(\.\d+)*", version)
    numbers = tuple(map(int, release[0].split("."))) if release else ()
    if numbers < OLDEST:
        return f"cosmic-ray {version} is too old, 8.7 or later is needed"
    return f"cosmic-ray {version} is newer than this bridge knows" if numbers >= NEXT else None

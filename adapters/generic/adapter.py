"""Generic: the adapter that runs the commands that the user set for a tool, and reads the report that it writes."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Self

from attrs import evolve

from msp_bridge import reading
from msp_bridge.adapter import Finding, Mutant, Project, Result, Scope, Status, Surroundings
from msp_bridge.concurrency import in_thread
from msp_bridge.source import as_discovered
from msp_bridge.text import counted

if TYPE_CHECKING:
    from .settings import Tool

UNDECIDED = (Status.PENDING, Status.IGNORED)  # what a report may say of a mutant that is still to be tested

ENVIRONMENTS = frozenset({"node_modules", ".venv", "venv"})  # that a copy has if `environments` says so

EXAMPLE = """\
[generic.infection]
files = ["src/**/*.php"]
discover = ["vendor/bin/infection", "--dry-run", "--filter={files:,}", "--logger-html={report}"]
test = ["vendor/bin/infection", "--threads={jobs}", "--filter={files:,}", "--logger-html={report}"]
"""


class Generic:
    """The tools of `[tool.msp-bridge.generic.NAME]`. A file belongs to the first of them that mutates it.

    A tool runs once for each request, on the files that the request is about, and is ended with it. Tools that write
    into the project run in a private copy, which is the default.
    """

    name: ClassVar[str] = "generic"
    markers: ClassVar[tuple[str, ...]] = ("msp-bridge.toml", "pyproject.toml")
    sources: ClassVar[tuple[str, ...]] = ()

    def __init__(self, project: Project) -> None:
        from msp_bridge.toolkit import (  # here, and below: other projects' editors don't wait for it
            CommandProof,
            Isolation,
            RunPlaces,
            Sandbox,
        )

        from .discovery import GenericDiscovery
        from .settings import tools_of

        self._project = project
        self._tools = tools_of(project.settings)
        claim = partial(Sandbox.claim, project.cache, project.root)
        if any(tool.environments for tool in self._tools):
            claim = partial(claim, "whole", included=ENVIRONMENTS)
        self._places = RunPlaces(project.root, claim)
        self._isolations = {
            tool.name: Isolation.of(tool.name, project.root, network=tool.baseline is None)
            for tool in self._tools
            if tool.writes
        }
        self._discoveries = {
            tool.name: GenericDiscovery(project, self._places, tool, self._isolations.get(tool.name))
            for tool in self._tools
        }
        self._proof = CommandProof()

    @classmethod
    def detect(cls, project: Project) -> Self | None:
        """Any tool is set up by its settings, and no other file; raises `ConfigurationError` for wrong ones."""
        return cls(project) if project.settings and project.config_file is None else None

    @classmethod
    def absent(cls, project: Project) -> Finding:
        """Nothing is missing: few projects need it."""
        text = "no other tool that writes mutation-testing-report-schema is set up"
        return Finding(False, "generic", text, f"write msp-bridge.toml, for instance:\n{EXAMPLE}")

    def claims(self, path: str) -> bool:
        """Whether `path` is among the `files` of a tool."""
        return self._tool_of(path) is not None

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        """Yield the mutants that the tools' `discover` commands report."""
        for tool in self._tools:
            listed = await in_thread(tool.listed, self._project.root)
            files = [path for path in listed if scope.covers(path) and self._tool_of(path) is tool]
            if files:
                for mutants in (await self._discoveries[tool.name].mutants(files)).values():
                    for mutant in mutants:
                        yield mutant

    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        """Yield the results of the tools' `test` commands: as soon as a report has them, or at the end of the run."""
        for tool in self._tools:
            due = dict.fromkeys(mutant for mutant in mutants if self._tool_of(mutant.path) is tool)
            async with contextlib.aclosing(self._test(tool, due)) as results:
                async for result in results:
                    yield result

    async def _test(self, tool: Tool, due: dict[Mutant, None]) -> AsyncGenerator[Result, None]:
        from .run import GenericRun, baseline_of

        if not due:
            return
        async with self._places.lease(self._isolations.get(tool.name)) as place:
            if tool.baseline is not None:
                sources = await in_thread(tool.listed, self._project.root)
                await self._proof.prove(place, baseline_of(self._project, tool, tool.baseline, sources))
            present = await in_thread(as_discovered, place.root, due)
            if not present:
                return
            files = list(dict.fromkeys(mutant.path for mutant in present))
            ids = [mutant.handle.id for mutant in present if mutant.handle.id]
            run = GenericRun(self._project, tool, tool.test, files, _ranges(present), ids)
            due = dict.fromkeys(present)
            async with contextlib.aclosing(run.reports(place)) as reports:
                async for report, last in reports:
                    found = [mutant for mutant in due if mutant in report]
                    if not tool.writes:  # it reads the project itself, which may have changed meanwhile
                        found = await in_thread(as_discovered, place.root, found)
                    for mutant in found:
                        result = report[mutant]
                        if last or result.status not in UNDECIDED:
                            del due[mutant]
                            yield _decided(evolve(result, mutant=mutant), tool)
            lost = await in_thread(as_discovered, place.root, due)
        for mutant in lost:
            yield Result(mutant, tool.missing, status_reason=f"the report of {tool.name} has no such mutant")

    async def surroundings(self) -> Surroundings | None:
        """Implement `ReportsSurroundings`: the programs themselves, `node_modules`, and the interpreter's packages.

        None when a program is not found. What else a tool reads, from places that nothing names, must be pinned by a
        file of the project, as lock files do it.
        """
        programs = dict.fromkeys(command.program for tool in self._tools for command in tool.commands)
        digests = {program: await in_thread(self._digest, program) for program in programs}
        if None in digests.values():
            return None
        from msp_bridge.python_engine import python_surroundings

        root, python = self._project.root, self._project.python
        values = {"programs": digests, "packages": reading.digest(root / "node_modules" / ".package-lock.json")}
        return Surroundings(values) if python is None else await python_surroundings(self._project, python, values)

    async def diagnose(self) -> AsyncGenerator[Finding, None]:
        """Each tool's programs and files, and where it runs."""
        for tool in self._tools:
            for program in dict.fromkeys(command.program for command in tool.commands):
                found = self._found(program)
                text = found or f"there is no program {program}"
                remedy = None if found else "install it, put its directory on PATH, or correct the command"
                yield Finding(found is not None, tool.name, text, remedy)
            files = tool.listed(self._project.root)
            where = "in a private copy" if tool.writes else "in the project itself, as `writes = false` says"
            text = f"{', '.join(tool.files)}: {counted(len(files), 'file')}; runs {where}"
            yield Finding(bool(files), tool.name, text, None if files else "correct files")
            if tool.writes:
                yield Finding(True, tool.name, await self._isolations[tool.name].described())

    async def aclose(self) -> None:
        """Give the private copies back; no tool outlives its request."""
        await self._places.aclose()

    def _tool_of(self, path: str) -> Tool | None:
        return next((tool for tool in self._tools if tool.claims(path)), None)

    def _digest(self, program: str) -> str | None:
        if program == "{python}" and self._project.python is not None:
            return ""  # what surrounds it says more
        found = self._found(program.replace("{project}", str(self._project.root)))
        return None if found is None else reading.digest(found)

    def _found(self, program: str) -> str | None:
        return shutil.which(str(self._project.root / program) if "/" in program else program)


def _ranges(mutants: Sequence[Mutant]) -> list[str]:
    places = ((mutant.path, mutant.location) for mutant in mutants)
    return list(dict.fromkeys(f"{path}:{place.start.line}-{place.end.line}" for path, place in places))


def _decided(result: Result, tool: Tool) -> Result:
    if result.status is not Status.PENDING:
        return result
    return Result(result.mutant, Status.IGNORED, status_reason=f"{tool.name} ended without having tested it")

"""Generic: the adapter that runs the commands that the user set for a tool, and reads the report that it writes."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncGenerator, Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Self

from attrs import evolve

from msp_bridge import reading
from msp_bridge.adapter import Finding, Mutant, Project, Result, Scope, Status
from msp_bridge.counts import counted

from .discovery import Discovery
from .places import Places
from .run import Run
from .tool import Tool, tools_of

UNDECIDED = (Status.PENDING, Status.IGNORED)  # what a report may say of a mutant that is still to be tested

EXAMPLE = """\
[generic.infection]
files = ["src/**/*.php"]
discover = ["vendor/bin/infection", "--dry-run", "--filter={files:,}", "--logger-html={report}"]
test = ["vendor/bin/infection", "--threads={jobs}", "--filter={files:,}", "--logger-html={report}"]
"""


class Generic:
    """The tools of `[tool.msp-bridge.generic.NAME]`. A file belongs to the first of them that mutates it.

    A tool runs once for each request, on the files that the request is about, and is ended with it. Tools that write
    into the project run in a private copy, which is what the bridge supposes of all.
    """

    name: ClassVar[str] = "generic"
    markers: ClassVar[tuple[str, ...]] = ("msp-bridge.toml", "pyproject.toml")
    sources: ClassVar[tuple[str, ...]] = ()

    def __init__(self, project: Project) -> None:
        self._project = project
        self._tools = tools_of(project.settings)
        self._places = Places(project)
        self._discoveries = {tool.name: Discovery(project, self._places, tool) for tool in self._tools}

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
        """What the tools' `discover` commands report."""
        for tool in self._tools:
            listed = await asyncio.to_thread(tool.listed, self._project.root)
            files = [path for path in listed if scope.covers(path) and self._tool_of(path) is tool]
            if files:
                for mutants in (await self._discoveries[tool.name].mutants(files)).values():
                    for mutant in mutants:
                        yield mutant

    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        """What the tools' `test` commands report: as soon as a report says it, or else at the end of the run."""
        for tool in self._tools:
            due = dict.fromkeys(mutant for mutant in mutants if self._tool_of(mutant.path) is tool)
            async with contextlib.aclosing(self._test(tool, due)) as results:
                async for result in results:
                    yield result

    async def _test(self, tool: Tool, due: dict[Mutant, None]) -> AsyncGenerator[Result, None]:
        if not due:
            return
        async with self._places.lease(copy=tool.writes) as place:
            due = dict.fromkeys(await asyncio.to_thread(_unchanged, place.root, due))
            if not due:
                return
            files = list(dict.fromkeys(mutant.path for mutant in due))
            run = Run(tool, tool.test, files, _ranges(due), self._project.jobs, self._project.root)
            async with contextlib.aclosing(run.reports(place)) as reports:
                async for report, last in reports:
                    found = [mutant for mutant in due if mutant in report]
                    if not tool.writes:  # it reads the project itself, which may have changed meanwhile
                        found = await asyncio.to_thread(_unchanged, place.root, found)
                    for mutant in found:
                        result = report[mutant]
                        if last or result.status not in UNDECIDED:
                            del due[mutant]
                            yield _decided(evolve(result, mutant=mutant), tool)

    async def diagnose(self) -> AsyncGenerator[Finding, None]:
        """Each tool's programs and files, and where it runs."""
        for tool in self._tools:
            for program in dict.fromkeys((tool.discover.program, tool.test.program)):
                found = self._found(program)
                text = found or f"there is no program {program}"
                remedy = None if found else "install it, put its directory on PATH, or correct the command"
                yield Finding(found is not None, tool.name, text, remedy)
            files = tool.listed(self._project.root)
            where = "in a private copy" if tool.writes else "in the project itself, as `writes = false` says"
            text = f"{', '.join(tool.files)}: {counted(len(files), 'file')}; runs {where}"
            yield Finding(bool(files), tool.name, text, None if files else "correct files")

    async def aclose(self) -> None:
        """Give the private copies back; no tool outlives its request."""
        await self._places.aclose()

    def _tool_of(self, path: str) -> Tool | None:
        return next((tool for tool in self._tools if tool.claims(path)), None)

    def _found(self, program: str) -> str | None:
        return shutil.which(str(self._project.root / program) if "/" in program else program)


def _unchanged(root: Path, mutants: Iterable[Mutant]) -> list[Mutant]:
    """Those whose files have the content that they were discovered in."""
    digests: dict[str, str | None] = {}
    for mutant in mutants:
        if mutant.path not in digests:
            digests[mutant.path] = reading.digest(root / mutant.path)
    return [mutant for mutant in mutants if mutant.handle == digests[mutant.path]]


def _ranges(mutants: Iterable[Mutant]) -> list[str]:
    places = ((mutant.path, mutant.location) for mutant in mutants)
    return list(dict.fromkeys(f"{path}:{place.start.line}-{place.end.line}" for path, place in places))


def _decided(result: Result, tool: Tool) -> Result:
    if result.status is not Status.PENDING:
        return result
    return Result(result.mutant, Status.IGNORED, status_reason=f"{tool.name} ended without having tested it")

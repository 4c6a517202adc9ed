"""An adapter that does what `scripted.json` in the project's root says: for faults that no honest tool can be made to show.

Another JSON file takes its place when it is named as the tool's configuration.

A plugin as anybody's: it uses only the public API, and is found by its entry point. Its mutants are real ones: each
mutation of the script replaces a text wherever it stands in a file. The script is read anew by `discover` and by `test`,
and a mutant is tested as the script said when it was discovered:

    {"files": "*.py",                    which files it claims (default)
     "mutations": [{"mutator": "digit",  the mutator's name
                    "find": "1",         the text that is replaced,
                    "replacement": "2",  by this one
                    "status": "Killed",  what becomes of the mutant (default)
                    "after": "gate",     the result waits for the file EVENTS/gate
                    "kills": true,       it kills the process that tests it, a worker of a cluster
                    "details": {…}       other fields of Result, by name
                    "times": 1}],        how many results a mutant gets: 0 and 2 are faults
     "surroundings": {…},                 what its verdicts depend on besides files; without it nobody knows. A variable
                                          SCRIPTED_VERSION is its entry "version"
     "fresh": {"digit": "Killed"},        what the tool itself says of a mutator's mutants in fresh processes
     "trees": ["/directory"],             and directories outside of the project
     "events": "/directory",             gates lie here; what happens is written to its file `log`, a line each
     "discovery": FAULTS, "testing": FAULTS,
     "detected": "gate",                 finding out whether it is set up waits, and blocks, for the file EVENTS/gate
     "tool": "hang",                     a program of scripted_tools.py that runs while mutants are tested
     "warm": "hang",                     and one that stays until the adapter is closed
     "lines": true}                      each result waits for a line of the tool, which is its status reason

FAULTS is an object, in which each is optional: `after` (wait for a gate), `say` (text for stdout), `writes` (a file in the
project), `raises` (a list: the name in ERRORS or BaselineError, and its arguments), `failing` (tests that fail without a
mutant, with their output), `unusable` (files that can't be parsed, and why), `remarks` (on files), `phase` (what it is busy with), `invents` (true: a mutant of no file), `end_after` (the end waits for a gate), `columns` (a
number that is added to them), `repeats` (true: each twice), `leaks` (true: the tool isn't ended), `eager` (true: all
mutants are started at once).
"""

import asyncio
import contextlib
import fnmatch
import json
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from attrs import evolve, frozen

from msp_bridge import reading
from msp_bridge.adapter import (
    BaselineError,
    ConfigurationError,
    FailingTest,
    Finding,
    Location,
    Mutant,
    Notice,
    Position,
    Project,
    Remark,
    Result,
    Scope,
    Status,
    Surroundings,
    ToolError,
    UnusableFile,
)
from msp_bridge.phases import report_phase
from msp_bridge.processes import ProcessTree
from msp_bridge.source import SourceText

SCRIPT = "scripted.json"
LOOK = 0.005  # s between two looks at a gate
TOOLS = Path(__file__).with_name("scripted_tools.py")
ERRORS = {
    "ToolError": ToolError,
    "ConfigurationError": ConfigurationError,
    "RuntimeError": RuntimeError,
    "ValueError": ValueError,
}


@frozen
class Handle:
    """What `test` needs of a mutant."""

    name: str
    digest: str  # of the content that it was found in
    mutation: dict[str, Any]


class Scripted:
    """Does what the script says."""

    name: ClassVar[str] = "scripted"
    markers: ClassVar[tuple[str, ...]] = (SCRIPT,)
    sources: ClassVar[tuple[str, ...]] = ("*.py",)  # so tools for Python that are merely installed give way to it

    fresh_results: Callable[[Sequence[Result]], Awaitable[Sequence[Result]]]  # where the script says "fresh"

    def __init__(self, project: Project) -> None:
        self._project = project
        self._trees: list[ProcessTree] = []
        self._warm: ProcessTree | None = None

    @classmethod
    def detect(cls, project: Project) -> Self | None:
        if not (project.root / SCRIPT).is_file():
            return None
        scripted = cls(project)
        said = scripted._script() if scripted._file.is_file() else {}
        gate = said.get("detected")
        if "fresh" in said:
            scripted.fresh_results = scripted._fresh_results
        if gate is not None:
            scripted._log(f"detecting until {gate}")
            while not (Path(scripted._events()) / gate).exists():
                time.sleep(LOOK)
        return scripted

    def threshold(self) -> float | None:
        return self._script().get("threshold")

    @classmethod
    def absent(cls, project: Project) -> Finding:
        return Finding(False, "scripted", f"there is no {SCRIPT} in {project.root}", f"write {SCRIPT}")

    def claims(self, path: str) -> bool:
        return fnmatch.fnmatch(path, self._script().get("files", "*.py"))

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant | Notice, None]:
        script = self._script()
        faults = script.get("discovery", {})
        self._log("discovering")
        await self._misbehave(faults)
        for path, text in faults.get("remarks", {}).items():
            if scope.covers(path):
                yield Remark(text, path)
        for path, problem in faults.get("unusable", {}).items():
            if scope.covers(path):
                yield UnusableFile(path, problem)
        for mutant, _ in self._mutants(script, scope):
            for _ in range(2 if faults.get("repeats") else 1):
                yield mutant
        if faults.get("invents"):
            yield Mutant("of/another/tool.txt", "invented", _location(1, 1, 1, 2), "x")

    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        script = self._script()
        faults = script.get("testing", {})
        self._log(f"testing {len(mutants)}", *(f"by {name}" for name in self._project.environment))
        try:
            await self._misbehave(faults)
            if "phase" in faults:
                report_phase(faults["phase"])
            for test, output in faults.get("failing", {}).items():
                yield FailingTest(test, output)
            await self._warm_up(script)
            async with self._tool(script, faults) as lines:
                if faults.get("invents"):
                    yield Result(Mutant("of/another/tool.txt", "invented", _location(1, 1, 1, 2), "x"), Status.KILLED)
                unchanged = self._unchanged(mutants)
                if faults.get("eager"):
                    unchanged = iter(list(unchanged))
                    self._log(*(f"started {mutant.handle.name}" for mutant in mutants))
                for mutant in unchanged:
                    mutation = mutant.handle.mutation
                    if not faults.get("eager"):
                        self._log(f"started {mutant.handle.name}")
                    await self._gate(mutation)
                    if mutation.get("kills"):
                        os.kill(os.getpid(), signal.SIGKILL)
                    details: dict[str, Any] = (
                        {"status_reason": (await anext(lines)).decode()} if script.get("lines") else {}
                    )
                    result = Result(
                        mutant, Status(mutation.get("status", "Killed")), **details, **mutation.get("details", {})
                    )
                    for _ in range(mutation.get("times", 1)):
                        yield result
        finally:
            if "end_after" in faults:
                await self._gate({"after": faults["end_after"]})
            self._log("closed")

    async def _fresh_results(self, results: Sequence[Result]) -> list[Result]:
        report_phase("asking the tool again")
        fresh, mutants = self._script()["fresh"], [result.mutant for result in results]
        return [Result(each, Status(fresh[each.mutator])) for each in mutants if each.mutator in fresh]

    async def surroundings(self) -> Surroundings | None:
        script = self._script()
        trees = tuple(map(Path, script.get("trees", ())))
        if "surroundings" not in script:
            return None
        here = {"version": version} if (version := os.environ.get("SCRIPTED_VERSION")) else {}
        return Surroundings({**script["surroundings"], **here}, trees)

    async def diagnose(self) -> AsyncGenerator[Finding, None]:
        yield Finding(True, "script", "found")

    async def aclose(self) -> None:
        for tree in self._trees:
            await tree.end()
        self._log("adapter closed")

    def _script(self) -> dict[str, Any]:
        script: dict[str, Any] = json.loads(self._file.read_text("utf-8"))
        return script

    @property
    def _file(self) -> Path:
        return self._project.config_file or self._project.root / SCRIPT

    def _unchanged(self, mutants: Sequence[Mutant]) -> Iterator[Mutant]:
        """Those of files that are as they were discovered, looked at just before each file's first mutant is tested."""
        present: dict[str, str | None] = {}
        for mutant in mutants:
            if mutant.path not in present:
                present[mutant.path] = reading.digest(self._project.root / mutant.path)
            if present[mutant.path] == mutant.handle.digest:
                yield mutant

    def _mutants(self, script: dict[str, Any], scope: Scope) -> Iterator[tuple[Mutant, dict[str, Any]]]:
        shift = script.get("discovery", {}).get("columns", 0)
        for file in sorted(self._project.root.rglob("*")):
            path = file.relative_to(self._project.root).as_posix()
            if file.is_file() and file.name != SCRIPT and scope.covers(path) and self.claims(path):
                digest, text = reading.digest(file) or "", SourceText.read(file)
                for mutation in script["mutations"]:
                    at = text.text.find(mutation["find"])
                    while at >= 0:
                        location = _shifted(text.location(at, at + len(mutation["find"])), shift)
                        handle = Handle(f"{path} {mutation['mutator']} {at}", digest, mutation)
                        yield (
                            Mutant(path, mutation["mutator"], location, mutation["replacement"], handle=handle),
                            mutation,
                        )
                        at = text.text.find(mutation["find"], at + len(mutation["find"]))

    async def _misbehave(self, faults: dict[str, Any]) -> None:
        await self._gate(faults)
        if "say" in faults:
            sys.stdout.write(faults["say"])
            sys.stdout.flush()
            os.write(1, faults["say"].encode())
        if "writes" in faults:
            (self._project.root / faults["writes"]).write_text("written\n")
        failing = faults.get("failing", {})
        if "raises" in faults:
            kind, *arguments = faults["raises"]
            if kind == "BaselineError":
                problem, remedy = [*arguments, "fix the tests first"][:2]
                raise BaselineError(problem, remedy, list(failing), next(iter(failing.values()), ""))
            raise ERRORS[kind](*arguments)

    @contextlib.asynccontextmanager
    async def _tool(self, script: dict[str, Any], faults: dict[str, Any]) -> AsyncIterator[AsyncIterator[bytes]]:
        if "tool" not in script:
            yield _no_lines()
            return
        tree = await self._start(script["tool"])
        try:
            async with contextlib.aclosing(tree.lines()) as lines:
                yield lines
        finally:
            if faults.get("leaks"):
                self._trees.append(tree)
            else:
                await tree.end()

    async def _warm_up(self, script: dict[str, Any]) -> None:
        if "warm" in script and self._warm is None:
            self._warm = await self._start(script["warm"])
            self._trees.append(self._warm)

    async def _start(self, tool: str) -> ProcessTree:
        return await ProcessTree.start(
            [sys.executable, TOOLS, tool, self._events() or "-"],
            cwd=self._project.root,
            env={"PYTHONDONTWRITEBYTECODE": "1"},
            grace=0.3,
        )

    async def _gate(self, step: dict[str, Any]) -> None:
        if "after" in step:
            self._log(f"waiting for {step['after']}")
            while not (Path(self._events()) / step["after"]).exists():
                await asyncio.sleep(LOOK)

    def _events(self) -> str:
        events: str = self._script().get("events", "")
        return events

    def _log(self, *lines: str) -> None:
        if events := self._events():
            with (Path(events) / "log").open("a") as log:
                log.writelines(f"{line}\n" for line in lines)


async def _no_lines() -> AsyncGenerator[bytes, None]:
    return
    yield b""


def _location(line: int, column: int, end_line: int, end_column: int) -> Location:
    return Location(Position(line, column), Position(end_line, end_column))


def _shifted(location: Location, columns: int) -> Location:
    start, end = location.start, location.end
    return Location(evolve(start, column=start.column + columns), evolve(end, column=end.column + columns))

"""mutmut's mutants of the files as they are now, from a warm process that runs nothing of the project.

Those of a text that was read before, by an earlier bridge perhaps, are kept (`KeptAnswers`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncGenerator

from attrs import frozen

from msp_bridge.adapter import Edit, Mutant, Notice, Project, Remark, Scope, ToolError, UnusableFile
from msp_bridge.concurrency import in_thread
from msp_bridge.phases import DISCOVERING, Phase
from msp_bridge.python_adapter import interpreter
from msp_bridge.python_engine import (
    ListingProgram,
    PythonEdit,
    PythonSource,
    TestPlan,
    digest_of_programs,
    mutants_in,
)
from msp_bridge.source import in_comment
from msp_bridge.toolkit import identity
from msp_bridge.toolkit.json_lines import Answer, JsonLinesProcess
from msp_bridge.toolkit.kept_answers import KeptAnswers, key_of

from .configuration import config_file_of, place_of_options, setting_of_sources
from .installation import PROGRAMS, MutmutInstallation, start_discovery
from .left_out import why_no_mutants, why_not_listed

Stamp = tuple[int, int, int]
DEFAULT_LIMIT = [1.0, 15.0]  # mutmut's `timeout_constant` and `timeout_multiplier`
PRAGMA = "# pragma: no mutate"
UNKNOWN_SOURCES = "Could not figure out where the code to mutate is"  # mutmut's message


class NoSources(ToolError):
    """No option says where the sources are, and mutmut can't guess it; or they are not there."""


@frozen
class Discovered:
    """The mutants of one file, as it was at `stamp`."""

    stamp: Stamp
    mutants: tuple[Mutant, ...] = ()
    problem: str | None = None  # why mutmut can't mutate the file


class MutmutDiscovery:
    """Files are read here, each once for each of its versions, so that offsets and text always belong together."""

    def __init__(self, project: Project) -> None:
        self._project, self._root, self._config_file = project, project.root, config_file_of(project)
        self._versions: tuple[str | None, ...] = ()  # of Python, mutmut and its parser
        self._kept, self._configuration = KeptAnswers.of(project.cache), ""
        self._program = ListingProgram(lambda: identity(project.root), self._start)
        self._known: dict[str, Discovered] = {}
        self._unasked: dict[str, PythonSource] = {}  # files of which the program knows nothing

    async def mutants(self, scope: Scope) -> AsyncGenerator[Mutant | Notice, None]:
        """Yield the mutants of the files in scope, file by file. Raises ToolError.

        A remark says why one that the scope names has none.
        """
        answer = await self.files()
        paths = [path for path in answer["files"] if scope.covers(path)]
        named = await in_thread(self._existing, scope)  # there may be 100,000
        place = place_of_options(self._root, self._config_file)
        for path in sorted(named.difference(paths)):
            yield _without(path, why_not_listed(answer["source_paths"], place))
        phase = Phase(DISCOVERING, len(paths))
        for number, path in enumerate(paths):
            phase.reached(number)
            found = await self._of(path)
            if found.problem is not None:
                remedy = f"correct the file, or exclude it by do_not_mutate in {place}"
                yield UnusableFile(path, f"mutmut can't mutate it: {found.problem}", remedy)
            elif not found.mutants and path in named:
                with contextlib.suppress(OSError, SyntaxError, ValueError, RecursionError):  # `_of` has said it
                    source = await in_thread(PythonSource.read, self._root, path)
                    yield _without(path, why_no_mutants(source.normal))
            for mutant in found.mutants:
                yield mutant

    def _existing(self, scope: Scope) -> set[str]:
        return {path for path in scope.paths or () if os.path.isfile(os.path.join(self._root, path))}

    async def files(self) -> Answer:
        """The `files` that mutmut mutates, and what its configuration says. Raises ToolError."""
        answer = await self._program.ask({"do": "files"})
        self._configuration = answer.get("configuration", "")
        if UNKNOWN_SOURCES in answer.get("problem", ""):
            raise self._no_sources("")
        if "problem" in answer:
            raise ToolError(
                f"mutmut can't work with its configuration in {self._root}: {answer['problem']}",
                f"correct {place_of_options(self._root, self._config_file)}",
            )
        if not answer["files"] and (missing := await in_thread(self._missing, answer["source_paths"])):
            raise self._no_sources(f": source_paths names what is not there ({', '.join(missing)})")
        return answer

    def _no_sources(self, why: str) -> NoSources:
        place = place_of_options(self._root, self._config_file)
        setting = setting_of_sources(self._root, place) or "source_paths"
        return NoSources(f"mutmut finds no sources in {self._root}{why}", f"set {setting} in {place}")

    def _missing(self, paths: list[str]) -> list[str]:
        return [path for path in paths if not (self._root / path).exists()]

    async def plan(self) -> TestPlan:
        """How mutmut's configuration has the tests run. Raises ToolError."""
        found = await self.files()
        place = place_of_options(self._root, self._config_file)
        return TestPlan(
            python=interpreter(self._project),
            arguments=tuple(found["arguments"]),
            sources=tuple(found["files"]),
            limit=(found["limit"][0], found["limit"][1]),
            cpu_limited=found["limit"] == DEFAULT_LIMIT,
            remedy=f"select the tests with pytest_add_cli_args_test_selection in {place}",
            always_fresh=found["always_fresh"],
            debug=found["debug"],
        )

    async def ignore(self, mutant: Mutant, reason: str) -> Edit:
        """The pragma that has mutmut leave out `mutant`. Raises ToolError.

        The one at the end of a line is about what begins in it. In some places it does nothing, as behind the closing
        bracket of a longer expression, or can't stand, as in a string: there the statement is enclosed by two. mutmut
        is asked which does it.
        """
        known: PythonEdit = mutant.handle
        source, reason = known.source, in_comment(reason, "  # ")
        line = source.comment(known.start, f"{PRAGMA}{reason}")
        statement = source.enclosed(known.start, f"{PRAGMA} start{reason}", f"{PRAGMA} end")
        lines = "every mutant of the lines between the two comments"
        for edit, effect in ((line, "every mutant that begins in this line"), (statement, lines)):
            if edit is not None and not await self._has(mutant, edit):
                return Edit(mutant.path, edit.location, edit.replacement, effect)
        raise ToolError(
            f"no `{PRAGMA}` comment has mutmut leave out {mutant.path}:{mutant.location.start.line} alone",
            "give the expression a statement of its own, and list the mutants again",
        )

    async def _has(self, mutant: Mutant, edit: PythonEdit) -> bool:
        """Whether the file has `mutant` still when `edit` has been made; also when mutmut can't read it then."""
        question = {"do": "mutants", "path": mutant.path, "text": edit.normal}
        answer = await self._program.ask(question, edit.normal)
        start = mutant.handle.start
        if edit.end > edit.start:
            start += edit.normal_replacement.index("\n") + 1
        same = (mutant.mutator, start, mutant.handle.normal_replacement)
        found = ((mutator, at, replacement) for _, mutator, at, _, replacement in answer.get("mutants", ()))
        return "problem" in answer or same in found

    async def aclose(self) -> None:
        """End the process."""
        await self._program.aclose()

    async def _of(self, path: str) -> Discovered:
        """The mutants of the file at `path`; none when it is gone. Raises ToolError."""
        try:
            status = (self._root / path).stat()
            stamp = status.st_mtime_ns, status.st_size, status.st_ino
            known = self._known.get(path)
            if known is not None and known.stamp == stamp:
                return known
            source = await in_thread(PythonSource.read, self._root, path)
        except (FileNotFoundError, NotADirectoryError):
            self._known.pop(path, None)
            return Discovered((0, 0, 0))
        except (OSError, SyntaxError, ValueError) as error:
            return Discovered((0, 0, 0), problem=str(error))
        self._known[path] = discovered = await self._discover(source, stamp)
        return discovered

    async def _discover(self, source: PythonSource, stamp: Stamp) -> Discovered:
        try:
            answer = await self._answer(source)
        except TimeoutError as error:
            answer = {"problem": str(error)}
        if "problem" in answer:
            return Discovered(stamp, problem=answer["problem"])
        found: dict[Mutant, None] = {}
        for name, mutator, start, end, replacement in answer["mutants"]:
            edit = PythonEdit(source, start, end, replacement)
            mutant = Mutant(source.path, mutator, edit.location, edit.replacement, description=name, handle=edit)
            found.setdefault(mutant)  # f(a, a) without its first or its second argument is the same text
        return Discovered(stamp, tuple(found))

    async def _answer(self, source: PythonSource) -> Answer:
        """Ask mutmut for the mutants of a file. Raises TimeoutError."""
        key = await in_thread(self._key, source, self._configuration)
        kept: Answer | None = await in_thread(self._kept.get, key, mutants_in)
        if kept is not None:
            self._unasked[source.path] = source
            return kept
        question = {"do": "mutants", "path": source.path, "text": source.normal}
        answer = await self._program.ask({**question, "earlier": await self._earlier(source.path)}, source.normal)
        if "problem" not in answer:
            key = await in_thread(self._key, source, answer["configuration"])
            await in_thread(self._kept.save, {key: answer})
        return answer

    async def _earlier(self, path: str) -> Answer | None:
        """The kept answer about the last text of a file of which the program knows nothing; None: there is none."""
        if (source := self._unasked.pop(path, None)) is None:
            return None
        key = await in_thread(self._key, source, self._configuration)
        kept: Answer | None = await in_thread(self._kept.get, key, mutants_in)
        return None if kept is None else {**kept, "text": source.normal}

    def _key(self, source: PythonSource, configuration: str) -> bytes:
        """Under which the answer about a file is kept. Blocks."""
        return key_of(digest_of_programs(PROGRAMS), source.path, source.normal, self._versions, configuration)

    async def start(self) -> None:
        """Start the program. Raises ToolError if there is none that will do."""
        await self._program.started()

    async def _start(self) -> JsonLinesProcess:
        """Raises ToolError."""
        process = await start_discovery(self._project, self._config_file)
        installation = MutmutInstallation.of(interpreter(self._project), process)
        if installation.fault is not None:
            await process.close()
            raise ToolError(*installation.fault)
        self._versions = (installation.python, installation.mutmut, installation.libcst)
        return process


def _without(path: str, why: str) -> Remark:
    return Remark(f"has no mutants: {why}", path)

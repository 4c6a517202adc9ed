"""CosmicRayDiscovery: a module's mutants, made by cosmic-ray in a warm process, kept while the file is the same.

The next bridge has them too (`KeptAnswers`), unless they depend on more than the file and the configuration: on git, as
some filters do, or on operators of other packages.
"""

import asyncio
import json
import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from msp_bridge.adapter import (
    ConfigurationError,
    Mutant,
    Notice,
    Project,
    Remark,
    Result,
    Status,
    ToolError,
    UnusableFile,
)
from msp_bridge.concurrency import in_thread
from msp_bridge.python_adapter import interpreter
from msp_bridge.python_engine import (
    ListingProgram,
    PythonEdit,
    PythonSource,
    digest_of_programs,
    mutants_in,
    python_environment,
    start_program,
)
from msp_bridge.reading import digest
from msp_bridge.text import release
from msp_bridge.toolkit import JsonLinesProcess, ProcessEnded, identity
from msp_bridge.toolkit.install import python_install
from msp_bridge.toolkit.kept_answers import KeptAnswers, key_of

from .configuration import REQUIREMENT, CosmicRayConfiguration

log = logging.getLogger(__name__)

PROGRAMS = Path(__file__).with_name("programs")  # ours, run by the project's interpreter
OLDEST, NEXT = (8, 7), (9,)
WITHOUT_GIT = frozenset({"operators-filter"})  # filters that read the configuration alone
REPLACED = re.compile(r"Replace(Binary|Comparison|Unary)Operator_(Delete_)?([A-Za-z]+)(?:_([A-Za-z]+))?")
SYMBOLS = {
    "Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**", "RShift": ">>",
    "LShift": "<<", "BitOr": "|", "BitAnd": "&", "BitXor": "^", "Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=",
    "Gt": ">", "GtE": ">=", "Is": "is", "IsNot": "is not", "UAdd": "+", "USub": "-", "Invert": "~", "Not": "not",
}  # fmt: skip
FIELDS = ("start", "end", "replacement", "operator", "args", "occurrence", "error", "skipped")  # of a row
SHOWN_CHARS = 40  # characters of the changed text in a name


@frozen
class WorkItem(PythonEdit):
    """The handle of a mutant: a work item of `cosmic-ray init`, and what is known of it without a test."""

    operator: str
    arguments: Mapping[str, Any]
    occurrence: int  # of the operator's changes in the module, from 0
    compile_error: str | None  # the mutated source is no Python
    skipped: str | None  # by which filter

    def known_result(self, mutant: Mutant) -> Result | None:
        """The result of `mutant`, where it needs no test."""
        if self.skipped is not None:
            return Result(mutant, Status.IGNORED, status_reason=f"skipped by cosmic-ray's filter: {self.skipped}")
        if self.compile_error is not None:
            return Result(mutant, Status.COMPILE_ERROR, status_reason=self.compile_error)
        return None


class CosmicRayDiscovery:
    """The modules of one project, each listed by one request at a time: another one gets what that has found."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._locks: dict[str, asyncio.Lock] = {}  # by path
        self._program = ListingProgram(lambda: identity(project.root), self._start)
        self._kept = KeptAnswers.of(project.cache)
        self._known: dict[
            str, tuple[str, Sequence[Mutant | Notice]]
        ] = {}  # path to what was asked for, and the mutants

    @property
    def python(self) -> Path:
        """The project's interpreter; raises `ToolError` when there is none."""
        return interpreter(self._project)

    async def greeting(self) -> dict[str, Any]:
        """Facts of the interpreter: cosmic-ray's `version`, the `paths` it imports from, whether the `engine` works.

        Raises `ToolError`.
        """
        return (await self._program.started(self.python)).greeting

    async def mutants(self, configuration: CosmicRayConfiguration, path: str) -> Sequence[Mutant | Notice]:
        """List the mutants of the module `path` in cosmic-ray's order, or say why it can't be mutated.

        There are none when the file is gone. Raises `ToolError` and `ConfigurationError`.
        """
        try:
            source = await in_thread(PythonSource.read, self._project.root, path)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except (OSError, SyntaxError, ValueError) as error:
            return [_unusable(configuration.file, path, error)]
        question = {
            "path": path,
            "operators": configuration.operators,
            "filters": configuration.filters,
            "config": str(configuration.file),
        }
        key = json.dumps([source.digest, question], default=str)
        async with self._locks.setdefault(path, asyncio.Lock()):
            known = self._known.get(path)
            if known is None or known[0] != key or "git-filter" in configuration.filters:  # that depends on git too
                known = self._known[path] = (key, await self._discover(question, source))
        return known[1]

    async def aclose(self) -> None:
        """End the process."""
        await self._program.aclose()

    async def _discover(self, question: dict[str, Any], source: PythonSource) -> Sequence[Mutant | Notice]:
        try:
            answer = await self._answer(question, source)
        except TimeoutError as error:
            return [_unusable(question["config"], source.path, error)]
        if "error" in answer:
            raise ConfigurationError(f"{question['config']}: {answer['error']}", f"correct {question['config']}")
        found = dict.fromkeys(_mutant(row, source) for row in answer["mutants"])  # two items may make the same change
        return (*found, *map(Remark, answer["warnings"]))

    async def _answer(self, question: dict[str, Any], source: PythonSource) -> dict[str, Any]:
        """Raises TimeoutError and ToolError."""
        asked = {**question, "source": source.normal}
        versions = (await self.greeting())["versions"]
        if versions is None or not WITHOUT_GIT.issuperset(question["filters"]):
            return await self._ask(asked, source.normal)
        config = await in_thread(digest, question["config"])
        key = key_of(await in_thread(digest_of_programs, PROGRAMS), asked, versions, config)
        kept: dict[str, Any] | None = await in_thread(self._kept.get, key, mutants_in)
        if kept is not None:
            return kept
        answer = await self._ask(asked, source.normal)
        if "error" not in answer and config == await in_thread(digest, question["config"]):  # the filter has read this
            await in_thread(self._kept.save, {key: answer})
        return answer

    async def _ask(self, question: dict[str, Any], text: str) -> dict[str, Any]:
        """Raises TimeoutError when `text`, the module, takes too long."""
        try:
            return await self._program.ask(question, text, self.python)
        except ProcessEnded as error:
            problem = f"cosmic-ray's mutants of {question['path']} can't be listed: {error.problem}"
            raise ToolError(problem, error.remedy) from error

    async def _start(self) -> JsonLinesProcess:
        remedy = python_install(self.python, REQUIREMENT)
        environment = {**python_environment(self.python, self._project.cache), "GIT_OPTIONAL_LOCKS": "0"}
        try:
            process = await start_program(
                self.python,
                "discovery",
                {},
                name="cosmic-ray's discovery",
                cwd=self._project.root,
                env=environment,
                folder=PROGRAMS,
            )
        except ToolError as error:
            to_do = error.remedy if isinstance(error, ProcessEnded) and error.killed else remedy
            raise ToolError(f"cosmic-ray can't be used by {self.python}: {error.problem}", to_do) from error
        greeting = process.greeting
        fault = greeting["error"] if "error" in greeting else _fault(greeting["version"])
        if fault is not None:
            await process.close()
            raise ToolError(f"cosmic-ray can't be used by {self.python}: {fault}", remedy)
        return process


def mutator_name(operator: str, arguments: Mapping[str, Any], change: str) -> str:
    """`core/ReplaceBinaryOperator_Add_Sub` is `BinaryOperator: + -> -`; other packages' operators keep their names.

    What the name doesn't say, `change` does: several mutants of one operator may lie at one place.
    """
    provider, _, name = operator.partition("/")
    if provider != "core":
        name = f"{operator}: {change}"
    elif found := REPLACED.fullmatch(name):
        old, new = SYMBOLS.get(found[3], found[3]), SYMBOLS.get(found[4], found[4])
        name = f"{found[1]}Operator: {old} -> {'(nothing)' if found[2] else new}"
    elif found := re.fullmatch(r"Replace(\w+)With(\w+)", name):
        name = f"{found[1]} -> {found[2]}"
    else:
        name = f"{name}: {change}"
    return f"{name} ({', '.join(f'{key}={value}' for key, value in arguments.items())})" if arguments else name


def _mutant(row: Mapping[str, Any], source: PythonSource) -> Mutant:
    item = WorkItem(source, *map(row.__getitem__, FIELDS))
    change = f"{_shown(item.original)} -> {_shown(item.replacement)}"
    return Mutant(
        path=source.path,
        mutator=mutator_name(item.operator, item.arguments, change),
        location=item.location,
        replacement=item.replacement,
        description=f"{change} in {row['definition']}" if row["definition"] else change,
        handle=item,
    )


def _unusable(configuration: object, path: str, error: Exception) -> UnusableFile:
    remedy = f"correct the file, or exclude it by excluded-modules in {configuration}"
    return UnusableFile(path, f"cosmic-ray can't mutate it: {error}", remedy)


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else f"{line[: SHOWN_CHARS - 1]}…"


def _fault(version: str) -> str | None:
    """Why the bridge can't work with this version."""
    if release(version) < OLDEST:
        return f"cosmic-ray {version} is too old, 8.7 or later is needed"
    return f"cosmic-ray {version} is newer than this bridge supports" if release(version) >= NEXT else None

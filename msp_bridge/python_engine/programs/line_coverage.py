"""Line coverage: which functions were called before the fork, and which lines of the project each test runs.

Theory of operation
-------------------
Two questions, each with a cheap answer of its own.

*What ran at import?* (`imports`) From before pytest is imported until the tests have been collected, every call
of a function in one of the project's files is noted.

*Which lines does a test run?* (`Monitoring`, `Probes`) Only functions that were alive at the fork, or are imported
later, are of interest: any other mutant goes to a fresh process anyway. From Python 3.12 LINE events are switched on
for their code objects alone and disabled at the first hit; `restart_events()` switches them on again for the next test.
Before, the live functions of the measuring child get code with probes in it: a call of `set.add` before each statement,
and in each lambda. Two to three times faster than a C tracer. The set's method stands among the constants of the code,
so no namespace shows it.

Beside the lines stands the number `TEXT` for each file that the test reads, and each directory that it lists
(`text_reads`).

What nobody sees: code in processes that a test starts, unless they tell it (`started_processes`), and in functions that
trace (`unseen_calls`). So such a test runs the line `TEXT` of `PROCESSES`, which is no file, and is a candidate for
every mutant.
Files that are imported by the tests themselves are noted from their import on (`late_imports`). What a fixture of a
wider scope runs counts for every test that uses it, not only for the first.
"""

from __future__ import annotations

import ast
import types
import warnings
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from .file_edit import normal_text
from .imports import TOOL, monitoring
from .late_imports import LateImports, Line, Lines
from .live_code import LiveFunctions, all_nested, in_pairs
from .process_starts import PROCESSES, ConcernedStarts, note_starts
from .started_processes import POPEN, StartedProcesses
from .text_reads import TEXT, TextReads
from .unseen_calls import note_unseen_calls

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
SENTINEL = "msp-bridge: probe"  # stands in compiled code for the method that notes a hit


class Monitoring:
    """`Lines` by sys.monitoring (Python 3.12).

    From Python 3.13 on there is no LINE event for the line of the `def` or `lambda` itself, unless there is a PY_START:
    https://github.com/python/cpython/issues/155992

    It holds no code: a mutant of code that anything but its function holds is not put into live functions.
    """

    def __init__(self, functions: LiveFunctions, filenames: Iterable[str]) -> None:
        self.hits: set[Line] = set()
        self._functions, self._filenames = functions, tuple(filenames)
        self.again: Callable[[], None] = monitoring.restart_events

    def begin(self) -> None:
        """Switch the events on."""
        disable, hits = monitoring.DISABLE, self.hits

        def note(code: types.CodeType, line: int) -> object:
            hits.add((code.co_filename, line))
            return disable

        monitoring.use_tool_id(TOOL, "msp-bridge")
        monitoring.register_callback(TOOL, monitoring.events.LINE, note)
        monitoring.register_callback(TOOL, monitoring.events.PY_START, lambda *_: disable)
        for filename in self._filenames:
            for code in self._functions.codes(filename):
                self._watch(code)

    def noting(self, code: types.CodeType, _text: str) -> types.CodeType:
        """The same code."""
        self.notes(code)
        return code

    def notes(self, code: types.CodeType) -> bool:
        """From now on."""
        for inner in all_nested(code):
            self._watch(inner)
        return True

    def _watch(self, code: types.CodeType) -> None:
        monitoring.set_local_events(TOOL, code, monitoring.events.LINE | monitoring.events.PY_START)


@dataclass(frozen=True)
class ProbedFile:
    """The code of a file as it is, and with probes that have the sentinel in the place of what notes a hit."""

    code: types.CodeType
    probed: types.CodeType

    @classmethod
    def of(cls, filename: str, text: str) -> ProbedFile:
        """Raises what compiling a source raises."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the sentinel is a string that is called
            code = compile(text, filename, "exec", dont_inherit=True)
            tree = ast.parse(text)
            _add_probes(tree, filename)
            probed = compile(ast.fix_missing_locations(tree), filename, "exec", dont_inherit=True)
        return cls(code, probed)


class ProbedFiles:
    """Compiled once, until they are forgotten: it takes longer than most tests."""

    def __init__(self) -> None:
        self._files: dict[str, ProbedFile] = {}

    def file(self, filename: str) -> ProbedFile:
        """One file. Raises what reading and compiling a source raises."""
        known = self._files.get(filename)
        if known is None:
            known = self._files[filename] = ProbedFile.of(filename, normal_text(filename))
        return known

    def forget(self, filename: str) -> None:
        """It has changed."""
        self._files.pop(filename, None)


class Probes:
    """`Lines` by calls that are compiled into the live functions.

    Made by the process that is forked for each measurement: to make them takes longer than to put them in.
    """

    def __init__(self, functions: LiveFunctions, filenames: Iterable[str], probed: ProbedFiles) -> None:
        self.hits: set[Line] = set()
        files = [probed.file(filename) for filename in filenames]
        self._codes = [
            given
            for file in files
            for old, new in in_pairs(file.code, with_constant(file.probed, self.hits.add))
            for given in functions.given(old, new)
        ]

    def begin(self) -> None:
        """Put them in."""
        for function, code in self._codes:
            function.__code__ = code

    def again(self) -> None:
        """Probes note every hit."""

    def noting(self, code: types.CodeType, text: str) -> types.CodeType:
        """The code with probes."""
        file = ProbedFile.of(code.co_filename, text)
        if file.code != code:
            raise ValueError("a loader has compiled something else than the text")
        return with_constant(file.probed, self.hits.add)

    def notes(self, code: types.CodeType) -> bool:
        """A copy has the probes, unless it was pickled."""
        return self.hits.add in code.co_consts


def with_constant(code: types.CodeType, value: object) -> types.CodeType:
    """The code with `value` in the place of the sentinel, everywhere in it."""
    constants = tuple(
        with_constant(constant, value)
        if isinstance(constant, types.CodeType)
        else (value if isinstance(constant, str) and constant == SENTINEL else constant)
        for constant in code.co_consts
    )
    return code.replace(co_consts=constants)


def _add_probes(node: ast.AST, filename: str, inside: bool = False) -> None:
    """Put a probe before each statement that is inside of a function, and into each lambda."""
    inside = inside or isinstance(node, FUNCTIONS)
    for child in ast.iter_child_nodes(node):
        _add_probes(child, filename, inside)
    if isinstance(node, ast.Lambda):
        node.body = ast.copy_location(ast.BoolOp(ast.Or(), [_probe(node.body, filename), node.body]), node.body)
    for _, block in ast.iter_fields(node) if inside else ():
        if isinstance(block, list) and all(isinstance(each, ast.stmt) for each in block):
            begin = isinstance(node, DEFINITIONS) and block is node.body and _is_constant(block[0])  # a docstring
            probed = [(ast.copy_location(ast.Expr(_probe(each, filename)), each), each) for each in block[begin:]]
            block[begin:] = chain.from_iterable(probed)


def _is_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _probe(node: ast.stmt | ast.expr, filename: str) -> ast.expr:
    call = ast.Call(ast.Constant(SENTINEL), [ast.Constant((filename, node.lineno))], [])  # type: ignore[arg-type]
    return ast.fix_missing_locations(ast.copy_location(call, node))


class TestCoverage:
    """A pytest plugin: what each test runs, with what the fixtures that it uses have run."""

    def __init__(self) -> None:
        self._lines: Lines | None = None
        self._late: LateImports | None = None
        self._started: StartedProcesses | None = None
        self._fixtures: dict[int, set[Line]] = {}

    def measure(
        self, lines: Lines, filenames: Collection[str], loaded: Collection[str], roots: Sequence[str], scratch: Path
    ) -> None:
        """From now on, in this process, also of the files `filenames` that were not `loaded`.

        What is read below `roots` is noted by its path there. `scratch` is a directory of this process.
        """

        def note(path: str = PROCESSES) -> None:
            lines.hits.add((path, TEXT))

        self._lines = lines
        starts = ConcernedStarts(roots)
        started = self._started = StartedProcesses(scratch / "started", starts, filenames, loaded)
        note_starts(note, lambda event, arguments: event != POPEN or started.concerns(arguments))
        started.begin()
        TextReads(*roots, note=note, hide=note).begin()
        lines.begin()
        self._late = LateImports(lines, filenames, note)
        lines.again()
        note_unseen_calls(note)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        """Note what a fixture of a wider scope runs while it is set up."""
        if self._lines is None or fixturedef.scope == "function":
            return (yield)
        before = self._taken(self._lines)
        try:
            return (yield)
        finally:
            ran = self._taken(self._lines)
            self._fixtures.setdefault(id(fixturedef), set()).update(ran)
            self._lines.hits.update(before, ran)

    def of(self, item: Any) -> set[Line]:
        """The lines that `item`, which has just run, has run."""
        assert self._lines is not None
        found = self._taken(self._lines)
        info = getattr(item, "_fixtureinfo", None)
        for definitions in info.name2fixturedefs.values() if info is not None else ():
            found.update(*(self._fixtures.get(id(definition), ()) for definition in definitions))
        return found

    @property
    def late(self) -> set[str]:
        """The names of files that processes have imported which tests have started, and nothing before."""
        return self._started.late if self._started is not None else set()

    def _taken(self, lines: Lines) -> set[Line]:
        """The lines that were noted since the last call."""
        taken = set(lines.hits) | (self._started.lines() if self._started is not None else set())
        lines.hits.clear()
        lines.again()
        return taken


def lines_of(functions: LiveFunctions, filenames: Iterable[str], probed: ProbedFiles) -> Lines:
    """The best `Lines` that this interpreter has. Only probes need to read the files."""
    return Monitoring(functions, filenames) if monitoring is not None else Probes(functions, filenames, probed)

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

What nobody sees: code in processes that a test starts. Such tests (`ProcessWatch`) are candidates for every mutant.
Files that are imported by the tests themselves are noted from their import on (`late_imports`). What a fixture of a
wider scope runs counts for every test that uses it, not only for the first.
"""

from __future__ import annotations

import ast
import os
import sys
import types
import warnings
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from .imports import TOOL, monitoring
from .late_imports import LateImports, Line, Lines
from .live_code import FUNCTION, LiveFunctions, all_nested, nested
from .process_starts import note_starts
from .text_reads import TEXT, TextReads

SENTINEL = "msp-bridge: probe"  # stands in compiled code for the method that notes a hit


class Monitoring:
    """`Lines` by sys.monitoring (Python 3.12)."""

    def __init__(self, functions: LiveFunctions, filenames: Iterable[str]) -> None:
        self.hits: set[Line] = set()
        self._codes = [code for filename in filenames for code in functions.codes(filename)]
        self.again: Callable[[], None] = monitoring.restart_events

    def begin(self) -> None:
        """Switch the events on."""
        disable, hits = monitoring.DISABLE, self.hits

        def note(code: types.CodeType, line: int) -> object:
            hits.add((code.co_filename, line))
            return disable

        monitoring.use_tool_id(TOOL, "msp-bridge")
        monitoring.register_callback(TOOL, monitoring.events.LINE, note)
        for code in self._codes:
            monitoring.set_local_events(TOOL, code, monitoring.events.LINE)

    def noting(self, code: types.CodeType, _text: str) -> types.CodeType:
        """The same code."""
        for inner in all_nested(code):
            if inner.co_flags & FUNCTION:
                monitoring.set_local_events(TOOL, inner, monitoring.events.LINE)
        return code


@dataclass(frozen=True)
class ProbedFile:
    """The code of a file as it is, and with probes that have the sentinel in the place of what notes a hit."""

    text: str
    code: types.CodeType
    probed: types.CodeType

    @classmethod
    def of(cls, filename: str, text: str) -> ProbedFile:
        """Raises what compiling a source raises."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the sentinel is a string that is called
            code = compile(text, filename, "exec", dont_inherit=True)
            tree = _Instrument(filename).visit(ast.parse(text))
            probed = compile(ast.fix_missing_locations(tree), filename, "exec", dont_inherit=True)
        return cls(text, code, probed)


class ProbedFiles:
    """Compiled once: it takes longer than most tests."""

    def __init__(self) -> None:
        self._files: dict[str, ProbedFile] = {}

    def file(self, filename: str, text: str) -> ProbedFile:
        """One file. Raises what compiling a source raises."""
        known = self._files.get(filename)
        if known is None or known.text != text:
            known = self._files[filename] = ProbedFile.of(filename, text)
        return known


class Probes:
    """`Lines` by calls that are compiled into the live functions.

    Made by the process that is forked for each measurement: to make them takes longer than to put them in.
    """

    def __init__(self, functions: LiveFunctions, sources: Mapping[str, str], probed: ProbedFiles) -> None:
        self.hits: set[Line] = set()
        self._probed = probed
        files = [probed.file(filename, text) for filename, text in sources.items()]
        self._codes = [
            pair for file in files for pair in places(functions, file.code, with_constant(file.probed, self.hits.add))
        ]

    def begin(self) -> None:
        """Put them in."""
        for function, code in self._codes:
            function.__code__ = code

    def again(self) -> None:
        """Probes note every hit."""

    def noting(self, code: types.CodeType, text: str) -> types.CodeType:
        """The code with probes."""
        return with_constant(self._probed.file(code.co_filename, text).probed, self.hits.add)


def places(
    functions: LiveFunctions, old: types.CodeType, new: types.CodeType
) -> Iterator[tuple[types.FunctionType, types.CodeType]]:
    """The live functions of the one tree of code objects, each with the code at the same place in the other."""
    yield from functions.given(old, new)
    for one, two in zip(nested(old), nested(new), strict=False):
        yield from places(functions, one, two)


def with_constant(code: types.CodeType, value: object) -> types.CodeType:
    """The code with `value` in the place of the sentinel, everywhere in it."""
    constants = tuple(
        with_constant(constant, value)
        if isinstance(constant, types.CodeType)
        else (value if isinstance(constant, str) and constant == SENTINEL else constant)
        for constant in code.co_consts
    )
    return code.replace(co_consts=constants)


class _Instrument(ast.NodeTransformer):
    """Puts a probe before each statement inside of functions, and into lambdas."""

    def __init__(self, filename: str) -> None:
        self._filename, self._in_function = filename, False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        outer, self._in_function = self._in_function, False
        node.body = [self.visit(statement) for statement in node.body]
        self._in_function = outer
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        node.body = ast.copy_location(ast.BoolOp(ast.Or(), [self._probe(node.body), node.body]), node.body)
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                block = self._in_function and value and all(isinstance(each, ast.stmt) for each in value)
                visited = [self.visit(each) if isinstance(each, ast.AST) else each for each in value]
                setattr(node, name, self._block(value, visited) if block else visited)
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        return node

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        outer, self._in_function = self._in_function, True
        self.visit(node.args)  # lambdas in defaults
        body = [self.visit(statement) for statement in node.body]
        self._in_function = outer
        node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
        docstring = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
        node.body = self._block(node.body[docstring:], body[docstring:])
        if docstring:
            node.body.insert(0, body[0])
        return node

    def _block(self, originals: list[ast.stmt], visited: list[ast.stmt]) -> list[ast.stmt]:
        block: list[ast.stmt] = []
        for original, statement in zip(originals, visited, strict=False):
            block += [ast.copy_location(ast.Expr(self._probe(original)), original), statement]
        return block

    def _probe(self, node: ast.stmt | ast.expr) -> ast.expr:
        call = ast.Call(ast.Constant(SENTINEL), [ast.Constant((self._filename, node.lineno))], [])  # type: ignore[arg-type]
        return ast.fix_missing_locations(ast.copy_location(call, node))


class ProcessWatch:
    """Notes whether a process was started that may run the project's code or read it.

    These are forks, shells, Python, its programs, and others that get a path of the project. multiprocessing starts
    processes past the audit events, and lets a server that it started before fork them.
    """

    def __init__(self, roots: Sequence[str]) -> None:
        """`roots`: the project's names."""
        self.started = False
        self._roots = tuple(os.path.join(os.path.realpath(root), "") for root in roots)
        note_starts(self.note, self._concerns)

    def note(self) -> None:
        """Code of the project may run that nobody sees."""
        self.started = True

    def _concerns(self, event: str, arguments: tuple[Any, ...]) -> bool:
        if event != "subprocess.Popen":
            return True
        executable, argv, cwd, *_ = arguments
        words = [executable, *argv] if isinstance(argv, (list, tuple)) else [executable, argv]
        names = [os.fsdecode(word) for word in words if isinstance(word, (str, bytes, os.PathLike))]
        paths = [*(name for name in names[:2] if os.sep in name), *names[2:]]
        return _may_run_python(names) or any(self._leads_here(os.fsdecode(cwd or ""), path) for path in paths)

    def _leads_here(self, directory: str, argument: str) -> bool:
        path = argument.rpartition("=")[2]  # of an option
        try:
            real = os.path.realpath(os.path.join(directory, path))
        except ValueError:  # an argument that the kernel refuses
            return False
        return bool(path) and os.path.join(real, "").startswith(self._roots) and os.path.exists(real)


def _may_run_python(names: Sequence[str]) -> bool:
    own = os.path.dirname(sys.executable)
    return any(
        "python" in os.path.basename(name) or name.startswith(own + os.sep) or name == "-c" for name in names
    ) or any(os.path.exists(os.path.join(own, name)) for name in names[:2] if name and os.sep not in name)


class TestCoverage:
    """A pytest plugin: what each test runs, with what the fixtures that it uses have run."""

    def __init__(self) -> None:
        self._lines: Lines | None = None
        self._watch: ProcessWatch | None = None
        self._late: LateImports | None = None
        self._fixtures: dict[int, set[Line]] = {}
        self._spawning_fixtures: set[int] = set()

    def measure(self, lines: Lines, filenames: Collection[str], roots: Sequence[str]) -> None:
        """From now on, in this process, also of the files `filenames` that are imported later.

        What is read below `roots` is noted by its path there.
        """
        self._lines, self._watch = lines, ProcessWatch(roots)
        self._late = LateImports(lines, filenames, self._watch.note)
        TextReads(*roots, note=lambda path: lines.hits.add((path, TEXT)), hide=self._watch.note).begin()
        lines.begin()
        lines.again()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        """Note what a fixture of a wider scope runs while it is set up."""
        if self._lines is None or self._watch is None or fixturedef.scope == "function":
            return (yield)
        before, started = set(self._lines.hits), self._watch.started
        self._lines.hits.clear()
        self._watch.started = False
        self._lines.again()
        try:
            return (yield)
        finally:
            self._fixtures.setdefault(id(fixturedef), set()).update(self._lines.hits)
            if self._watch.started:
                self._spawning_fixtures.add(id(fixturedef))
            self._watch.started = self._watch.started or started
            self._lines.hits.update(before)

    def of(self, item: Any) -> tuple[set[Line], bool]:
        """The lines that `item`, which has just run, has run, and whether it started a process."""
        assert self._lines is not None
        assert self._watch is not None
        lines, started = set(self._lines.hits), self._watch.started
        self._lines.hits.clear()
        self._watch.started = False
        self._lines.again()
        info = getattr(item, "_fixtureinfo", None)
        for definitions in info.name2fixturedefs.values() if info is not None else ():
            for definition in definitions:
                lines |= self._fixtures.get(id(definition), set())
                started = started or id(definition) in self._spawning_fixtures
        return lines, started


def lines_of(functions: LiveFunctions, sources: Mapping[str, str], probed: ProbedFiles) -> Lines:
    """The best `Lines` that this interpreter has, for the texts `sources` by the names of their files."""
    return Monitoring(functions, sources) if monitoring is not None else Probes(functions, sources, probed)

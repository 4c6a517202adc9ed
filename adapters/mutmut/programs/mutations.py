"""Mutations: mutmut's mutations of one file, in mutmut's order, each with its exact place in the text.

The place is the part that differs, not the node that mutmut replaces, which may be a call of many lines. It is found in
two steps: the text of mutmut's node before and after, checked against the file, and then the same change for less text.

A mutation whose text would run into its neighbour (`if(not a):` becomes `ifa:`) makes mutmut 3.8.1 refuse the file with
InvalidGeneratedSyntaxException: it is left out, and the others are kept.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import libcst as cst
from libcst import PartialParserConfig
from libcst._nodes.internal import CodegenState
from libcst.metadata import MetadataWrapper, PositionProvider, WhitespaceInclusivePositionProvider
from msp_bridge_in_project.python_engine.programs.narrowing import Edit, narrowed
from mutmut.configuration import config
from mutmut.mutation import file_mutation
from mutmut.mutation.file_mutation import Mutation, MutationVisitor
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import get_ignored_lines
from mutmut.mutation.trampoline_templates import mangle_function_name
from mutmut.utils.format_utils import get_mutant_name

from .mutators import difference
from .pieces import Piece, pieces_of


@dataclass(frozen=True)
class TextChange:
    """`code[start:end]` becomes `replacement`; offsets in code points."""

    handle: str  # mutmut's name of the mutant: pkg.module.x_function__mutmut_3
    mutator: str
    start: int
    end: int
    replacement: str


Known = tuple[Piece, tuple[str, ...]]  # with the patterns that lines are left out by
ByFunction = dict[str, list[tuple[str, Edit]]]  # mutmut's name of a function to the mutators and places in it


class Mutations:
    """The mutations of the files of a project; the last ones are kept.

    Its methods raise what mutmut raises when it can't make them, ParserSyntaxError for instance.
    """

    def __init__(self) -> None:
        # path to the rest of the file and its pieces
        self._known: dict[str, tuple[str, dict[Known, ByFunction]]] = {}

    def changes(self, path: str, code: str) -> Iterator[TextChange]:
        """The changes that can become active: of functions of the same name, Python knows only the last."""
        for name, found in self.by_function(path, code).items():
            for number, (mutator, edit) in enumerate(found, start=1):
                yield TextChange(get_mutant_name(Path(path), f"{name}__mutmut_{number}"), mutator, *edit)

    def know(self, path: str, code: str, rows: Iterable[tuple[str, str, int, int, str]]) -> None:
        """Remember the `changes` of a file that another process has found: `rows` of the fields of each."""
        patterns = tuple(config().do_not_mutate_patterns)
        pieces = pieces_of(code, line_by_line=bool(patterns))
        if pieces is None or path in self._known:
            return
        starts = [piece.start for piece in pieces.functions]
        known: dict[Known, ByFunction] = {}
        for handle, mutator, start, end, replacement in rows:
            piece = pieces.functions[bisect_right(starts, start) - 1]
            name = handle.removeprefix(get_mutant_name(Path(path), "")).rpartition("__mutmut_")[0]
            found = known.setdefault((piece, patterns), {}).setdefault(name, [])
            found.append((mutator, piece.cut((start, end, replacement))))
        self._known[path] = (pieces.rest, known)

    def by_function(self, path: str, code: str) -> ByFunction:
        """Make mutants as the function `by_function` does; only those of changed functions are made again."""
        patterns = tuple(config().do_not_mutate_patterns)
        pieces = pieces_of(code, line_by_line=bool(patterns))
        if pieces is None:
            return by_function(path, code)
        known: dict[Known, ByFunction] = {}
        rest, before = self._known.get(path, ("", known))
        merged: ByFunction = {}
        try:
            if rest != pieces.rest:
                cst.parse_module(pieces.rest)
            for piece in pieces.functions:
                key = (piece, patterns)
                if key not in known:
                    known[key] = before[key] if key in before else by_function(path, piece.code, piece.indent)
                for name, found in known[key].items():
                    merged[name] = [(mutator, piece.placed(edit)) for mutator, edit in found]
        except cst.ParserSyntaxError:
            return by_function(path, code)  # raises it with the lines of the file
        self._known[path] = (pieces.rest, known)
        return merged


def by_function(path: str, code: str, indent: str | None = None) -> ByFunction:
    """The mutations of a text; of functions of the same name, those of the last.

    `indent` is what most of the file is indented by; None: it is seen from the text.
    """
    made_by = _Operators()
    layout = PartialParserConfig() if indent is None else PartialParserConfig(default_indent=indent)
    wrapper = MetadataWrapper(cst.parse_module(code, layout), unsafe_skip_copy=True)  # a parser shares no nodes
    visitor = MutationVisitor(made_by.noting(mutation_operators), get_ignored_lines(path, code, wrapper))
    wrapper.visit(visitor)
    places = _Places(wrapper, code, visitor.mutations)
    grouped: dict[int, list[tuple[str, Edit]]] = {}
    for mutation in visitor.mutations:
        if mutation.contained_by_top_level_function is None:
            continue
        mutator, edit = places.of(mutation, made_by.name(mutation))
        if not _glued(code, *edit):
            grouped.setdefault(id(mutation.contained_by_top_level_function), []).append((mutator, edit))
    return {name: grouped.get(id(function), []) for name, function in _live(wrapper.module).items()}


def _live(module: cst.Module) -> dict[str, cst.FunctionDef]:
    found: dict[str, cst.FunctionDef] = {}
    for statement in module.body:
        if isinstance(statement, cst.FunctionDef):
            found[mangle_function_name(name=statement.name.value, class_name=None)] = statement
        elif isinstance(statement, cst.ClassDef) and isinstance(statement.body, cst.IndentedBlock):
            for method in statement.body.body:
                if isinstance(method, cst.FunctionDef):
                    found[mangle_function_name(name=method.name.value, class_name=statement.name.value)] = method
    return found


class _Operators:
    """Records which operator made which node, which mutmut does not."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[str, cst.CSTNode]] = {}  # the node is kept so that its id stays its own

    def noting(
        self, operators: Iterable[tuple[type, Callable[[Any], Iterable[cst.CSTNode]]]]
    ) -> list[tuple[type, Any]]:
        return [(kind, self._noting(operator)) for kind, operator in operators]

    def _noting(self, operator: Callable[[Any], Iterable[cst.CSTNode]]) -> Callable[[Any], Iterator[cst.CSTNode]]:
        def wrapped(node: Any) -> Iterator[cst.CSTNode]:
            for mutated in operator(node):
                self._names[id(mutated)] = (operator.__name__, mutated)
                yield mutated

        return wrapped

    def name(self, mutation: Mutation) -> str:
        return self._names[id(mutation.mutated_node)][0]


class _Places:
    """Where a mutation is in the text."""

    def __init__(self, wrapper: MetadataWrapper, code: str, mutations: Iterable[Mutation]) -> None:
        self._module, self._code = wrapper.module, code
        self._line_starts = [0]
        for line in code.split("\n"):
            self._line_starts.append(self._line_starts[-1] + len(line) + 1)
        self._outer: Mapping[cst.CSTNode, Any] = wrapper.resolve(WhitespaceInclusivePositionProvider)
        self._inner: Mapping[cst.CSTNode, Any] = wrapper.resolve(PositionProvider)
        nodes = {id(mutation.original_node) for mutation in mutations}
        nodes |= {id(mutation.contained_by_top_level_function) for mutation in mutations}
        self._indents = _Indents(wrapper.module.default_indent, nodes)
        wrapper.module.visit(self._indents)

    def of(self, mutation: Mutation, operator: str) -> tuple[str, Edit]:
        """The name of the mutator, and the edit: of what differs or, where that has no position, of the function."""
        original, mutated = mutation.original_node, mutation.mutated_node
        found = difference(operator, original, mutated)
        edit = self._edit(original, mutated)
        if edit is not None and found.first in self._inner and found.last in self._inner:
            start, end = self._span(self._inner[found.first])[0], self._span(self._inner[found.last])[1]
            edit = self._trimmed(narrowed(self._code, edit, start, end))
        if edit is None:
            function = mutation.contained_by_top_level_function
            assert function is not None
            edit = self._edit(function, cast(cst.CSTNode, file_mutation.deep_replace(function, original, mutated)))
        if edit is None:
            raise ValueError(f"the text of a mutant in {self._code[:60]!r}… can't be found in the file")
        return found.mutator, edit

    def _edit(self, node: cst.CSTNode, mutated: cst.CSTNode) -> Edit | None:
        if node not in self._outer:
            return None
        start, end = self._span(self._outer[node])
        before, after = self._render(node, mutated)
        if self._code[start:end] != before:
            return None
        if node in self._inner:
            inner_start, inner_end = self._span(self._inner[node])
            start, end, after = _shrink(self._code, (start, end, after), inner_start - start, end - inner_end)
        return self._trimmed((start, end, after))

    def _trimmed(self, edit: Edit) -> Edit:
        """Without the blanks that both texts begin or end with."""
        start, end, after = edit
        while end - start and after and self._code[start] == after[0] and after[0] in " \t":
            start, after = start + 1, after[1:]
        while end - start and after and self._code[end - 1] == after[-1] and after[-1] in " \t":
            end, after = end - 1, after[:-1]
        return start, end, after

    def _span(self, range_: Any) -> tuple[int, int]:
        start, end = range_.start, range_.end
        return self._line_starts[start.line - 1] + start.column, self._line_starts[end.line - 1] + end.column

    def _render(self, *nodes: cst.CSTNode) -> Iterator[str]:
        indent = self._indents.found.get(id(nodes[0]), "")
        for node in nodes:
            state = CodegenState(
                default_indent=self._module.default_indent, default_newline=self._module.default_newline
            )
            if indent:
                state.increase_indent(indent)
            node._codegen(state)
            yield "".join(state.tokens)


class _Indents(cst.CSTVisitor):
    """The indentation at which each of the wanted nodes stands."""

    def __init__(self, default: str, wanted: set[int]) -> None:
        super().__init__()
        self._default, self._wanted = default, wanted
        self._stack = [""]
        self.found: dict[int, str] = {}

    def on_visit(self, node: cst.CSTNode) -> bool:
        if id(node) in self._wanted:
            self.found[id(node)] = self._stack[-1]
        if isinstance(node, (cst.IndentedBlock, cst.Match)):  # a match statement indents its cases itself
            self._stack.append(self._stack[-1] + (self._default if node.indent is None else node.indent))
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, (cst.IndentedBlock, cst.Match)):
            self._stack.pop()


def _shrink(code: str, place: Edit, head: int, tail: int) -> Edit:
    """Without the white space and comments around the node that both texts share."""
    start, end, after = place
    if head > 0 and after.startswith(code[start : start + head]):
        start, after = start + head, after[head:]
    if tail > 0 and len(after) >= tail and after.endswith(code[end - tail : end]):
        end, after = end - tail, after[: len(after) - tail]
    return start, end, after


def _glued(code: str, start: int, end: int, replacement: str) -> bool:
    """Whether a word in the replacement runs into a word beside it that it didn't touch before."""
    before = (
        start > 0 and _word(code[start - 1]) and replacement[:1] and _word(replacement[0]) and not _word(code[start])
    )
    after = end < len(code) and _word(code[end]) and replacement and _word(replacement[-1]) and not _word(code[end - 1])
    return bool(before or after)


def _word(character: str) -> bool:
    return character.isalnum() or character == "_"

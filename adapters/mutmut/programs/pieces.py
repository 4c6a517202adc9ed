"""Pieces: each function of a file as a text of its own, so that an edit costs mutmut one function, and not the file.

Theory of operation
-------------------
The problem. mutmut makes the mutations of a whole file, which takes a second for 600 lines, and an editor asks for them
after each edit, most of which are of one function.

Why the pieces of a file have its mutations. mutmut decides about a node by what is around it in its function, and by
the class around the function (an Enum's `__init__` is not mutated). So a piece is the text of a function at the top
level, or of a method, with the head of its class. Nothing outside of functions is mutated: of the rest of the file, in
which each function is `pass`, one has to know only that mutmut's parser accepts it. Three things reach further:

* pragmas (`# pragma: no mutate start`): a file that has one is no set of pieces.
* `do_not_mutate_patterns` is asked line by line, of other lines than Python's own: a file with a form feed, for
  instance, is no set of pieces then.
* libcst takes the first indentation of a file for its usual one: the pieces are parsed with that of the file.

Where a function stands in the file is no part of a piece: pieces that an edit has moved are equal to what they were.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass, field

from msp_bridge_in_project.python_engine.programs.narrowing import Edit

PRAGMA = re.compile("# pragma:.*no mutate")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Piece:
    """A function of a file."""

    head: str  # of its class, up to the body; empty for a function at the top level
    text: str  # whole lines, decorators included
    indent: str  # the file's
    start: int = field(compare=False)  # the offset of `text` in the file

    @property
    def code(self) -> str:
        """A module with this function alone."""
        return self.head + self.text

    def placed(self, edit: Edit) -> Edit:
        """An edit of `code`, as one of the file."""
        start, end, replacement = edit
        moved = self.start - len(self.head)
        return start + moved, end + moved, replacement

    def cut(self, edit: Edit) -> Edit:
        """An edit of the file, as one of `code`."""
        start, end, replacement = edit
        moved = self.start - len(self.head)
        return start - moved, end - moved, replacement


@dataclass(frozen=True)
class Pieces:
    """The parts of a file."""

    functions: tuple[Piece, ...]  # in their order
    rest: str  # the file with `pass` in the place of each


def pieces_of(code: str, *, line_by_line: bool) -> Pieces | None:
    """None when the file must be mutated as a whole.

    `line_by_line`: patterns select lines.
    """
    if PRAGMA.search(code) or (line_by_line and code.splitlines() != code.removesuffix("\n").split("\n")):
        return None
    try:
        tree, indent = ast.parse(code), _first_indent(code)
    except (SyntaxError, ValueError, RecursionError, tokenize.TokenError):  # mutmut's own parser may say more
        return None
    return _Cut(code, indent).of(tree)


class _Cut:
    """Takes a file apart."""

    def __init__(self, code: str, indent: str) -> None:
        self._code, self._indent = code, indent
        self._starts = [0]  # offsets of the lines
        for line in code.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._functions: list[Piece] = []
        self._rest: list[str] = []
        self._done = 0  # the offset up to which `_rest` has come

    def of(self, tree: ast.Module) -> Pieces:
        for node in tree.body:
            if isinstance(node, FUNCTIONS):
                self._take(node, "")
            elif isinstance(node, ast.ClassDef) and _first_line(node.body[0]) > node.lineno:
                head = self._code[self._starts[_first_line(node) - 1] : self._starts[_first_line(node.body[0]) - 1]]
                for method in node.body:
                    if isinstance(method, FUNCTIONS):
                        self._take(method, head)
        rest = "".join([*self._rest, self._code[self._done :]])
        return Pieces(tuple(self._functions), rest)

    def _take(self, node: ast.FunctionDef | ast.AsyncFunctionDef, head: str) -> None:
        start, end = self._starts[_first_line(node) - 1], self._starts[node.end_lineno or node.lineno]
        self._functions.append(Piece(head, self._code[start:end], self._indent, start))
        margin = self._code[start : start + node.col_offset]
        self._rest += [self._code[self._done : start], f"{margin}pass\n"]
        self._done = end


def _first_indent(code: str) -> str:
    """The indent of the first block, as libcst has it."""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.INDENT:
            return token.string
    return " " * 4


def _first_line(node: ast.stmt) -> int:
    """The first line of a statement with its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])

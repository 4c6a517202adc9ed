"""Source file: one version of a Python file, and which code a mutant of it changes; see `live_code`."""

from __future__ import annotations
import __future__

import ast
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import accumulate
from operator import or_

from .live_code import CodeChange, Segment, pairs

Lines = tuple[int, int]  # the first and the last
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class SourceFile:
    """One version of a Python file, its text with `\\n` at the end of each line."""

    def __init__(self, filename: str, text: str) -> None:
        """`filename`: as its modules have it in `__file__`. Raises SyntaxError, ValueError or RecursionError."""
        self.filename, self.text, self._tree = filename, text, ast.parse(text)
        self._starts = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))  # offsets of the lines
        statements = (node for node in ast.walk(self._tree) if isinstance(node, ast.stmt))
        self._statements = [
            ((first_line(node), node.col_offset), node.end_lineno or node.lineno, node) for node in statements
        ]
        future = [node for node in self._tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
        self._flags = reduce(or_, (_flag_of(name.name) for node in future for name in node.names), 0)
        names = sorted(set(_imported(self._tree.body)))
        self._imports = f"\nimport {', '.join(names)}\n" if names else ""

    def change(self, start: int, end: int, replacement: str) -> CodeChange:
        """The change of the file when `replacement` stands for `text[start:end]`. Raises what compiling it raises."""
        segment = self._segment(start, end, replacement)
        old, new = segment.compiled()
        found = [pair for pair in pairs(old, new) if pair.changed]
        return CodeChange.of(segment, self.statement(start, end), found)

    def _lines(self, start: int, end: int) -> Lines:
        """The lines of `text[start:end]`."""
        return bisect_right(self._starts, start), bisect_right(self._starts, max(start, end - 1))

    def _segment(self, start: int, end: int, replacement: str) -> Segment:
        first, last = self._lines(start, end)
        same_lines = replacement.count("\n") == self.text.count("\n", start, end)
        classes, part = _part(self._tree.body, first, last) if same_lines else ((), None)
        if part is None:
            return Segment(self.filename, self._flags, 1, self.text, start, end, replacement)
        line, begin, stop = part[0], self._starts[part[0] - 1], self._starts[part[1]]
        old, start, end = self.text[begin:stop], start - begin, end - begin
        return Segment(self.filename, self._flags, line, old, start, end, replacement, self._imports, classes)

    def statement(self, start: int, end: int) -> range:
        """The lines of the innermost statement around `text[start:end]`; of a compound one, those before its body."""
        first, last = self._lines(start, end)
        place = first, len(self.text[self._starts[first - 1] : start].encode())
        best: ast.stmt | None = None
        latest = 0, 0
        for begin, stop, node in self._statements:
            if latest <= begin <= place and last <= stop:
                best, latest = node, begin
        if best is None:
            return range(first, last + 1)
        if isinstance(best, DEFINITIONS):
            return range(min(first, best.lineno), max(last, best.lineno) + 1)  # of its head, where it is made
        body = getattr(best, "body", None) or getattr(best, "cases", None)
        if body:
            head = body[0].lineno if isinstance(body[0], ast.stmt) else body[0].pattern.lineno
            return range(best.lineno, max(head, last + 1, best.lineno + 1))
        return range(best.lineno, (best.end_lineno or best.lineno) + 1)


def _part(body: Sequence[ast.stmt], first: int, last: int) -> tuple[tuple[str, ...], Lines | None]:
    """The lines of the statement of `body` that the lines `first` to `last` are in, or of a method of such a class.

    Before it the names of the classes around it. None where they are in no statement, or another one has these lines.
    """
    found = [node for node in body if first_line(node) <= last and first <= (node.end_lineno or node.lineno)]
    begin, end = (first_line(found[0]), found[0].end_lineno or last) if len(found) == 1 else (last + 1, first)
    if not begin <= first <= last <= end:
        return (), None
    if isinstance(node := found[0], ast.ClassDef) and not getattr(node, "type_params", ()):
        classes, part = _part([each for each in node.body if isinstance(each, DEFINITIONS)], first, last)
        if part is not None:
            return (node.name, *classes), part
    return (), (begin, end)


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names that statements at the top level of a file import, also within `if`, `try` and so on."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            continue  # its flags are known
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names if alias.name != "*")
        elif not isinstance(node, (*DEFINITIONS, ast.expr)):
            yield from _imported(ast.iter_child_nodes(node))


def first_line(node: ast.stmt) -> int:
    """The first line of a statement with its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _flag_of(feature: str) -> int:
    """The flag of a `from __future__ import` in code objects: 0 if the feature is in the language by now."""
    found: __future__._Feature = getattr(__future__, feature)
    mandatory = found.getMandatoryRelease()
    return 0 if mandatory is not None and mandatory <= sys.version_info else found.compiler_flag

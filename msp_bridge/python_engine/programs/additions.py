"""Additions: what only one of two versions of a source defines, and nothing else can have referred to.

Theory of operation
-------------------
The problem: an edit often comes with a new function, a constant or an import. That changes code at module level, which
ran at import, and so it might concern every test. But a name that only edited code mentions leads no other code
anywhere. So it is left out of both versions before they are compared. Its lines are left blank: others keep theirs.

Left out are, at the top level of the file and in classes without bases and decorators that both versions have,
functions without decorators but `classmethod`, `staticmethod` and `property`, whose default values are literals, and
names that are given a literal; at the top level imports from the standard library, and of further names from a module
that the other version imports, too. Each must be used by its name in the file: what is not may be found by it in other
ways, such as a method `visit_…`, or a setting. Names with two underscores at both ends mean something to Python, and
stay.

Code that has not been edited may refer to a name of the module where it mentions both (by `from … import *` anywhere),
and to an attribute of a class anywhere: another class may have it as well. Code that lists names (`dir`, `vars`) may
find any of them; that of a module where it mentions the module, or walks over the modules of a package.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeGuard

from .mentions import encoded, mentions
from .source_file import first_line

HARMLESS = {"classmethod", "property", "staticmethod"}  # as decorators
STAR = b"import *"
LISTS = re.compile(rb"\b(?:dir|vars|globals)\(|\bgetmembers|(?<!self\.)\b__dict__")
WALKS = re.compile(rb"\b(?:iter_modules|walk_packages)\b")
Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Reduced:
    """A version of a source without its additions."""

    text: str
    names: frozenset[str]  # of the module that were left out
    attributes: frozenset[str]  # of its classes

    def may_be_used(self, path: str, other: str, texts: Collection[bytes]) -> bool:
        """Whether code that has not been edited may refer to what was left out.

        That is in `other`, the version of the file without it, or in the `texts` of other files.
        """
        file = PurePosixPath(path)
        module = {file.parent.name if file.stem == "__init__" else file.stem}
        near = [text for text in texts if mentions(text, module)]
        anywhere = self.attributes | self.names if any(STAR in text for text in near) else self.attributes
        listing = any(map(LISTS.search, [encoded(other), *(texts if self.attributes else near)]))
        return (
            listing
            or any(map(WALKS.search, texts))
            or mentions(encoded(other), self.names | self.attributes)
            or any(mentions(text, self.names) for text in near)
            or any(mentions(text, anywhere) for text in texts)
        )


def reduced(text: str, other: str) -> Reduced:
    """Leave out of `text` what `other` does not define. Raises SyntaxError, ValueError or RecursionError."""
    tree, against = ast.parse(text), ast.parse(other)
    lines, names, attributes = text.split("\n"), set[str](), set[str]()
    used = {node.attr if isinstance(node, ast.Attribute) else node.id for node in ast.walk(tree) if _is_use(node)}
    for body, node in list(_only_in(tree.body, against.body)):
        if not used.issuperset(_names(node)):
            continue
        (names if body is tree.body else attributes).update(_names(node))
        body.remove(node)
        _replace(lines, node, "")
    for node, added in list(_further_imports(tree.body, against.body)):
        names.update(name for alias in added for name in (alias.name.partition(".")[0], alias.asname) if name)
        node.names = [alias for alias in node.names if alias not in added]
        _replace(lines, node, ast.unparse(node) if node.names else "")
        if not node.names:
            tree.body.remove(node)
    left = "\n".join(lines)
    if ast.dump(ast.parse(left)) != ast.dump(tree):
        raise ValueError("statements share a line")
    return Reduced(left, frozenset(names), frozenset(attributes))


def _only_in(body: list[ast.stmt], other: Sequence[ast.stmt]) -> Iterator[tuple[list[ast.stmt], ast.stmt]]:
    """The statements that may be left out, each after the body that it is in."""
    bound = {name for node in other for name in _names(node)}
    classes = {node.name: node for node in other if isinstance(node, ast.ClassDef)}
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name in classes and not _makes_more_of_it(node):
            yield from _only_in(node.body, classes[node.name].body)
        elif _is_inert(node) and bound.isdisjoint(_names(node)):
            yield body, node


def _makes_more_of_it(node: ast.ClassDef) -> bool:
    """Whether something may use each name in a class, as a dataclass does with its fields."""
    return bool(node.bases or node.keywords or node.decorator_list)


def _is_use(node: ast.AST) -> TypeGuard[ast.Attribute | ast.Name]:
    return isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load)


def _names(node: ast.stmt) -> list[str]:
    """The names that a statement binds, as far as it may be an addition."""
    if isinstance(node, Definition):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _is_inert(node: ast.stmt) -> bool:
    """Whether it only binds names, none of which means something to Python."""
    if any(name.startswith("__") and name.endswith("__") for name in _names(node)):
        return False
    if isinstance(node, Definition):
        defaults = [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
        harmless = all(isinstance(each, ast.Name) and each.id in HARMLESS for each in node.decorator_list)
        return harmless and all(map(_is_literal, defaults))
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Name) for target in node.targets) and _is_literal(node.value)
    return isinstance(node, ast.AnnAssign) and bool(_names(node)) and node.value is not None and _is_literal(node.value)


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _further_imports(
    body: Sequence[ast.stmt], other: Sequence[ast.stmt]
) -> Iterator[tuple[ast.Import | ast.ImportFrom, list[ast.alias]]]:
    """Imports of names that `other` does not import, which run nothing that was not run before."""
    known = {(_module(node), alias.name, alias.asname) for node in _imports(other) for alias in node.names}
    modules = {module for module, _, _ in known}
    for node in _imports(body):
        added = [alias for alias in node.names if (_module(node), alias.name, alias.asname) not in known]
        if added and all(_is_harmless(_module(node), alias.name, modules) for alias in added):
            yield node, added


def _imports(body: Sequence[ast.stmt]) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]


def _module(node: ast.Import | ast.ImportFrom) -> str | None:
    """The module that names are imported from, with its dots; None where modules are imported."""
    return "." * node.level + (node.module or "") if isinstance(node, ast.ImportFrom) else None


def _is_harmless(module: str | None, name: str, modules: Collection[str | None]) -> bool:
    if module is not None and module != "__future__" and module in modules:
        return name != "*" and bool(module.strip("."))  # a name, and no module of a package
    return (module or name).partition(".")[0] in sys.stdlib_module_names - {"__future__"} and name != "*"


def _replace(lines: list[str], node: ast.stmt, text: str) -> None:
    """Put `text`, of one line, in the place of a statement; the others keep their lines."""
    first, last = first_line(node), node.end_lineno or node.lineno
    lines[first - 1 : last] = [text, *[""] * (last - first)]

"""Effects of importing test files: what that may do for tests of other files.

Theory of operation
-------------------
A test file may register something when it is imported: a function by a decorator, or a subclass of a class that other
tests enumerate. Then these may run its functions, and by them code of the project that nobody else runs. A registry may
be used by many, and what it does stay unseen: so the file is read.

*Harmless* at module level and in classes are imports, literals, definitions, and calls of Python's own modules and
types, of pytest and of hypothesis, such as marks. All else is an effect: a call of what the project, a package or the
file itself has defined, and a statement that does more than define or assign names.

What imports and inheritance lead to is seen in the process that has collected the tests (`Imported`): which other files
and packages were loaded, and which classes inherit from the project's sources, or from packages.
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from .imports import is_of_environment, is_of_python
from .loaded_modules import module_files

PURE = frozenset({"_pytest", "hypothesis", "msp_bridge", "pluggy", "pytest", *sys.stdlib_module_names})
TYPES = frozenset(
    {
        *("bool", "bytes", "classmethod", "dict", "enumerate", "float", "frozenset", "int", "len", "list", "object"),
        *("property", "range", "set", "staticmethod", "str", "tuple", "zip"),
        *(name for name, each in vars(builtins).items() if isinstance(each, type) and issubclass(each, BaseException)),
    }
)
CLASSES, MODULES = "<classes>", "<modules>"
Definition = ast.FunctionDef | ast.AsyncFunctionDef


class ImportEffects:
    """The effects in the text of a test file. Raises SyntaxError, ValueError or RecursionError."""

    def __init__(self, text: str) -> None:
        self._body = ast.parse(text).body
        self._harmless = set(TYPES)
        for node in self._body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.asname or alias.name.partition(".")[0] for alias in node.names}
                self._harmless = self._harmless | names if _is_pure(node) else self._harmless - names
            elif isinstance(node, ast.Assign) and not self._has_effect(node):
                self._harmless.update(each.id for each in node.targets if isinstance(each, ast.Name))

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return any(map(self._has_effect, self._body))

    @property
    def code(self) -> list[str]:
        """The code that they may lead to: everything but harmless tests, and the bodies of others."""
        return list(self._code(self._body))

    def _code(self, body: Sequence[ast.stmt]) -> Iterator[str]:
        for node in body:
            if isinstance(node, Definition) and node.name.startswith("test"):
                yield from map(ast.dump, _evaluated(node) if self._has_effect(node) else ())
            elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                yield from map(ast.dump, _evaluated(node))
                yield from self._code(node.body)
            else:
                yield ast.dump(node)

    def _has_effect(self, node: ast.stmt) -> bool:
        if isinstance(node, Definition):
            return any(map(self._calls, _evaluated(node)))
        if isinstance(node, ast.ClassDef):
            return any(map(self._calls, _evaluated(node))) or any(map(self._has_effect, node.body))
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return not all(isinstance(each, ast.Name) for each in targets) or self._calls(node.value)
        if isinstance(node, ast.Expr):
            return not isinstance(node.value, ast.Constant)
        return not isinstance(node, ast.Import | ast.ImportFrom | ast.Pass)

    def _calls(self, node: ast.AST | None) -> bool:
        """Whether to evaluate it calls what is not harmless."""
        if node is None or isinstance(node, ast.Lambda):
            return False
        if isinstance(node, ast.Call):
            root = _root(node.func)
            if isinstance(root, ast.Name) and root.id not in self._harmless:
                return True
        return any(map(self._calls, ast.iter_child_nodes(node)))


def _is_pure(node: ast.Import | ast.ImportFrom) -> bool:
    modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    return not getattr(node, "level", 0) and all(module.partition(".")[0] in PURE for module in modules)


def _evaluated(node: Definition | ast.ClassDef) -> list[ast.expr]:
    """The expressions that defining it evaluates; a decorator is called."""
    calls: list[ast.expr] = [ast.Call(each, [], []) for each in node.decorator_list]
    if isinstance(node, ast.ClassDef):
        return [*calls, *node.bases, *(keyword.value for keyword in node.keywords)]
    return [*calls, *node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]


def _root(node: ast.expr) -> ast.expr:
    """The first part of `a.b(c)[d].e`."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def imported(place: str, sources: Collection[str], tests: Collection[str]) -> dict[str, list[str]]:
    """The `CLASSES` and the `MODULES` that this process has imported: see above. `tests` are the files of tests."""
    root, of_environment = os.path.realpath(place), cache(is_of_environment)  # many modules are in few directories
    found = {name: _origin(name, file, root, of_environment) for name, file in module_files().items()}
    others = {name for name, origin in found.items() if origin in sources or not (origin in PURE or _is_file(origin))}
    classes = {
        f"{origin}:{_of(each, '__qualname__')}"
        for each in _subclasses(object, {})
        if _is_file(origin := found.get(_module(each), ""))
        if origin not in sources and any(_module(base) in others for base in (*_of(each, "__mro__"), type(each)))
    }
    return {CLASSES: sorted(classes), MODULES: sorted({*found.values()} - PURE - {*tests})}


def _origin(name: str, file: str | None, place: str, of_environment: Callable[[str], bool]) -> str:
    """The path of a module's file, where it is one of the project; else its package."""
    if file is None or of_environment(directory := os.path.dirname(file)):
        return "sys" if file is not None and is_of_python(directory) else name.partition(".")[0]
    path = os.path.relpath(os.path.realpath(file), place)
    return name.partition(".")[0] if path.startswith("../") else path


def _is_file(origin: str) -> bool:
    return origin.endswith(".py")


def _module(kind: type) -> str:
    return str(_of(kind, "__dict__").get("__module__"))


def _of(kind: type, name: str) -> Any:
    """An attribute that each class has. A metaclass may answer `kind.name` with anything."""
    return type.__getattribute__(kind, name)


def _subclasses(kind: type, seen: dict[int, type]) -> Iterable[type]:
    """All of them. By their ids, since a metaclass may make them unhashable."""
    each: type
    for each in type.__subclasses__(kind):
        if id(each) not in seen:
            seen[id(each)] = each
            _subclasses(each, seen)
    return seen.values()

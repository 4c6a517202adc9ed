"""Code: what of a project's Python files a verdict may depend on piece by piece, and what every verdict depends on.

Theory of operation
-------------------
A file is split into the bodies of its functions, and the *rest*: imports, classes, constants, decorators, signatures,
docstrings, names and order of all functions. What runs at import is the rest, and the bodies of the functions that are
called then, which are seen to run (`Result.dependencies`). A body belongs to the outermost function; one that shares a
line with something else is part of the rest.

A body shows at import in few ways without being run, and these count as the rest: whether the function is a generator,
its free variables, `__class__` in a class, and from Python 3.13 the names of attributes that methods set.

Each body, and the text of each file as a whole, has a digest of 8 bytes that its place is part of. What a process ran
is the set of such digests: the same code exists now if all of them do. The rests of all files, and all other files, are
one digest. What can't be parsed here, and what a link of another name leads to, is part of it.
"""

from __future__ import annotations

import ast
import io
import posixpath
import re
import tokenize
import types
import warnings
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from msp_bridge.model import Mutant, Ran
from msp_bridge.reading import content, digest_of
from msp_bridge.toolkit.tree import Kind

FUNCTION = 0x2  # CO_NEWLOCALS: set for functions, not for modules and classes
SIZE = 8  # bytes of a digest of code

Definition = ast.FunctionDef | ast.AsyncFunctionDef


@frozen
class Body:
    """The body of a function: its lines, from the first after the docstring to the last, 1-based and inclusive."""

    name: str  # qualified
    first: int
    last: int


@frozen
class SplitFile:
    """One version of a Python file."""

    digest: str  # of its content
    bodies: tuple[Body, ...]  # by line
    texts: Mapping[str, str]  # of the bodies, by name; of functions of one name, together
    rest: str

    @classmethod
    def of(cls, data: bytes, digest: str) -> SplitFile | None:
        """Split the file `data`; None for what can't be parsed."""
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            text = re.sub("\r\n?", "\n", data.decode(encoding).removeprefix("\ufeff"))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
                code = compile(text, "file", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        return cls._split(text.split("\n"), tree, dict(_outermost(code)), digest)

    @classmethod
    def _split(
        cls, lines: list[str], tree: ast.Module, compiled: Mapping[tuple[str, int], list[Any]], digest: str
    ) -> SplitFile:
        bodies, seen = [], []
        for name, node in _definitions(tree, ""):
            shown = compiled.get((name, _first_line(node)))
            span = _span(node, lines)
            if shown is not None and span is not None:
                bodies.append(Body(name, *span))
                seen.append([name, shown, _attributes(node)])
        texts = dict[str, str]()
        for body in bodies:
            texts[body.name] = texts.get(body.name, "") + "\0" + "\n".join(lines[body.first - 1 : body.last])
        rest, after = list[str](), 0
        for body in bodies:
            rest += [*lines[after : body.first - 1], f"\0{body.name}"]
            after = body.last
        classes = [shown for (_, line), shown in compiled.items() if line < 0]
        return cls(digest, tuple(bodies), texts, "\n".join([*rest, *lines[after:], repr(seen), repr(classes)]))

    def place(self, first: int, last: int) -> tuple[str, int, list[str]]:
        """Where lines are, so that what stands above may become longer.

        The function, or "" for the rest; how many lines to take off; and the functions whose bodies the lines touch.
        """
        touched = [body for body in self.bodies if body.first <= last and first <= body.last]
        names = [body.name for body in touched]
        if touched and touched[0].first <= first:
            number = [body for body in self.bodies if body.name == touched[0].name].index(touched[0])
            return f"{touched[0].name} {number}", touched[0].first, names
        return "", sum(body.last - body.first + 1 for body in self.bodies if body.last < first), names


def _definitions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Definition]]:
    """The functions that are in no other, in the order of their lines."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            yield f"{prefix}{child.name}", child
        elif isinstance(child, ast.ClassDef):
            yield from _definitions(ast.Module(child.body, []), f"{prefix}{child.name}.")
        elif isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield from _definitions(child, prefix)


def _first_line(node: Definition | ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _span(node: Definition, lines: list[str]) -> tuple[int, int] | None:
    """The lines of the body, which has them for itself, with the comments before it."""
    first = node.body[0]
    docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and type(first.value.value) is str
    body = node.body[docstring:]
    if not body or node.end_lineno is None:
        return None
    start = _first_line(body[0])
    line = lines[start - 1]
    before = line.encode()[: body[0].col_offset].decode()
    alone = line.lstrip().startswith("@") if start < body[0].lineno else not before.strip()
    head = node.body[0].end_lineno or node.end_lineno if docstring else node.lineno
    if not alone or start <= head:
        return None
    while start - 1 > head and (not lines[start - 2].strip() or lines[start - 2].lstrip().startswith("#")):
        start -= 1
    return start, node.end_lineno


def _attributes(node: Definition) -> list[str]:
    """Attributes that the function sets on its first argument."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    if not arguments:
        return []
    stored = (each for each in ast.walk(node) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store))
    values = ((each.value, each.attr) for each in stored)
    return sorted({name for value, name in values if isinstance(value, ast.Name) and value.id == arguments[0].arg})


def _outermost(code: types.CodeType) -> Iterator[tuple[tuple[str, int], list[Any]]]:
    """Outermost functions by name and line, and classes, whose line is negative."""
    for constant in code.co_consts:
        if not isinstance(constant, types.CodeType):
            continue
        shown = [constant.co_flags, constant.co_freevars]
        if constant.co_flags & FUNCTION:
            yield (constant.co_qualname, constant.co_firstlineno), shown
            if constant.co_name.startswith("<generic"):
                yield from _outermost(constant)
        else:
            yield (constant.co_qualname, -constant.co_firstlineno), [constant.co_qualname, *shown, constant.co_cellvars]
            yield from _outermost(constant)


@define(eq=False)
class Code:
    """The files of a project at one moment. Paths are relative to its folder in the workspace."""

    rest: bytes
    _files: Mapping[str, SplitFile]
    _known: frozenset[bytes] = field(init=False)
    _digests: dict[Ran, frozenset[bytes]] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        """All digests that there are."""
        every = Ran(
            frozenset((path, name) for path, file in self._files.items() for name in file.texts), frozenset(self._files)
        )
        self._known = self.digests(every)

    def digests(self, ran: Ran) -> frozenset[bytes]:
        """The digests of the code that was run and read; what belongs to the rest has none."""
        known = self._digests.get(ran)
        if known is None:
            functions = (self._function(path, name) for path, name in ran.functions)
            texts = (_digest(path, "", self._files[path].digest) for path in ran.texts if path in self._files)
            known = self._digests[ran] = frozenset([*filter(None, functions), *texts])
        return known

    def functions(self) -> dict[bytes, tuple[str, str]]:
        """Path and name of functions that have a body of their own, by its digest."""
        every = ((path, name) for path, file in self._files.items() for name in file.texts)
        return {digest: each for each in every if (digest := self._function(*each)) is not None}

    def has(self, digests: frozenset[bytes]) -> bool:
        """Whether all of that code is there."""
        return digests <= self._known

    def identity(self, mutant: Mutant, path: str) -> tuple[list[Any], Ran] | None:
        """Identify `mutant` also when code above it, or above the functions around it, has become longer.

        `path` is that in the folder. None where its file is no such file.
        """
        file, start, end = self._files.get(path), mutant.location.start, mutant.location.end
        if file is None:
            return None
        name, above, touched = file.place(start.line, end.line)
        place = [name, start.line - above, start.column, end.line - above, end.column]
        return [mutant.path, mutant.mutator, place, mutant.replacement], Ran(
            frozenset((path, each) for each in touched)
        )

    def _function(self, path: str, name: str) -> bytes | None:
        file = self._files.get(path)
        text = None if file is None else file.texts.get(name)
        return None if text is None else _digest(path, name, text)


@define(eq=False)
class CodeReader:
    """Splits the files of a project again and again; one whose content is known is not read again."""

    _split: dict[str, SplitFile | None] = field(factory=dict)  # by what the state has of the file's content

    def code(self, root: Path, folder: str, files: Mapping[str, str], around: bytes) -> Code:
        """Read the code of the project in `folder` of `root`; `files` and `around` are those of a `State`. Blocks.

        The state may be older than the files: compare states afterwards.
        """
        whole = _behind_links(files)
        found, rest, split = dict[str, SplitFile](), dict[str, str](), dict[str, SplitFile | None]()
        for path, noted in sorted(files.items()):
            rest[path] = noted
            if not path.startswith(folder) or not path.endswith(".py") or not _is(Kind.FILE, noted) or path in whole:
                continue
            split[noted] = file = self._split[noted] if noted in self._split else _read(root / path, noted)
            if file is not None:
                found[path[len(folder) :]] = file
                rest[path] = f"{noted.partition(' ')[0]} {file.rest}"
        self._split = split
        digest = blake2b(around, digest_size=16)
        for path, noted in rest.items():
            digest.update(f"{path}\0{noted}\0\0".encode("utf-8", "surrogatepass"))
        return Code(digest.digest(), found)


def _read(file: Path, noted: str) -> SplitFile | None:
    """None for what can't be read, or is not as it was noted."""
    try:
        data = content(file)
    except OSError:
        return None
    return SplitFile.of(data, noted) if noted.endswith(digest_of(data)) else None


def _is(kind: Kind, noted: str) -> bool:
    return noted.partition(" ")[0].rstrip("01234567") == kind.value


def _behind_links(files: Mapping[str, str]) -> set[str]:
    """The Python files that can be opened by a name that is none of a Python file."""
    links = ((path, noted.partition(" ")[2]) for path, noted in files.items() if not _is(Kind.FILE, noted))
    targets = ((path, posixpath.normpath(posixpath.join(posixpath.dirname(path), target))) for path, target in links)
    return {target for path, target in targets if target.endswith(".py") and not path.endswith(".py")}


def _digest(path: str, name: str, text: str) -> bytes:
    return blake2b(f"{path}\0{name}\0{text}".encode("utf-8", "surrogatepass"), digest_size=SIZE).digest()

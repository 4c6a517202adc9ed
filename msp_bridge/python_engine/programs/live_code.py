"""Live code: how a mutant is put into functions that have been imported already, and when that is not the truth.

Theory of operation
-------------------
The problem. A fresh process for every mutant imports the project and collects the tests again: seconds, where the tests
that cover the mutant take milliseconds. A process that has done both already can be forked in a millisecond, but then
the mutated text comes too late: the modules exist. What a module leaves behind when it has been imported is mostly
function objects, and Python lets anybody exchange the code of a function (`function.__code__ = …`). So a mutant is
compiled, its code objects are compared with those of the original, and in the forked child every live function that has
one of the old code objects gets the new one.

Why this equals a fresh process, and when. Executing a module runs the code at its top level and in class bodies once,
at import; it *creates* functions without running them. If a mutant changes nothing but code objects of functions, and
none of these ran before the fork, then the process so far did nothing that it would not have done with the mutant in
the file: the state at the fork is the state of a fresh process, apart from the code of these functions. Hence the
rule. A mutant goes to a fresh process, with the mutated file on the disk, if

1. it changes code at the level of a module or a class, a decorator or a default value (all of them ran);
2. it changes the signature, the docstring, or the free variables, of a function (decorators and closures have seen
   them; a function keeps its `__doc__`);
3. a function that it changes was called before the fork (`imports.ImportTrace` notes it);
4. a function that it changes, or one around it, is suspended: a generator or a coroutine that is alive;
5. no live function has the old code: compiled by something else (pytest's assertion rewriting of a plug-in, an import
   hook, a decorator), or already freed. Old and new are compared by content *and* position, never by name alone. One
   that has other code at this position is a copy under another name, or changed, such as a decorator makes;
6. something else holds the old code, by a weak reference or not: it knows the function by that, and would not know the
   new one, or runs it;
7. the source of the file was read as text before the fork (`text_reads`): `inspect.getsource` in a decorator, for one.

1, 2 are known from the text (`CodeChange`), 3 to 7 from the process that holds the imported project
(`LiveFunctions.facts`), so the scheduler decides before it forks. The child checks again before it swaps, and refuses
(`NotLive`); it alone sees copies and who else holds a code.

What remains. Code that inspected the *code object* of a function at import (`dis`, a compiler such as numba's) has seen
the original. Nothing shows that; with mutmut, such projects set `process_isolation = "forkserver"`.

The nested functions of a function that runs later are constants of its code: they are exchanged with it. So 2 is not
about them: if there are others than before, or with other signatures, the function around them counts as changed. Only
the statement at the top level of the file that contains the mutant is compiled, of a class only the method, with its
own line numbers: compiling a file of 3,000 lines takes 50 ms, a function less than one. What the compiler takes from
the rest of the file goes with it: the names of the classes around a method, `from __future__ import …`, and from
Python 3.11 which names of the module are imported (`compiler.c`, `is_import_originated`: a call of `re.sub` is
compiled in another way than one of a method). If the mutant has another number of lines the whole file is compiled, so
that what follows it gets its new line numbers, as tracebacks show them.
"""

from __future__ import annotations

import gc
import sys
import types
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from sys import getrefcount
from typing import Any, NamedTuple
from weakref import getweakrefcount

from .class_bodies import PLACE, has_place, place_of, steps
from .messages import Facts
from .text_reads import renew_constants

Key = tuple[str, int]  # qualified name (before Python 3.11: name), first line
FUNCTION = 0x2  # CO_NEWLOCALS: set for functions, lambdas and comprehensions, not for modules and classes
HAS_DOCSTRING = 0x4000000  # CO_HAS_DOCSTRING, from Python 3.14; before, the first constant is the docstring, or None
COUNTED = ("co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_flags")
NAMED = ("co_names", "co_varnames", "co_freevars", "co_cellvars")
SUSPENDED = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)


class NotLive(Exception):
    """The mutant can't be put into live functions: why."""


class Segment(NamedTuple):
    """A part of a file, or the whole file: what is compiled to find a mutant's code objects.

    `old[start:end]` becomes `replacement`. `imports` is a statement that imports what the rest of the file imports; it
    is never executed. `classes` are the names of those around it.
    """

    filename: str
    flags: int  # of `from __future__ import …`
    line: int  # of its first line, 1-based
    old: str
    start: int
    end: int
    replacement: str
    imports: str = ""
    classes: Sequence[str] = ()

    @classmethod
    def of_file(cls, filename: str, old: str, new: str) -> Segment:
        """The whole file gets another text."""
        return cls(filename, 0, 1, old, 0, len(old), new)

    @property
    def new(self) -> str:
        """The text after the edit."""
        return self.old[: self.start] + self.replacement + self.old[self.end :]

    def compiled(self) -> tuple[types.CodeType, types.CodeType]:
        """Old and new code. Raises SyntaxError, ValueError, RecursionError or MemoryError."""
        return self.compiled_old(), _compiled(self._whole(self.new), self.filename, self.flags)

    def compiled_old(self) -> types.CodeType:
        """Old code, which is kept: the next mutant is most often one of the same function. Raises as `compiled`."""
        return _compiled_once(self._whole(self.old), self.filename, self.flags)

    def _whole(self, text: str) -> str:
        heads = "".join(f"{' ' * depth}class {name}:\n" for depth, name in enumerate(self.classes))
        return "\n" * (self.line - 1 - len(self.classes)) + heads + text + self.imports


def _compiled(text: str, filename: str, flags: int) -> types.CodeType:
    code: types.CodeType = compile(text, filename, "exec", flags=flags, dont_inherit=True)
    return code


_compiled_once = lru_cache(maxsize=8)(_compiled)


@dataclass(frozen=True)
class Pair:
    """Code objects that stand at the same place in the old and in the new code; `new` is None where there is none."""

    old: types.CodeType
    new: types.CodeType | None
    parents: tuple[Key, ...]  # functions around it, the innermost first

    @property
    def changed(self) -> bool:
        """Whether the code itself differs, and not merely its lines or the code of a function nested in it."""
        if self.new is None or not same_shallow(self.old, self.new):
            return True
        return bool(self.old.co_flags & FUNCTION) and _makes(self.old) != _makes(self.new)


@dataclass(frozen=True)
class CodeChange:
    """The change of a mutant in the compiled code of its file."""

    segment: Segment
    lines: range  # of the statement that the mutant is in
    changed: tuple[tuple[Key, tuple[Key, ...]], ...]  # code objects that differ, each with the functions around it
    not_live: str | None  # why the text alone rules live code out

    @classmethod
    def of(cls, segment: Segment, lines: range, found: Sequence[Pair]) -> CodeChange:
        """The change that `found` shows, all pairs of code that differ."""
        return cls(segment, lines, tuple((key(pair.old), pair.parents) for pair in found), why_not_live(found))


def key(code: types.CodeType) -> Key:
    """Finds the live functions of a code object; they are then compared by content."""
    return getattr(code, "co_qualname", code.co_name), code.co_firstlineno


def nested(code: types.CodeType) -> list[types.CodeType]:
    """The code objects that are constants of `code`."""
    return [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]


def all_nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """`code` and all that is nested in it."""
    yield code
    for inner in nested(code):
        yield from all_nested(inner)


def same_shallow(one: types.CodeType, other: types.CodeType) -> bool:
    """Whether two code objects do the same, apart from what is nested in them and from their lines."""
    if any(getattr(one, name, b"") != getattr(other, name, b"") for name in (*COUNTED, *NAMED, "co_exceptiontable")):
        return False
    if has_place(one):
        return _steps(one) == _steps(other)
    return one.co_code == other.co_code and _constants(one) == _constants(other)


def _steps(body: types.CodeType) -> list[tuple[str, tuple[type, object]]]:
    return [(step, _constant(argument)) for step, argument in steps(body)]


def identical(one: types.CodeType, other: types.CodeType) -> bool:
    """Whether two code objects are equal in content and position: before Python 3.12 `==` passes over positions."""
    return one == other and one.co_linetable == other.co_linetable


def pairs(old: types.CodeType, new: types.CodeType, parents: tuple[Key, ...] = ()) -> Iterator[Pair]:
    """The code objects that are not identical, outermost first."""
    if identical(old, new):
        return
    yield Pair(old, new, parents)
    inner, other = nested(old), nested(new)
    around = (key(old), *parents) if old.co_flags & FUNCTION else ()
    if [code.co_name for code in inner] == [code.co_name for code in other]:
        for one, two in zip(inner, other, strict=False):
            yield from pairs(one, two, around)
        return
    for code in inner:  # the structure differs: nobody can say which is which
        for each in all_nested(code):
            yield Pair(each, None, around)


def in_pairs(old: types.CodeType, new: types.CodeType) -> Iterator[tuple[types.CodeType, types.CodeType]]:
    """The code objects at the same places, whose structure is equal."""
    yield old, new
    for one, other in zip(nested(old), nested(new), strict=False):
        yield from in_pairs(one, other)


def _constants(code: types.CodeType) -> list[tuple[type, object]]:
    return [_constant(value) for value in code.co_consts if not isinstance(value, types.CodeType)]


def _constant(value: object) -> tuple[type, object]:
    """With its type: 1, 1.0 and True are equal. repr: so are 0.0 and -0.0.

    Two compilations of one set may have its elements in different orders.
    """
    if isinstance(value, tuple):
        return tuple, [_constant(each) for each in value]
    return type(value), sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)


def _signature(code: types.CodeType) -> tuple[Any, ...]:
    count = code.co_argcount + code.co_kwonlyargcount
    variadic = bool(code.co_flags & 0x4) + bool(code.co_flags & 0x8)
    return code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_varnames[: count + variadic]


def _makes(code: types.CodeType) -> list[tuple[object, ...]]:
    """Describe the functions that a call of `code` makes, apart from their code."""
    return [
        (inner.co_name, inner.co_freevars, inner.co_flags, _signature(inner), _docstring(inner))
        for inner in nested(code)
    ]


def _docstring(code: types.CodeType) -> str | None:
    """The `__doc__` of a function that is made of this code."""
    has_flag = sys.version_info < (3, 14) or code.co_flags & HAS_DOCSTRING
    first = next(iter(code.co_consts), None) if has_flag else None
    return first if isinstance(first, str) else None


def why_not_live(found: Iterable[Pair]) -> str | None:
    """Say why the changed code objects rule live code out; see the module."""
    for pair in found:
        if not pair.old.co_flags & FUNCTION:
            return "it changes code that runs at import"
        if pair.parents:
            continue  # whatever else it is made with, the function around it counts as changed
        if pair.new is None:
            return "it changes which functions there are"
        if pair.old.co_freevars != pair.new.co_freevars:
            return "it changes the free variables of a function"
        if _docstring(pair.old) != _docstring(pair.new):
            return "it changes a docstring"
        if _signature(pair.old) != _signature(pair.new) or pair.old.co_flags != pair.new.co_flags:
            return "it changes the signature or the kind of a function"
    return None


class LiveFunctions:
    """The functions of some files that are alive in this process, and what of their code is in use."""

    def __init__(self, filenames: frozenset[str], *, holds_code: bool = False) -> None:
        """Looks at every object, and unfreezes them first: `gc.freeze`, of the engine or a project, hides them.

        `holds_code`: the engine itself holds the code of all functions (`CodeRuns`), so who else does is not known.
        """
        self._holds_code = holds_code
        self._functions: dict[str, dict[Key, list[types.FunctionType]]] = {}
        self._suspended: dict[str, set[Key]] = {}
        self._classes: dict[tuple[str, Key], list[type]] = {}  # with a place: see `class_bodies`
        self._given: set[int] = set()  # ids of functions
        if filenames:
            gc.unfreeze()
        for found in gc.get_objects() if filenames else ():
            kind = type(found)
            if kind is types.FunctionType:
                if found.__code__.co_filename in filenames:
                    table = self._functions.setdefault(found.__code__.co_filename, {})
                    table.setdefault(key(found.__code__), []).append(found)
            elif kind in SUSPENDED:
                code = getattr(found, "gi_code", None) or getattr(found, "cr_code", None) or found.ag_code
                if code.co_filename in filenames:
                    self._suspended.setdefault(code.co_filename, set()).add(key(code))
            elif issubclass(kind, type) and (place := place_of(found)) is not None and place[0] in filenames:
                self._classes.setdefault(place, []).append(found)

    def facts(self, filename: str) -> Facts:
        """Facts of a file for the scheduler: keys of live functions, and of suspended ones."""
        return {
            "live": sorted(self._functions.get(filename, ())),
            "suspended": sorted(self._suspended.get(filename, ())),
        }

    def codes(self, filename: str) -> list[types.CodeType]:
        """The code of every live function of a file, and all that is nested in it."""
        functions = [function for group in self._functions.get(filename, {}).values() for function in group]
        return list({id(code): code for function in functions for code in all_nested(function.__code__)}.values())

    def having(self, code: types.CodeType) -> list[types.FunctionType]:
        """The live functions that have this code."""
        functions = self._functions.get(code.co_filename, {}).get(key(code), ())
        return [function for function in functions if identical(function.__code__, code)]

    def swap(self, old: types.CodeType, new: types.CodeType) -> int:
        """Give every function of the one code the other; how many there were. Raises NotLive."""
        self._refuse_copies(old, new)
        count = 0
        for pair in pairs(old, new):
            for function in self.having(pair.old):
                if pair.new is None or pair.new.co_freevars != pair.old.co_freevars:
                    raise NotLive("it changes the free variables of a function, or which functions there are")
                function.__code__ = pair.new
                count += 1
        return count

    def _refuse_copies(self, old: types.CodeType, new: types.CodeType) -> None:
        """Raise NotLive where a copy of a function would keep the old code, or something knows it by that."""
        lines = {pair.old.co_firstlineno for pair in pairs(old, new) if pair.old.co_flags & FUNCTION}
        codes = [code for code in all_nested(old) if code.co_firstlineno in lines]
        found = {id(function): function for code in codes for function in self.having(code)}
        table = self._functions.get(old.co_filename, {})
        alive = [id(function) for (_, line), group in table.items() if line in lines for function in group]
        if not found.keys() >= set(alive):
            raise NotLive("a live function has other code than its source")
        if any(map(self._is_held, codes)):
            raise NotLive("something knows a function by its code")

    def _is_held(self, old: types.CodeType) -> bool:
        """Whether anything refers to live code but its functions and the code around it."""
        functions = self.having(old)
        times = Counter(id(function.__code__) for function in functions)
        for function in {id(function.__code__): function for function in functions}.values():
            if getweakrefcount(function.__code__):
                return True
            others = getrefcount(function.__code__) - 1 - times[id(function.__code__)]
            if others and not self._holds_code and others > self._times_around(function.__code__):
                return True
        return False

    def _times_around(self, code: types.CodeType) -> int:
        """The number of code objects that are alive and have `code` nested in them.

        That of a module has a function, too, and both are alive with the traceback of an exception.
        """
        around = (each.co_consts for each in self.codes(code.co_filename))
        return sum(any(constant is code for constant in constants) for constants in around)

    def given(self, old: types.CodeType, new: types.CodeType) -> Iterator[tuple[types.FunctionType, types.CodeType]]:
        """Every function of the one code object, and of none that is nested in it, each with the other code."""
        for function in self.having(old):
            if old.co_freevars == new.co_freevars:
                self._given.add(id(function))
                yield function, new

    def not_given(self, filename: str) -> list[Key]:
        """The functions of a file that are `given` nothing: their code is not what their source compiles to."""
        table = self._functions.get(filename, {})
        return sorted(name for name, found in table.items() if not all(id(one) in self._given for one in found))

    def replace(self, old: types.CodeType, new: types.CodeType) -> None:
        """Swap for good: the functions are then known by their new code. Raises NotLive when one has other code."""
        table = self._functions.get(old.co_filename, {})
        for pair in pairs(old, new):
            if key(pair.old) in table and not self.having(pair.old):
                raise NotLive("a live function has other code than its source")
        self.swap(old, new)
        self._move_classes(old, new)
        self._given.clear()
        functions = [function for group in table.values() for function in group]
        table.clear()
        for function in functions:
            table.setdefault(key(function.__code__), []).append(function)

    def _move_classes(self, old: types.CodeType, new: types.CodeType) -> None:
        """Have the classes say where they stand now."""
        moved: dict[tuple[str, Key], list[type]] = {}
        for pair in pairs(old, new):
            if pair.new is not None and has_place(pair.new):
                for found in self._classes.pop((old.co_filename, key(pair.old)), ()):
                    type.__setattr__(found, PLACE, pair.new.co_firstlineno)
                    moved.setdefault((old.co_filename, key(pair.new)), []).append(found)
        self._classes.update(moved)


def put(functions: LiveFunctions, segment: Segment) -> None:
    """Put a mutant into the live functions of this process. Raises NotLive when no function has its code."""
    old, new = segment.compiled()
    if not functions.swap(old, new):
        raise NotLive("no live function has its code")
    renew_constants(segment.filename)

"""Late imports: which lines tests run of the files that they import themselves, such as views by a URL configuration.

Theory of operation
-------------------
A file that was not imported before the fork is imported in the fork, with the mutant in it. So a job tests any mutant
of such a file as a fresh process would, whatever it changes; what has to be known is which tests run its lines.

The measuring process stands where the import system gets the code of a module (`SourceLoader.get_code`), and has the
functions of that code noted like functions that were alive at the fork. The module level of a file runs once, in the
test that imports it first, so its lines count for that test. The confirmation of a survivor (`survivors`) finds the
others. The code of a file that a test imports again (`importlib.reload`) goes the same way.

Code of these files that comes otherwise (`runpy`, a loader of somebody else) is seen when it is executed, by an audit
event, and can't be noted. A test that executes such code may run any line. So it may where a function gets code of any
of the files that can't be noted while the test runs: a pickle, or what something else has compiled.
"""

from __future__ import annotations

import importlib.util
import types
from collections.abc import Callable, Collection, Iterator
from importlib.machinery import SourceFileLoader
from typing import Any, Protocol

from .audit_events import listen
from .code_runs import GIVING
from .imports import watch_executions
from .live_code import FUNCTION, nested

Line = tuple[str, int]  # the name of its file, and its number


class Lines(Protocol):
    """Notes in `hits` the lines that are run, each once until `again`."""

    hits: set[Line]

    def begin(self) -> None:
        """Note what this process runs from now on; it has no other use. Until then, nothing is changed."""

    def again(self) -> None:
        """Note lines anew that were noted before."""

    def noting(self, code: types.CodeType, text: str) -> types.CodeType:
        """The code to execute in place of `code`, of a file that is imported now, which `text` compiles to.

        Raises what compiling raises.
        """
        ...

    def notes(self, code: types.CodeType) -> bool:
        """Whether the lines of `code` are noted, which a function gets now."""
        ...


class LateImports:
    """Has `lines` note what is imported from now on; there is one in a process, which has no other use."""

    def __init__(self, lines: Lines, filenames: Collection[str], on_hidden: Callable[[], None]) -> None:
        """`on_hidden` is called when code of the files `filenames` is executed whose lines are not noted."""
        self._lines, self._filenames, self._on_hidden = lines, frozenset(filenames), on_hidden
        self._noted: list[types.CodeType] = []
        get_code = SourceFileLoader.get_code

        def get_noted_code(loader: SourceFileLoader, name: str) -> types.CodeType | None:
            code = get_code(loader, name)
            is_ours = code is not None and code.co_filename in self._filenames
            return self._noting(loader, code) if is_ours and code is not None else code

        SourceFileLoader.get_code = get_noted_code  # type: ignore[assignment,method-assign]
        watch_executions(self._filenames, self._executed)
        listen(GIVING - {"exec"}, self._given)

    def _noting(self, loader: SourceFileLoader, code: types.CodeType) -> types.CodeType:
        try:
            text = importlib.util.decode_source(loader.get_data(code.co_filename))
            new = self._lines.noting(code, text)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return code  # hidden when it is executed
        self._lines.hits.update((code.co_filename, line) for line in _lines_at_import(code))
        self._noted.append(new)
        return new

    def _executed(self, _filename: str, code: types.CodeType) -> None:
        if not any(code is noted for noted in self._noted):
            self._on_hidden()

    def _given(self, _event: str, arguments: tuple[Any, ...]) -> None:
        code = arguments[-1]
        if isinstance(code, types.CodeType) and code.co_filename in self._filenames and not self._lines.notes(code):
            self._on_hidden()


def _lines_at_import(code: types.CodeType) -> Iterator[int]:
    """The lines of a module that its import may run, apart from those of functions."""
    yield from (line for _, _, line in code.co_lines() if line)
    for inner in nested(code):
        if not inner.co_flags & FUNCTION:
            yield from _lines_at_import(inner)

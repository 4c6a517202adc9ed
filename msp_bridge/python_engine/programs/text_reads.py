"""Reads of Python files of the project as text, and looks into its directories, by a process.

Theory of operation
-------------------
A test that reads a source, or looks for files, may end otherwise when they have changed, whatever it runs. An audit
hook sees every `open` and every list of a directory, and a wrapper of `linecache.getlines` what was cached before: the
lines of a traceback, `inspect.getsource`. Left out are the import system, pytest's own rewriting of tests, and what
pytest reads for the report of a failure or a warning, after the test has ended; and what doctest reads to say in which
lines examples stand.

hypothesis reads all sources once the tests are collected: it takes their constants for examples, and for nothing else.
That is left out as well, and where a module gets other code its file is read again (`renew_constants`): a test then has
the constants of the mutant, as in a fresh process, beside those before it.
"""

from __future__ import annotations

import linecache
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .audit_events import listen
from .bytecode import is_current
from .loaded_modules import file_of
from .own_paths import PATHS

TEXT = 0  # stands among the numbers of the lines that a test runs: it has read the file, or listed the directory
REPORTS = {"from_item_and_call", "pytest_make_collect_report", "warning_record_to_str"}  # functions of pytest
CALL = "from_call"  # of pytest: it runs a part of a test, or collects
REWRITING = {"_read_pyc", "_rewrite_test"}
LISTS = {"os.listdir", "os.scandir"}
PROVIDERS, CONSTANTS = "hypothesis.internal.conjecture.providers", "hypothesis.internal.constants_ast"
LATE, IN_MEMORY = (
    os.path.join(os.path.dirname(__file__), f"{name}.py") for name in ("late_imports", "mutant_in_memory")
)


class TextReads:
    """Calls `note` with the path of each Python file of the project that is read, from `begin` on."""

    def __init__(self, *roots: str, note: Callable[[str], None], hide: Callable[[], None]) -> None:
        """`roots`: the project's names. `hide` is called when a file was read of which nobody knows where it is.

        The paths of directories end with `/`.
        """
        self._roots = sorted({os.path.join(os.path.realpath(root), "") for root in roots})
        self._note, self._hide = note, hide
        self._paths: dict[str, str | None] = {}  # file name to path
        self._getlines: types.CodeType | None = None

    def begin(self) -> None:
        """Note what this process reads, and its forks."""
        lines = linecache.getlines

        def getlines(filename: str, module_globals: Any = None) -> list[str]:
            callers = list(_callers(sys._getframe(1)))
            if not (_is_doctest(callers) or _is_for_a_report(callers)):
                self._read(filename)
            return lines(filename, module_globals)

        self._getlines = getlines.__code__
        linecache.getlines = getlines
        listen({"open"}, self._opened)
        listen(LISTS, self._listed)

    def path(self, filename: str) -> str | None:
        """Relative to the project; None when it is none of its own files."""
        if filename.startswith("<"):
            return None
        if not PATHS.isabs(filename):
            filename = PATHS.abspath(filename)
        if filename not in self._paths:
            real = PATHS.realpath(filename) + os.sep * filename.endswith(os.sep)
            root = next((root for root in self._roots if real.startswith(root)), None)
            self._paths[filename] = None if root is None else real[len(root) :]
        return self._paths[filename]

    def _opened(self, _event: str, arguments: tuple[Any, ...]) -> None:
        file, mode, *_ = arguments
        if not isinstance(file, (str, bytes, os.PathLike)) or not os.fsdecode(file).endswith(".py"):
            return
        if mode is None and not PATHS.isabs(file):  # os.open, perhaps relative to another directory
            self._hide()
        frames = list(_callers(sys._getframe(2)))
        if not _is_import(frames) and not any(code is self._getlines or _is_of_tools(code) for code in frames):
            self._read(os.fsdecode(file))

    def _listed(self, _event: str, arguments: tuple[Any, ...]) -> None:
        directory = os.curdir if arguments[0] is None else arguments[0]  # as for `os.listdir()`
        if isinstance(directory, (str, bytes, os.PathLike)) and not _is_import(list(_callers(sys._getframe(2)))):
            path = self.path(PATHS.join(PATHS.abspath(os.fsdecode(directory)), ""))
            if path is not None:
                self._note(path)

    def _read(self, filename: str) -> None:
        path = self.path(filename) if filename.endswith(".py") else None
        if path is not None:
            self._note(path)


def _callers(frame: types.FrameType | None) -> Iterator[types.CodeType]:
    """But for what a guarded job puts between the import system and its files."""
    while frame is not None:
        if frame.f_code.co_filename != IN_MEMORY:
            yield frame.f_code
        frame = frame.f_back


def _is_import(callers: list[types.CodeType]) -> bool:
    """Whether the import system looks into a directory or opens a file, which the first of `callers` does.

    Or `late_imports` does, which reads the text of what is being imported.
    """
    names = [code.co_name for code in callers[:2] if "importlib" in code.co_filename or code.co_filename == LATE]
    return names[:1] == ["_fill_cache"] or names[:2] in (["get_data", "get_code"], ["get_data", "_noting"])


def _is_doctest(callers: list[types.CodeType]) -> bool:
    """Whether doctest looks for the lines of examples, which it has from the docstrings of what is alive."""
    return any(code.co_name == "find" and os.path.basename(code.co_filename) == "doctest.py" for code in callers[:1])


def _is_for_a_report(callers: Iterable[types.CodeType]) -> bool:
    """Whether pytest reads what it shows of a failure, or of a warning: not what it calls for that collects or runs."""
    names = (code.co_name for code in callers if "_pytest" in code.co_filename)
    return next((name for name in names if name in (*REPORTS, CALL)), CALL) != CALL


def _is_of_tools(code: types.CodeType) -> bool:
    """Whether a file is opened to compile it, to see whether it was compiled, or for constants that can be renewed."""
    own = code.co_filename.endswith(os.path.join("assertion", "rewrite.py"))
    rewrites = code is is_current.__code__ or (own and code.co_name in REWRITING)
    return rewrites or (code.co_name == "constants_from_module" and bool(_known()))


def _known() -> set[int]:
    """The ids of the modules whose constants hypothesis has, where this version keeps them so."""
    known = getattr(sys.modules.get(PROVIDERS), "_seen_modules", None) or set()
    return known if all(isinstance(each, int) for each in known) else set()


def renew_constants(filename: str) -> None:
    """Have hypothesis read a source again before its next example."""
    if known := _known():
        known -= {id(module) for module in list(sys.modules.values()) if file_of(module) == filename}
        sys.modules[PROVIDERS]._sys_modules_len = None  # type: ignore[attr-defined]
        sys.modules[CONSTANTS].constants_from_module.cache_clear()

"""Started processes: which lines of the project the Python processes run that tests start with `subprocess`.

Theory of operation
-------------------
A test that starts a process may have any mutant run there, so without this it runs for each. Tests of a command line
start Python in each, and a survivor then takes as long as all of them.

In the measuring process `subprocess` gives each Python that it starts, the interpreter of the tests itself or a script
that names it, two variables more. They have it run `started` first, which notes what runs, and writes that into a file
at its end; Python that it starts in turn does the same. When the test, or the fixture that has started it, has ended,
the files are read. Then the functions count as run by the test, with all their lines. A file that nothing has imported
before counts like one that the test imports itself (`late_imports`).

Where there is no file, or not that of this process, anything may have run: it still runs, was killed, or an option
(`-S`, `-I`) or its environment has left `started` out. So it may if it has started another program that may run or read
the project, or does what hides calls. Then, as for processes that start in other ways, the test runs `PROCESSES`.
"""

from __future__ import annotations

import ast
import contextlib
import os
import sys
import types
from collections.abc import Collection
from functools import cache
from io import FileIO  # not `open`, which a test may have replaced: see channel.py
from pathlib import Path
from typing import Any

from . import started
from .code_runs import GIVING, counter_of_code, is_known
from .dependencies import TOOL
from .file_edit import normal_text
from .imports import monitoring
from .late_imports import Line
from .live_code import FUNCTION, all_nested
from .messages import Told
from .own_paths import PATHS
from .process_starts import INTERPRETERS, PROCESSES, STARTS, WAYS, ConcernedStarts, names_of
from .text_reads import LISTS, TEXT
from .unseen_calls import SETTERS

POPEN = "subprocess.Popen"
UNREADABLE = (ValueError, SyntaxError, RecursionError, MemoryError)
NOBODY_KNOWS: Line = (PROCESSES, TEXT)


class StartedProcesses:
    """The processes that this one starts, from `begin` on; it has no other use."""

    def __init__(
        self, directory: Path, starts: ConcernedStarts, sources: Collection[str], loaded: Collection[str]
    ) -> None:
        """`directory` is made for the first process. `sources`: names of files; `loaded`: of these, what was loaded."""
        self._directory, self._starts = directory, starts
        self._sources = {os.path.realpath(name): name for name in sources}
        self._loaded = loaded
        self._seen: started.Starts | None = None
        self._found: set[Line] = set()
        self.late: set[str] = set()  # names of files that they alone have imported

    def begin(self) -> None:
        """Have each Python that is started tell what it runs, where this Python can say it."""
        if sys.version_info < (3, 11) or (monitoring is None and not is_known()):
            return
        self._seen = started.Starts(self._told(), self._other, PATHS.os)

    def concerns(self, arguments: tuple[Any, ...]) -> bool:
        """Whether the program of this audit event may run something of the project unseen."""
        if self._seen is not None and self._seen.see(sys._getframe(1)):
            self._make_directory()
            return False
        executable, words, directory, *_ = arguments
        return self._starts.concerns(os.fsdecode(directory or ""), names_of(executable, words))

    def _make_directory(self) -> None:
        """Not before: it would end each job with a guard."""
        with contextlib.suppress(OSError):  # it exists, or the disk is full: then the processes tell nothing
            PATHS.os.mkdir(self._directory)
            PATHS.os.symlink(started.__file__, self._directory / "sitecustomize.py")

    def _other(self, directory: str, names: list[str]) -> None:
        if self._starts.concerns(directory, names):
            self._found.add(NOBODY_KNOWS)

    def lines(self) -> set[Line]:
        """The lines that processes have run which were started since the last call."""
        if self._seen is None:
            return set()
        (began, self._seen.began), (found, self._found) = (self._seen.began, []), (self._found, set())
        return found.union(*(self._lines_of(file, pid) for file, pid in began))

    def _told(self) -> Told:
        return {
            "file": str(self._directory / "p"),
            "pythonpath": None,
            "python": os.path.realpath(sys.executable),
            "roots": self._starts.roots,
            "tool": TOOL,
            "counter": counter_of_code() if monitoring is None else None,
            "code": GIVING,
            "lists": LISTS,
            "hiding": STARTS - {POPEN} | (set() if monitoring is None else SETTERS),
            "modules": (INTERPRETERS, WAYS),
        }

    def _lines_of(self, file: str, pid: int) -> set[Line]:
        try:
            with FileIO(file) as told:
                text = told.readall().decode("utf-8", "surrogateescape")
            its_pid, functions, texts, others, began, hidden = ast.literal_eval(text)
            if hidden or its_pid != pid or any(self._starts.concerns(*other) for other in others):
                return {NOBODY_KNOWS}
            found = {(self._path(name), TEXT) for name in texts}
            found.update(*(self._lines_of(*each) for each in began))
            for name, function in functions:
                found |= self._lines_of_function(name, function)
            return found
        except (OSError, KeyError, *UNREADABLE):  # it has not ended by itself, or its code can't be read
            return {NOBODY_KNOWS}

    def _path(self, real: str) -> str:
        """Relative to the project."""
        return next(real[len(root) :] for root in self._starts.roots if real.startswith(root))

    def _lines_of_function(self, real: str, function: str) -> set[Line]:
        """Raises what reading and compiling a source raises."""
        name = self._sources.get(real)
        if name is None:  # of a test, or of a script that it has
            return {(self._path(real), TEXT)}
        if name not in self._loaded:
            self.late.add(name)
        return {
            (name, line)
            for code in _functions_of(name)[function]
            if _is_run(code) or name not in self._loaded
            for _, _, line in code.co_lines()
            if line
        }


def _is_run(code: types.CodeType) -> bool:
    """Whether a function runs it, and no import of its module."""
    return bool(code.co_flags & FUNCTION) or "<locals>" in code.co_qualname


@cache
def _functions_of(filename: str) -> dict[str, list[types.CodeType]]:
    """The code of a source, by qualified name."""
    found: dict[str, list[types.CodeType]] = {}
    for code in all_nested(compile(normal_text(filename), filename, "exec", dont_inherit=True)):
        found.setdefault(code.co_qualname, []).append(code)
    return found

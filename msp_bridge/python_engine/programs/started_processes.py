"""Started processes: which lines of the project the Python processes run that tests start with `subprocess`.

Theory of operation
-------------------
A test that starts a process may have any mutant run there, so without this it runs for each. Tests of a command line
start Python in each, and a survivor then takes as long as all of them.

In the measuring process `subprocess.Popen` gives each Python that it starts, the interpreter of the tests itself or a
script that names it, two variables more. They have it run `started` first, which notes what runs, and writes that into
a file at its end. When the test, or the fixture that has started it, has ended, the file is read. Then the functions
count as run by the test, with all their lines. A file that nothing has imported before counts like one that the test
imports itself (`late_imports`).

Where there is no file, or not that of this process, anything may have run: it still runs, was killed, or an option
(`-S`, `-I`) or its environment has left `started` out. So it may if it has started a program that may run or read the
project, in turn, or does what hides calls. Then, as for processes that start in other ways, the test runs `PROCESSES`.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import itertools
import marshal
import os
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Collection, Mapping
from functools import cache, wraps
from io import FileIO  # not `open`, nor `shutil.which`, which a test may have replaced: see channel.py
from pathlib import Path
from shutil import which
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
SHEBANG = 256  # bytes, which is what the kernel reads of it
UNREADABLE = (ValueError, SyntaxError, RecursionError, MemoryError)
NOBODY_KNOWS: Line = (PROCESSES, TEXT)


class StartedProcesses:
    """The processes that this one starts, from `begin` on; it has no other use."""

    def __init__(
        self, directory: Path, starts: ConcernedStarts, sources: Collection[str], loaded: Collection[str]
    ) -> None:
        """`directory` is made. `sources`: names of files; `loaded`: of these, what was loaded before."""
        self._directory, self._starts = directory, starts
        self._sources = {os.path.realpath(name): name for name in sources}
        self._loaded = loaded
        self._python = os.path.realpath(sys.executable)
        self._current = threading.local()  # `file`: of the process that this thread is starting
        self._began: list[tuple[str, int]] = []  # files, and pids
        self.late: set[str] = set()  # names of files that they alone have imported
        self._numbers = itertools.count()

    def begin(self) -> None:
        """Have each Python that is started tell what it runs, where this Python can say it."""
        if sys.version_info < (3, 11) or (monitoring is None and not is_known()):
            return
        self._directory.mkdir()
        (self._directory / "sitecustomize.py").symlink_to(started.__file__)
        self._wrap(subprocess.Popen.__init__)

    def _wrap(self, original: Callable[..., None]) -> None:
        signature = inspect.signature(original)

        @wraps(original)
        def start(process: subprocess.Popen[Any], *arguments: Any, **named: Any) -> None:
            try:
                given = signature.bind(process, *arguments, **named)
            except TypeError:  # which it raises itself
                given = None
            if given is None or not self._is_python(given.arguments):
                return original(process, *arguments, **named)
            file = str(self._directory / str(next(self._numbers)))
            given.arguments["env"] = self._environment(given.arguments.get("env"), file)
            self._current.file = file
            try:
                original(*given.args, **given.kwargs)
            finally:
                self._current.file = None
            return self._began.append((file, process.pid))

        subprocess.Popen.__init__ = start  # type: ignore[assignment,method-assign]

    def concerns(self, arguments: tuple[Any, ...]) -> bool:
        """Whether the program of this audit event may run something of the project unseen."""
        executable, words, directory, *_ = arguments
        known = getattr(self._current, "file", None)
        return known is None and self._starts.concerns(os.fsdecode(directory or ""), names_of(executable, words))

    def lines(self) -> set[Line]:
        """The lines that processes have run which were started since the last call."""
        began, self._began = self._began, []
        return {line for file, pid in began for line in self._lines_of(file, pid)}

    def _environment(self, environment: Mapping[str, Any] | None, file: str) -> dict[str, Any]:
        """The variables that a process gets which is to tell what it has run in `file`."""
        old = dict(os.environ if environment is None else environment)
        pythonpath = os.fsdecode(old["PYTHONPATH"]) if "PYTHONPATH" in old else None
        told: Any = self._told(file, pythonpath)
        paths = os.pathsep.join(filter(None, [str(self._directory), pythonpath]))
        return {**old, "PYTHONPATH": paths, started.VARIABLE: marshal.dumps(told).hex()}

    def _told(self, file: str, pythonpath: str | None) -> Told:
        return {
            "file": file,
            "pythonpath": pythonpath,
            "roots": self._starts.roots,
            "tool": TOOL,
            "counter": counter_of_code() if monitoring is None else None,
            "code": GIVING,
            "lists": LISTS,
            "hiding": STARTS - {POPEN} | (set() if monitoring is None else SETTERS),
            "modules": (INTERPRETERS, WAYS),
        }

    def _is_python(self, given: Mapping[str, Any]) -> bool:
        """Whether a program is the interpreter of the tests, or a script of it. `given`: the arguments of Popen."""
        names = names_of(given.get("executable"), given["args"])
        environment = os.environ if given.get("env") is None else given["env"]
        if (
            given.get("shell")
            or given.get("preexec_fn")
            or not names
            or any(type(each) is not str for each in environment)
        ):
            return False
        path = os.fsdecode(environment.get("PATH", os.defpath))
        name = names[0] if os.sep in names[0] else which(names[0], path=path) or ""
        return bool(name) and self._runs_python(PATHS.join(os.fsdecode(given.get("cwd") or os.curdir), name))

    def _runs_python(self, program: str) -> bool:
        if PATHS.realpath(program) == self._python:
            return True
        with contextlib.suppress(OSError), FileIO(program) as file:
            line = file.read(SHEBANG).partition(b"\n")[0]
            words = os.fsdecode(line[2:]).split() if line.startswith(b"#!") else []
            return len(words) == 1 and PATHS.realpath(words[0]) == self._python
        return False

    def _lines_of(self, file: str, pid: int) -> set[Line]:
        try:
            with FileIO(file) as told:
                text = told.readall().decode("utf-8", "surrogateescape")
            its_pid, functions, texts, starts, hidden = ast.literal_eval(text)
            if hidden or its_pid != pid or any(self._starts.concerns(where, names) for where, *names in starts):
                return {NOBODY_KNOWS}
            found = {(self._path(name), TEXT) for name in texts}
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

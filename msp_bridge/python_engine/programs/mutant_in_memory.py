"""A mutated file that lies in the memory of one process, for a job that may write nothing and shares the sandbox.

Theory of operation
-------------------
A job that runs beside others can't put the mutated file in place: all would see it. So this process gets the mutant
where it looks for code and for lines: from the import system, which finds no bytecode of the file, and in
`linecache`, which tracebacks and `inspect` read. What opens the file in another way would see the original. An audit
hook sees that before it happens, and ends the process as a lasting effect does (`isolation.guard`): the job then runs
again with the mutated file in its place.
"""

from __future__ import annotations

import contextlib
import io
import linecache
from importlib import _bootstrap_external
from importlib.machinery import SourceFileLoader
from os import fsdecode, path, stat  # as they are before a test replaces them
from typing import Any

from ...isolation import guard
from .audit_events import listen
from .bytecode import MUTATED
from .file_edit import PythonText


class MutantInMemory:
    """The file `name`, whose content is to be `content` in this process."""

    def __init__(self, name: str, content: bytes) -> None:
        self._name, self._content, self._status = name, content, stat(name)

    def put(self) -> None:
        """Serve imports and lines, and watch all else. For a process that is guarded."""
        MUTATED.add(self._name)
        with contextlib.suppress(NotImplementedError):  # raised where it has no bytecode, which would be the original's
            _bootstrap_external.cache_from_source(self._name)
            guard.end()
        self._serve_imports()
        text = PythonText(self._content).normal
        lines = io.StringIO(text if text.endswith("\n") else f"{text}\n").readlines()
        linecache.cache[self._name] = len(self._content), None, lines, self._name  # None: it does not look at the disk
        listen({"open"}, self._opened)

    def _serve_imports(self) -> None:
        get_data = SourceFileLoader.get_data

        def get_mutant(loader: SourceFileLoader, file: str) -> bytes:
            return self._content if file == self._name else get_data(loader, file)

        SourceFileLoader.get_data = get_mutant  # type: ignore[assignment,method-assign]

    def _opened(self, _event: str, arguments: tuple[Any, ...]) -> None:
        if not isinstance(arguments[0], int) and self._is_ours(arguments[0], arguments[1] is None):
            guard.end()

    def _is_ours(self, file: Any, by_os: bool) -> bool:
        """`by_os`: a relative path may be that of another directory than the current one."""
        try:
            if by_os and not path.isabs(file):
                return path.basename(fsdecode(file)) == path.basename(self._name)
            return path.samestat(stat(file), self._status)
        except (OSError, ValueError, TypeError):
            return False

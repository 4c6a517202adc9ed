"""Which functions of the project are called, and which of its files are read as text, before the fork.

From Python 3.12 by `sys.monitoring` (PY_START, disabled for each code object after its first call), before that by
`sys.settrace` without local trace functions. It begins before pytest is imported: pytest may import the project itself.
"""

from __future__ import annotations

import linecache
import sys
import threading
import types
from typing import Any

from .live_code import Key, key

monitoring: Any = getattr(sys, "monitoring", None)  # from Python 3.12
TOOL = 4  # of sys.monitoring: none of those that it reserves for debuggers, coverage, profilers and optimizers


class ImportTrace:
    """Notes the functions of the project that are called in this process while it is on."""

    def __init__(self, filenames: frozenset[str]) -> None:
        self._filenames = filenames
        self._called: set[tuple[str, Key]] = set()
        self.read: set[str] = set()  # files whose source was asked for: a decorator may have inspected it
        self.lost = False  # somebody else has put a trace function in its place
        self._update: Any = linecache.updatecache

    def start(self) -> None:
        """Begin, in all threads."""
        linecache.updatecache = self._updatecache
        if monitoring is not None:
            monitoring.use_tool_id(TOOL, "msp-bridge")
            monitoring.register_callback(TOOL, monitoring.events.PY_START, self._start)
            monitoring.set_events(TOOL, monitoring.events.PY_START)
        else:
            threading.settrace(self._call)
            sys.settrace(self._call)

    def stop(self) -> None:
        """End."""
        linecache.updatecache = self._update
        if monitoring is not None:
            monitoring.set_events(TOOL, 0)
            monitoring.register_callback(TOOL, monitoring.events.PY_START, None)
            monitoring.free_tool_id(TOOL)
        else:
            self.lost = sys.gettrace() != self._call
            threading.settrace(None)
            sys.settrace(None)

    def called(self, filename: str) -> list[Key]:
        """The functions of the file that were called."""
        return sorted(found for name, found in self._called if name == filename)

    def _updatecache(self, filename: str, module_globals: Any = None) -> Any:
        if filename in self._filenames:
            self.read.add(filename)
        return self._update(filename, module_globals)

    def _start(self, code: types.CodeType, _offset: int) -> object:
        if code.co_filename in self._filenames:
            self._called.add((code.co_filename, key(code)))
        return monitoring.DISABLE

    def _call(self, frame: types.FrameType, _event: str, _argument: object) -> None:
        code = frame.f_code
        if code.co_filename in self._filenames:
            self._called.add((code.co_filename, key(code)))

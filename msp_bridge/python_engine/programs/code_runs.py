"""Code runs: whether a code object has run in this process, by the counter that CPython 3.10 and 3.11 keep in it.

Theory of operation
-------------------
From Python 3.12 `sys.monitoring` says it. Before that, a trace function or a profiler is called for every call of all
code, and keeps the interpreter from its fast instructions: to collect 5,000 tests takes 1.8 times the CPU time. But the
interpreter itself counts the runs of each code object, to optimise it when it has run often enough: in all threads,
traced or not. A call of a generator counts when it begins to run, as for a trace function.

The layout of a code object does not change within a minor version, and 3.10 and 3.11 get security fixes alone. A build
for debugging, or for 32 bits, may have another layout: `is_known` makes sure, on a code object of its own, that the
counter is where it is expected.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from .audit_events import listen
from .live_code import all_nested

try:
    import ctypes

    COUNTERS: dict[tuple[int, int], tuple[int, Any, int]] = {  # offset in the code object, type, value before any run
        (3, 10): (168, ctypes.c_int, 0),  # co_opcache_flag
        (3, 11): (52, ctypes.c_short, -8),  # co_warmup
    }
except ImportError:  # this Python has no ctypes
    COUNTERS = {}
GIVING = {"exec", "function.__new__", "object.__setattr__"}  # audit events, the last argument of which may be code


def has_run(code: types.CodeType) -> bool:
    """Whether it has been run at least once; only where `is_known`."""
    return bool(_counter(code).value != COUNTERS[sys.version_info[:2]][2])


def is_known() -> bool:
    """Whether this Python counts as is known here."""
    if sys.implementation.name != "cpython" or sys.version_info[:2] not in COUNTERS:
        return False
    code = (lambda: None).__code__.replace()
    before = has_run(code)
    types.FunctionType(code, {})()
    return not before and has_run(code)


def counter_of_code() -> tuple[int, int, int]:
    """The counter in a code object of this Python: offset, size, and value before any run; only where `is_known`."""
    offset, kind, fresh = COUNTERS[sys.version_info[:2]]
    return offset, ctypes.sizeof(kind), fresh


class CodeRuns:
    """Notes which code of some files runs in this process, and keeps it alive. There is one at most."""

    def __init__(self, is_ours: Callable[[str], bool]) -> None:
        """`is_ours` gets the name of a file."""
        self._is_ours = is_ours
        self._given: list[types.CodeType] = []
        self._codes: list[types.CodeType] = []
        self._counters: list[Any] = []  # of these: a fork that looks at nothing else copies few pages of memory
        listen(GIVING, self._given_code)

    def names(self) -> set[tuple[str, str]] | None:
        """File and qualified name of what has run since the last call; None when that can't be said."""
        if sys.version_info < (3, 11) or not is_known():
            return None
        given = [each for code in self._given for each in all_nested(code)]
        self._given.clear()
        self._codes += given
        self._counters += map(_counter, given)
        fresh = COUNTERS[sys.version_info[:2]][2]
        ran = [index for index, counter in enumerate(self._counters) if counter.value != fresh]
        found = {(self._codes[index].co_filename, self._codes[index].co_qualname) for index in ran}
        for index in reversed(ran):
            del self._codes[index], self._counters[index]
        return found

    def _given_code(self, _event: str, arguments: tuple[Any, ...]) -> None:
        """Whatever runs was executed, was given to a function, or is nested in such code."""
        code = arguments[-1]
        if isinstance(code, types.CodeType) and self._is_ours(code.co_filename):
            self._given.append(code)


def _counter(code: types.CodeType) -> Any:
    offset, kind, _ = COUNTERS[sys.version_info[:2]]
    return kind.from_address(id(code) + offset)

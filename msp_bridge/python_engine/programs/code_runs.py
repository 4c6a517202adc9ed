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
from typing import Any

try:
    import ctypes

    COUNTERS: dict[tuple[int, int], tuple[int, Any, int]] = {  # offset in the code object, type, value before any run
        (3, 10): (168, ctypes.c_int, 0),  # co_opcache_flag
        (3, 11): (52, ctypes.c_short, -8),  # co_warmup
    }
except ImportError:  # this Python has no ctypes
    COUNTERS = {}


def has_run(code: types.CodeType) -> bool:
    """Whether it has been run at least once; only where `is_known`."""
    offset, kind, fresh = COUNTERS[sys.version_info[:2]]
    return bool(kind.from_address(id(code) + offset).value != fresh)


def is_known() -> bool:
    """Whether this Python counts as is known here."""
    if sys.implementation.name != "cpython" or sys.version_info[:2] not in COUNTERS:
        return False
    code = (lambda: None).__code__.replace()
    before = has_run(code)
    types.FunctionType(code, {})()
    return not before and has_run(code)

"""Dependencies: which functions of the project a process has run, and which of its source files it has read as text.

Theory of operation
-------------------
A verdict of an earlier run holds as long as a test would go the same way again. It does if all code that ran is the
same, and all that was read. Here is noted, for one process, what of the project's Python code that was. What else
counts (data files, module level, packages) is compared as a whole, whatever uses it (`incremental.code`).

*Functions that ran.* The first start of each code object in the process, in all threads: from Python 3.12 by
`sys.monitoring`, in 3.11 by the interpreter's own counters (`code_runs`). Before 3.11 nothing can be said. A function
has the path of its file and its qualified name, up to the first `<locals>`: what is nested in a function belongs to it.
A mutant may move lines, but no name.

*Source files that were read* as text: see `text_reads`.

*Hidden.* A process of its own may run and read anything: one that has started some, forked, or taken our place at
`sys.monitoring` depends on everything. So does one that had modules of the project before this began.

A live server notes what runs until the tests are collected; its forks begin anew (`renew`). What ran before the fork
may or may not be noted once more: it belongs to every verdict.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import TypeVar

from .channel import TargetPlan
from .code_runs import CodeRuns
from .imports import monitoring
from .loaded_modules import module_files
from .messages import Ran, Report, Trace
from .process_starts import note_starts
from .text_reads import TextReads
from .unseen_calls import note_unseen_calls

TOOL = 3  # of sys.monitoring: another one than that of line coverage
NAME = "msp-bridge dependencies"
GENERIC = "<generic"  # in the names of functions that have type parameters: which one it is, is not known
LOCALS = ".<locals>"

T = TypeVar("T")
Function = tuple[str, str]  # path, and qualified name up to the first `<locals>`


class DependencyTrace:
    """The trace of this process, from `begin` on; there is one at most. `roots`: the project's names."""

    def __init__(self, *roots: str) -> None:
        self._texts = TextReads(*roots, note=self._note, hide=self._hide)
        self._functions: MonitoredFunctions | CodeRuns | None = None
        self._read: set[str] = set()
        self._hidden = False

    @classmethod
    def of(cls, plan: TargetPlan, root: str) -> DependencyTrace | None:
        """From now on, of the tests of `plan`, if they are to say it; `root` is the user's tree."""
        if not plan.dependencies:
            return None
        trace = cls(plan.place, root)
        trace.begin()
        return trace

    def begin(self) -> None:
        """Note what runs from now on."""
        files = module_files().values()
        self._hidden = any(file and "site-packages" not in file and self._is_ours(file) for file in files)
        self._texts.begin()
        note_starts(self._hide)
        note_unseen_calls(self._hide)
        self._functions = CodeRuns(self._is_ours) if monitoring is None else MonitoredFunctions()

    def renew(self) -> None:
        """In a fork: forget what was read and hidden before it; which functions ran was reported then."""
        self._hidden, self._read = False, set()

    def without(self, fork: Callable[[], T]) -> T:
        """Call `fork`, which forks this process for a job of ours: that hides nothing."""
        hidden = self._hidden
        found = fork()
        self._hidden = hidden
        return found

    def report(self) -> Trace:
        """Names of `functions` that ran since the last report, by path; `texts`, paths; whether some are `hidden`."""
        functions: dict[str, set[str]] = {}
        texts = set(self._read)
        assert self._functions is not None
        names = self._functions.names()
        for filename, name in names or ():
            path = self._texts.path(filename)
            if path is None:
                continue
            outer = outermost(name)
            if outer is not None:
                functions.setdefault(path, set()).add(outer)
            elif GENERIC in name.partition(LOCALS)[0]:
                texts.add(path)
        return {
            "functions": {path: sorted(found) for path, found in sorted(functions.items())},
            "texts": sorted(texts),
            "hidden": self._hidden or names is None,
        }

    def _hide(self) -> None:
        self._hidden = True

    def _note(self, path: str) -> None:
        if path.endswith(".py"):
            self._read.add(path)

    def _is_ours(self, filename: str) -> bool:
        return self._texts.path(filename) is not None


class MonitoredFunctions:
    """The code objects that have run, by sys.monitoring (Python 3.12)."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()
        add, disable = self._seen.add, monitoring.DISABLE

        def start(code: types.CodeType, _offset: int) -> object:
            add((code.co_filename, code.co_qualname))
            return disable

        monitoring.use_tool_id(TOOL, NAME)
        monitoring.register_callback(TOOL, monitoring.events.PY_START, start)
        monitoring.set_events(TOOL, monitoring.events.PY_START)

    def names(self) -> set[tuple[str, str]] | None:
        """File and qualified name of each since the last call; None when that can't be said."""
        own = monitoring.get_tool(TOOL) == NAME and monitoring.get_events(TOOL) == monitoring.events.PY_START
        found = set(self._seen)
        self._seen.clear()
        return found if own else None


def holds_code(plan: TargetPlan) -> bool:
    """Whether the trace of the tests of `plan` keeps all code alive."""
    return plan.dependencies and monitoring is None


def with_dependencies(report: Report, trace: DependencyTrace | None) -> Report:
    """Add the dependencies of the process to the report of its job, if they are noted."""
    return report if trace is None else {**report, "ran": trace.report()}


def outermost(name: str) -> str | None:
    """The function that the one of the qualified `name` belongs to; None where it has no name of its own."""
    outer = name.partition(LOCALS)[0]
    return None if "<" in outer else outer


def joined(reports: Iterable[Trace | None]) -> Ran | None:
    """Join the dependencies of several processes; None: on everything."""
    functions: dict[str, set[str]] = {}
    texts: set[str] = set()
    for report in reports:
        if report is None or report["hidden"]:
            return None
        texts.update(report["texts"])
        for path, names in report["functions"].items():
            functions.setdefault(path, set()).update(names)
    return {"functions": {path: sorted(names) for path, names in functions.items()}, "texts": sorted(texts)}

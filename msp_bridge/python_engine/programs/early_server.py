"""The early server: it has collected the tests up to the first file whose import runs functions of the project.

Theory of operation
-------------------
The problem. A mutant of a function that a test file calls when it is imported (`CASES = [Request(…), …]`) needs a
process that imports that file with the mutant. A fresh process imports everything before it, too: the sources, the
standard library, other test files. That takes longer than the rest of the collection and the tests that kill it.

The way out. This server holds pytest where it would import that file. Each job is a fork of it: it puts its mutant into
the functions that are there, goes on with the collection, and runs its tests.

Why this equals a fresh process. The rule is that of `live_code`, and the facts that decide are those of this process:
none of the changed functions has run in it. A source that it has not imported yet is imported in the job, with the
mutant in the file. A job that collects some files only has also all that came before: the control of a kill, in a
fresh process, collects the same ones (`early_jobs`).
"""

from __future__ import annotations

from typing import Any

from .channel import TargetPlan
from .dependencies import holds_code
from .imports import ImportTrace
from .live_code import LiveFunctions, Segment, put
from .live_server import facts_of, relative
from .loaded_modules import loaded_files
from .messages import JobMessage, Started


class Early:
    """The place where an early server holds pytest, and what it knows then. `trace` has begun before pytest."""

    def __init__(self, file: str, trace: ImportTrace) -> None:
        self._file, self._trace = file, trace
        self._collected: list[str] = []
        self._functions = LiveFunctions(frozenset())

    def has_come_to(self, collector: Any) -> bool:
        """Whether the file that pytest is about to import is the one, and this process is fit to be forked."""
        path = relative(collector)
        if path == self._file:
            return self._trace.is_forkable()
        self._collected.append(path)
        return False

    def facts(self, plan: TargetPlan) -> Started:
        """Facts of the sources that are loaded; once."""
        names = frozenset(plan.filenames)
        self._functions = LiveFunctions(names, holds_code=holds_code(plan))
        self._trace.stop(self._functions)
        loaded = loaded_files(names) | self._trace.files | self._trace.read
        return {"files": facts_of(plan, self._functions, self._trace, loaded), "before": self._collected}

    def put(self, message: JobMessage) -> None:
        """In a job: put its mutant into the functions. Raises NotLive."""
        if message.get("segment") is not None:
            put(self._functions, Segment(*message["segment"]))

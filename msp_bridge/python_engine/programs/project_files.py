"""The project's Python files as the host knows them: the sources that are mutated, and the texts of the test files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from .baseline import Baseline, file_of
from .file_edit import PythonText, digest_of, normal_text
from .live_code import Segment
from .reload import reloaded, reloaded_tests
from .server_process import ServerProcess
from .source_file import SourceFile

Source = tuple[str, SourceFile]  # with the digest of its bytes
UNREADABLE = (OSError, SyntaxError, ValueError, RecursionError)


class ProjectFiles:
    """The files below the directory `place`; paths are relative to it."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._sources: dict[str, Source] = {}
        self.tests: dict[str, str] = {}  # path to text, as the servers have it

    def source(self, path: str) -> Source:
        """The file, with the digest of its bytes. Raises one of `UNREADABLE`."""
        known = self._sources.get(path)
        if known is not None:
            return known
        filename = os.path.join(self._place, path)
        data = Path(filename).read_bytes()
        found = self._sources[path] = (digest_of(data), SourceFile(filename, PythonText(data).normal))
        return found

    def statement(self, path: str, digest: str, start: int, end: int) -> tuple[str, range] | None:
        """The path, and the lines of the statement that a mutant is in; None when the file is another one."""
        try:
            known, source = self.source(path)
        except UNREADABLE:
            return None
        return (path, source.statement(start, end)) if known == digest else None

    def forget(self, changed: Collection[str]) -> dict[str, Source]:
        """The sources that have changed, as they were."""
        return {path: self._sources.pop(path) for path in changed if path in self._sources}

    def clear(self) -> None:
        """Forget all sources."""
        self._sources.clear()

    def read_tests(self, tests: Sequence[str], changed: Collection[str]) -> None:
        """Keep the texts of the files of `tests`; files that have not changed are known."""
        files = {file_of(test) for test in tests}
        known = {path: text for path, text in self.tests.items() if path in files and path not in changed}
        for path in files - known.keys():
            if path.endswith(".py"):
                with contextlib.suppress(*UNREADABLE):
                    known[path] = normal_text(Path(self._place, path))
        self.tests = known

    def reload(
        self, changed: Collection[str], old: Mapping[str, Source], baseline: Baseline, live: ServerProcess
    ) -> Baseline | None:
        """The baseline after an edit of function bodies, which the live server then has; None where that can't be."""
        current: Baseline | None = baseline if changed else None
        for path in changed:
            if current is None:
                return None
            try:
                if path in old:
                    current = reloaded(current, path, old[path][1], self.source(path)[1], live)
                elif path in self.tests:
                    filename = os.path.join(self._place, path)
                    segment = Segment.of_file(filename, self.tests[path], normal_text(filename))
                    current = reloaded_tests(current, path, segment, live)
                else:
                    return None
            except UNREADABLE:
                return None
        return current

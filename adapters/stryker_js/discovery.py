"""Discovery: which mutants there are, remembered as long as nothing in the project has changed."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from msp_bridge.adapter import Project, Scope

from .bench import Bench
from .failure import BrokenFile
from .mutants import Found, escaped

log = logging.getLogger(__name__)

PATIENCE = 20  # broken files that are left out, one by one


class Discovery:
    """What is known of the project's present content."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._state: object = None
        self._known: dict[frozenset[str] | None, list[Found]] = {}  # by the files that were asked for; None: all

    async def find(self, bench: Bench, scope: Scope) -> list[Found]:
        """The mutants in scope, file by file. Raises BridgeError.

        Files that can't be parsed are left out, with a line in the log; StrykerJS alone would give up.
        """
        if self._state != bench.copy.state:
            self._state, self._known = bench.copy.state, {}
        paths = self._files(scope)
        if paths == frozenset():
            return []
        known = self._known  # another request may replace it meanwhile
        if paths not in known and None not in known:
            known[paths] = await self._ask(bench, paths)
        found = known[None] if None in known else known[paths]
        return [one for one in found if scope.covers(one.mutant.path)]

    def _files(self, scope: Scope) -> frozenset[str] | None:
        """The files in scope if it names nothing but files, else None."""
        if scope.paths is None:
            return None
        root = self._project.root
        directories = [path for path in scope.paths if path.endswith("/") and (root / path).is_dir()]
        return None if directories else frozenset(path for path in scope.paths if (root / path).is_file())

    async def _ask(self, bench: Bench, paths: frozenset[str] | None) -> list[Found]:
        left_out: list[str] = []
        asked = None if paths is None else sorted(paths)
        while True:
            tool = await bench.tool()
            try:
                found = await tool.discover(asked, [escaped(path) for path in left_out])
            except BrokenFile as error:
                path = os.path.relpath(os.path.join(bench.copy.source, error.file), bench.copy.source).replace(
                    os.sep, "/"
                )
                if path in left_out or len(left_out) >= PATIENCE or not os.path.lexists(bench.copy.path / path):
                    raise
                log.warning("%s has no mutants, for it can't be parsed: %s", path, error.fault)
                left_out.append(path)
                if asked is not None:
                    asked = [name for name in asked if name != path]
                    if not asked:
                        return []
            else:
                return _by_file(found, bench.copy.path)


def _by_file(found: Sequence[Found], copy: Path) -> list[Found]:
    """File by file, in the order in which the files came, each mutant once."""
    files: dict[str, dict[object, Found]] = {}
    for one in found:
        files.setdefault(one.mutant.path, {}).setdefault(one.mutant, one)
    for path in [path for path in files if not (copy / path).is_file()]:
        log.warning("%s has no mutants, for StrykerJS takes a backslash for a separator: rename the file", path)
        del files[path]
    return [one for mutants in files.values() for one in mutants.values()]

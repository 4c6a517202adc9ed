"""What paths select that a user or an agent writes: files, directories, lines (`cart.py:12`, `:10-20`), `:12:5`.

They are relative to the current directory, or, where nothing is there, to the project's root:
so whatever is printed is accepted back.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from attrs import evolve, frozen

from msp_bridge.errors import ConfigurationError
from msp_bridge.model import Location, Mutant, Position
from msp_bridge.workspace.changes import Changes
from msp_bridge.workspace.selection import Selection, Target, relative_path

LINES = re.compile(r"(?P<path>.+?):(?P<first>\d+)(?:-(?P<last>\d+)|:(?P<column>\d+))?$")  # 12, 10-20, 12:5


@frozen
class Selected:
    """What the paths select: `selection` is what to discover, and `takes` what to keep of that."""

    selection: Selection
    _rest: Selection  # what is selected otherwise than by LINE:COL
    _starts: frozenset[tuple[str, Position]]
    _changes: Changes | None = None

    async def since(self, root: Path, revision: str) -> Selected:
        """What of this has changed in git since HEAD and `revision` parted. Raises ConfigurationError."""
        changes, selection = await Changes.since(root, revision), self.selection
        if selection.targets is None:
            selection = Selection(targets=tuple(Target(path) for path in changes.lines))
        return evolve(self, selection=selection, changes=changes)

    def takes(self, mutant: Mutant) -> bool:
        """Whether `mutant`, of the selection, is wanted."""
        return (self._changes is None or self._changes.touch(mutant)) and self._names(mutant)

    def _names(self, mutant: Mutant) -> bool:
        if not self._starts or (mutant.path, mutant.location.start) in self._starts:
            return True
        return not self._rest.empty and self._rest.scope.covers(mutant.path) and self._rest.takes(mutant)


def select(root: Path, paths: Sequence[str]) -> Selected:
    """What `paths` select; everything when there are none. Raises ConfigurationError for a typing error."""
    targets, files, starts = [], [], set()
    for path in paths:
        target, start = _target(root, path)
        if start is None:
            targets.append(target)
        else:
            files.append(target)
            starts.add((str(relative_path(root, target.path)), start))
    whole = Selection(targets=(*targets, *files)) if paths else Selection()
    return Selected(whole, Selection(targets=tuple(targets)).within(root), frozenset(starts))


def _target(root: Path, path: str) -> tuple[Target, Position | None]:
    """The target, and the position of LINE:COL."""
    if not path.strip():
        raise ConfigurationError("a path is empty")
    found = _existing(root, path)
    lines = None if found else LINES.match(path)
    name = lines["path"] if lines else path
    absolute = found or _existing(root, name)
    if absolute is None:
        raise ConfigurationError(f"there is no file or directory {name}{_nearest(name)}")
    if relative_path(root, absolute) is None:
        raise ConfigurationError(f"{name} lies outside the project {root}; see --root")
    if not lines:
        return Target(absolute), None
    first, column = int(lines["first"]), int(lines["column"] or 1)
    last = int(lines["last"] or first)
    if not 1 <= first <= last or column < 1:
        raise ConfigurationError(f"{path}: lines count from 1, the first before the last")
    if lines["column"]:
        return Target(absolute), Position(first, column)
    return Target(absolute, Location(Position(first, 1), Position(last + 1, 1))), None


def _existing(root: Path, name: str) -> str | None:
    """The absolute path of what the name leads to from here, else from the root."""
    return next((os.path.abspath(path) for path in (Path(name), root / name) if path.exists()), None)


def _nearest(name: str) -> str:
    """A suggestion for a typing error in the last part of a path."""
    directory = Path(name).parent
    with contextlib.suppress(OSError):
        if close := difflib.get_close_matches(Path(name).name, os.listdir(directory), 1):
            return f"; did you mean {directory / close[0]}?"
    return ""

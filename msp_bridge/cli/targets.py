"""PATHS of the command line: files, directories, and lines of files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import click

from msp_bridge.model import Location, Position
from msp_bridge.workspace.selection import Selection, Target, relative_path

LINES = re.compile(r"(?P<path>.+?):(?P<first>\d+)(?:-(?P<last>\d+))?$")


def selection_of(root: Path, paths: Sequence[str]) -> Selection:
    """What `paths` select; everything when there are none. A typo is an error here, unlike a client's stale path."""
    return Selection(targets=tuple(_target(root, path) for path in paths)) if paths else Selection()


def _target(root: Path, path: str) -> Target:
    lines = None if Path(path).exists() else LINES.match(path)
    name = lines["path"] if lines else path
    if not Path(name).exists():
        raise click.BadParameter(f"there is no file or directory {name}", param_hint="PATHS")
    absolute = str(Path(name).absolute())
    if relative_path(root, absolute) is None:
        raise click.BadParameter(f"{name} lies outside the project {root}; see --root", param_hint="PATHS")
    if not lines:
        return Target(absolute)
    first, last = int(lines["first"]), int(lines["last"] or lines["first"])
    if not 1 <= first <= last:
        raise click.BadParameter(f"{path}: lines count from 1, the first before the last", param_hint="PATHS")
    return Target(absolute, Location(Position(first, 1), Position(last + 1, 1)))

"""Members: which packages of the workspace that a project is part of it depends on, directly or by one another."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import plug_n_play
from .configuration import dependencies, read_json
from .links import MODULES


def members_of(source: Path, above: Sequence[Path]) -> tuple[Path, ...]:
    """Their directories, links resolved; `above` are those above `source` that belong to the workspace."""
    if not above:
        return ()
    root = plug_n_play.root_of((source, *above))
    archived = {} if root is None else plug_n_play.members_of(root)
    found: set[Path] = set()
    pending = [source]
    while pending:
        package = pending.pop()
        for name in dependencies(read_json(package / "package.json"), "peerDependencies"):
            member = _source_of(name, package, above[-1], archived)
            if member is not None and member not in (*found, *above) and not member.is_relative_to(source):
                found.add(member)
                pending.append(member)
    return tuple(sorted(found))


def _source_of(name: str, package: Path, top: Path, archived: Mapping[str, Path]) -> Path | None:
    """Where the package that `package` calls `name` lies, if it is a member."""
    levels = (package, *package.parents)
    places = (level / MODULES / name for level in levels[: levels.index(top) + 1])
    place = next(filter(os.path.exists, places), archived.get(name))
    if place is None:
        return None
    real = Path(os.path.realpath(place))
    is_member = real.is_relative_to(top) and MODULES not in real.relative_to(top).parts
    return real if is_member else None

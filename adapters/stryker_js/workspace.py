"""The workspace around a project: the directories and packages that it imports from. Nothing here writes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from msp_bridge import reading
from msp_bridge.adapter import Project
from msp_bridge.isolation.left_out import IGNORED_DIRS
from msp_bridge.toolkit import walk

from . import plug_n_play
from .configuration import dependencies
from .node_modules import MODULES, versions

# In a directory through which packages are resolved, or from which the settings of a part are extended.
WORKSPACE = ("package.json", "pnpm-workspace.yaml", MODULES, "tsconfig.json", "tsconfig.base.json")


def surroundings_of(project: Project) -> tuple[dict[str, str | None], tuple[Path, ...]]:
    """The versions of all packages that `project` could import, and the directories outside of it that it could."""
    source = project.root.resolve()
    above = directories_above(source)
    found: dict[str, str | None] = {}
    linked: set[Path] = set()
    for directory in (source, *above):
        for relative in modules_below(directory) if directory == source else (MODULES,):
            versions(directory / relative, found, linked, source)
    for directory in [*linked]:
        for relative in modules_below(directory):
            versions(directory / relative, found, linked, source)
    return found, (*sorted(linked), *above[-1:])


def directories_above(source: Path) -> tuple[Path, ...]:
    """The directories above, the nearest first, up to the last that has anything of a workspace."""
    limits = (Path.home(), Path(source.anchor))
    above = list(takewhile(lambda directory: directory not in limits, source.parents))
    while above and not any(os.path.exists(above[-1] / name) for name in WORKSPACE):
        above.pop()
    return tuple(above)


def files_above(source: Path, above: Sequence[Path]) -> Iterator[str]:
    """The files around the project at `source` that belong to no package: shared settings, as tsconfig.base.json.

    None in hidden directories, where tools keep their caches.
    """
    levels = {os.fspath(directory) for directory in above}
    for directory, names, files in os.walk(above[-1]) if above else ():
        if directory == os.fspath(source) or (directory not in levels and "package.json" in files):
            names.clear()
            continue
        names[:] = sorted(name for name in names if name not in IGNORED_DIRS and not name.startswith("."))
        yield from (os.path.join(directory, name) for name in sorted(files))


def modules_below(source: Path) -> Iterator[str]:
    """Every `node_modules` that isn't in another one, relative, with `/`."""
    for directory, names, _ in walk(source):
        if MODULES in names:
            yield (Path(directory).relative_to(source) / MODULES).as_posix()


def members_of(source: Path, above: Sequence[Path]) -> tuple[Path, ...]:
    """The packages of its workspace that the project at `source` depends on, directly or not; links resolved.

    `above` are the directories above `source` that belong to the workspace.
    """
    if not above:
        return ()
    root = plug_n_play.root_of((source, *above))
    archived = {} if root is None else plug_n_play.members_of(root)
    found: set[Path] = set()
    pending = [source]
    while pending:
        package = pending.pop()
        for name in dependencies(reading.table(package / "package.json"), "peerDependencies"):
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

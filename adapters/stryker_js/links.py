"""Links: what stands around a private copy for what isn't copied; in directories of links, what is made there stays.

Small files that tools would write again through a link are copied instead.
"""

# Paths are plain strings here where there may be thousands, for each is looked at before every request.

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from msp_bridge.toolkit import erase

MODULES = "node_modules"
KEPT = {".bin", ".pnpm", ".store", ".bun"}  # hidden in node_modules and installed; what else is so, tools make
NOTES = (".package-lock.json", ".modules.yaml", ".yarn-state.yml", ".yarn-integrity")  # of whatever has installed it
GENERATED = ".prisma"  # hidden in node_modules, too, and the code that Prisma makes of people's schemas
COPIED = {*NOTES, ".pnpm-workspace-state.json", ".pnpm-workspace-state-v1.json", GENERATED}
APART = {MODULES, ".yarn"}  # what is below is no source: nobody copies it
# not to be linked beside a copy
RESERVED = re.compile(r"manifest\.|msp-bridge-|\.git$|\.pnp\.|node_modules$|.*\.lock$")
WRITTEN = re.compile(r"\.|.*\.tsbuildinfo$")  # files beside a copy that tools write: settings, caches
Moved = Mapping[Path, Path]  # directories of the user's, links resolved, and what stands for each


def stands_for(path: Path, moved: Moved) -> Path:
    """What stands for `path`, which may lie in a directory that was moved."""
    source = next((above for above in (path, *path.parents) if above in moved), None)
    if source is None or not APART.isdisjoint(path.relative_to(source).parts):
        return path
    return moved[source] / path.relative_to(source)


def packages_in(modules: str | Path) -> dict[str, os.DirEntry[str]]:
    """What is installed in `modules`, by its name, with the names in scopes."""
    found: dict[str, os.DirEntry[str]] = {}
    for entry in _entries(modules):
        if _is_scope(entry):
            found |= {f"{entry.name}/{package.name}": package for package in _entries(_real(entry))}
        elif entry.name in KEPT or not entry.name.startswith("."):
            found[entry.name] = entry
    return found


def followed(package: os.DirEntry[str]) -> Path | None:
    """Where a link leads, links resolved; None when it is none, or leads into a store of packages."""
    if not package.is_symlink():  # no link itself, but perhaps in a scope that is one
        return None if MODULES in package.path.split(os.sep) else Path(package.path)
    if not KEPT.isdisjoint(os.readlink(package.path).split(os.sep)):
        return None
    return Path(os.path.realpath(package.path))


def link_modules(modules: Path, place: Path, moved: Moved) -> None:
    """Make `place` a directory of links to what is in `modules`, but for what tools make there."""
    wanted = {entry.name: entry for entry in _entries(modules) if _is_installed(entry.name)}
    make_directory(str(place))
    for name in set(os.listdir(place)) - wanted.keys():
        if _is_installed(name) or (place / name).is_symlink():  # what else is there, as `.vite`, a tool keeps
            erase(str(place / name))
    for name, entry in wanted.items():
        if _is_scope(entry):
            link_modules(Path(_real(entry)), place / name, moved)
        elif name in COPIED:
            make_copy(entry.path, f"{place}/{name}")
        else:
            make_link(f"{place}/{name}", _target(entry, moved))


def link_beside(directory: Path, left_out: str, place: Path, moved: Moved, *, ours: bool = False) -> None:
    """Links in `place` to what is in `directory`, where packages, tsconfig.base.json and the like are looked up.

    But for what the bridge, whoever keeps the copies, or a tool would write to: that must never reach the user's files,
    unless the directory is `ours`.
    """
    make_directory(str(place))
    wanted = {entry.name: entry for entry in _entries(directory) if _is_linked_beside(entry, left_out)}
    places = {os.fspath(source): os.fspath(copy) for source, copy in moved.items()}
    holding = {os.fspath(above) for source in moved for above in source.parents}
    for name in set(os.listdir(place)) - wanted.keys():
        stale = os.path.islink(place / name) or (WRITTEN.match(name) and os.path.isfile(place / name))
        if stale and not RESERVED.match(name):
            os.unlink(place / name)
    for name, entry in wanted.items():
        if entry.path in holding and entry.path not in places:
            link_beside(Path(entry.path), "", place / name, moved)
        elif WRITTEN.match(name) and not ours and not os.path.isdir(entry.path):
            make_copy(entry.path, f"{place}/{name}")
        else:
            make_link(f"{place}/{name}", places.get(entry.path, entry.path))


def make_directory(path: str) -> None:
    """A directory of ours, never a link to one of the user's, whatever has been there."""
    if os.path.islink(path) or not os.path.isdir(path):
        _clear(path)
        os.makedirs(path)
    elif os.stat(path).st_mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(path, stat.S_IRWXU)  # a test has locked it


def make_link(link: str, target: str) -> None:
    """A link, whatever has been there."""
    try:
        if os.readlink(link) == target:
            return
        os.unlink(link)
    except FileNotFoundError:
        pass
    except OSError:  # a file or a directory, which a tool has made
        erase(link)
    os.symlink(target, link)


def make_copy(source: str, copy: str) -> None:
    """A copy of a file, or of a directory, whatever has been there; without what can't be read, and links within."""
    if os.path.isdir(source):
        make_directory(copy)
        wanted = {entry.name: entry.path for entry in _entries(source) if not entry.is_symlink()}
        for name in set(os.listdir(copy)) - wanted.keys():
            erase(f"{copy}/{name}")
        for name, path in wanted.items():
            make_copy(path, f"{copy}/{name}")
    elif os.path.islink(copy) or stamp(source) is None or stamp(source) != stamp(copy):
        _clear(copy)
        if os.path.isfile(source) and os.access(source, os.R_OK):
            try:
                shutil.copy2(source, copy)
            except FileNotFoundError:  # gone since it was listed
                _clear(copy)


def stamp(file: str | Path) -> tuple[int, int] | None:
    """Changes with the file: when it was modified, in ns since the epoch, and its size in bytes; None without it."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _target(entry: os.DirEntry[str], moved: Moved) -> str:
    """Of packages that are links, as those of a workspace, what stands for the package itself."""
    real = followed(entry)
    if real is None:
        return entry.path
    there = stands_for(real, moved)
    return entry.path if there == real else os.fspath(there)


def _entries(directory: str | Path) -> list[os.DirEntry[str]]:
    """What is in it; nothing when it is gone, or isn't ours to read."""
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []


def _is_installed(name: str) -> bool:
    return not name.startswith(".") or name in KEPT or name in COPIED


def _is_linked_beside(entry: os.DirEntry[str], left_out: str) -> bool:
    if entry.name == left_out or RESERVED.match(entry.name):
        return False
    return not (entry.name.startswith(".") and os.path.isdir(entry.path))


def _is_scope(entry: os.DirEntry[str]) -> bool:
    return entry.name.startswith("@") and os.path.isdir(entry.path)


def _real(scope: os.DirEntry[str]) -> str:
    return os.path.realpath(scope.path) if scope.is_symlink() else scope.path


def _clear(path: str) -> None:
    if os.path.lexists(path):
        erase(path)

"""Links: what stands around a private copy for what isn't copied; in directories of links, what is made there stays."""

# Paths are plain strings here where there may be thousands, for each is looked at before every request.

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from msp_bridge.shadow import erase

MODULES = "node_modules"
KEPT = {".bin", ".pnpm", ".store", ".prisma"}  # hidden in node_modules and installed; what else is so, tools make
APART = {MODULES, ".yarn"}  # what is below is no source: nobody copies it
# not to be linked beside a copy
RESERVED = re.compile(r"manifest\.|msp-bridge-|\.git$|\.pnp\.|node_modules$|.*\.lock$")
Moved = Mapping[Path, Path]  # directories of the user's, links resolved, and what stands for each


def stands_for(path: Path, moved: Moved) -> Path:
    """What stands for `path`, which may lie in a directory that was moved."""
    source = next((above for above in (path, *path.parents) if above in moved), None)
    if source is None or not APART.isdisjoint(path.relative_to(source).parts):
        return path
    return moved[source] / path.relative_to(source)


def link_modules(modules: Path, place: Path, moved: Moved) -> tuple[str, ...]:
    """Make `place` a directory of links to what is in `modules`, but for what tools make there; the names."""
    with os.scandir(modules) as entries:
        wanted = {entry.name: entry for entry in entries if entry.name in KEPT or not _is_hidden_directory(entry)}
        if place.is_symlink():  # what is written there must never reach the user's files
            place.unlink()
        place.mkdir(parents=True, exist_ok=True)
        for name in set(os.listdir(place)) - wanted.keys():
            if name.startswith("@") or (place / name).is_symlink():  # what else is there, a tool has made
                erase(str(place / name))
        for name, entry in wanted.items():
            if name.startswith("@") and not entry.is_symlink():
                link_modules(modules / name, place / name, moved)
            else:
                make_link(f"{place}/{name}", _target(entry, moved))
    return tuple(sorted(wanted))


def link_beside(directory: Path, left_out: str, place: Path, moved: Moved) -> None:
    """Links in `place` to what is in `directory`, where packages, tsconfig.base.json and the like are looked up.

    But for what the bridge, whoever keeps the copies, or a tool would write to: that must never reach the user's files.
    """
    place.mkdir(parents=True, exist_ok=True)
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name == left_out or RESERVED.match(entry.name) or _is_hidden_directory(entry):
                continue
            inner = Path(entry.path)
            if inner not in moved and any(member.is_relative_to(inner) for member in moved):
                if (place / entry.name).is_symlink():
                    (place / entry.name).unlink()
                link_beside(inner, "", place / entry.name, moved)
            else:
                make_link(f"{place}/{entry.name}", os.fspath(moved.get(inner, inner)))


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


def _target(entry: os.DirEntry[str], moved: Moved) -> str:
    """Of packages that are links, as those of a workspace, what stands for the package itself."""
    if not entry.is_symlink():
        return entry.path
    real = Path(os.path.realpath(entry.path))
    there = stands_for(real, moved)
    return entry.path if there == real else os.fspath(there)


def _is_hidden_directory(entry: os.DirEntry[str]) -> bool:
    return entry.name.startswith(".") and entry.is_dir()

"""Installed: what tells whether the packages around a project are those that they were.

Of packages in `node_modules` it is their names and what the installation notes; of what is only linked to there
(`file:../lib`, `npm link`), which people edit, and of code that is generated there, it is each file.
"""

# Paths are plain strings here, for each is looked at before every request.

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from msp_bridge.toolkit import walk

from .links import APART, GENERATED, MODULES, NOTES, followed, packages_in, stamp

CLIENT = "@prisma/client"
FILES = 10_000  # of each such package; edits beyond them aren't seen

Installed = dict[str, tuple[object, ...]]  # a directory to what is the same as long as it is


def look(modules: Iterable[Path], linked: Iterable[Path], top: Path) -> Installed:
    """What is installed in these `node_modules`, and what they and `linked` lead to outside `top`, the workspace."""
    found: Installed = {}
    pending = [os.fspath(directory) for directory in modules]

    def note(package: Path) -> None:
        if str(package) not in found and _is_edited(package, top):
            found[str(package)] = _stamps_below(str(package))
            pending.append(f"{package}/{MODULES}")

    for package in linked:
        note(package)
    while pending:
        directory = pending.pop()
        if directory in found or not os.path.isdir(directory):
            continue
        packages = packages_in(directory)
        found[directory] = (tuple(sorted(packages)), *(stamp(f"{directory}/{name}") for name in NOTES))
        found[f"{directory}/{GENERATED}"] = _stamps_below(f"{directory}/{GENERATED}")
        if client := packages.get(CLIENT):  # what pnpm has in its store, Prisma generates there
            generated = os.path.join(os.path.realpath(client.path), os.pardir, os.pardir, GENERATED)
            found[generated] = _stamps_below(generated)
        for entry in packages.values():
            if real := followed(entry):
                note(real)
    return found


def _is_edited(package: Path, top: Path) -> bool:
    """Whether it is a directory that people may edit, and neither within `top`, whose packages are known, nor above."""
    related = package.is_relative_to(top) or top.is_relative_to(package)
    return not related and APART.isdisjoint(package.parts) and os.path.isdir(package)


def _stamps_below(package: str) -> tuple[object, ...]:
    files = (os.path.join(directory, name) for directory, _, names in walk(package) for name in names)
    return tuple((file, stamp(file)) for file in islice(files, FILES))

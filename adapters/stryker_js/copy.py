"""Copy: the private copy of the project that StrykerJS works in, with ways to the packages installed around it.

StrykerJS tests in a sandbox below the directory that it runs in, but it, its plugins and the tests write beside that,
too: reports, the file of incremental mode, `node_modules/.vite`; with `inPlace` it edits the sources. So it is run in a
copy. `node_modules` there is a directory of links, so that what is made in it stays there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from attrs import define, field

from msp_bridge.adapter import Project
from msp_bridge.shadow import ShadowWorkspace
from msp_bridge.shadow.slot import erase

from . import plug_n_play
from .places import Places

COPIES = 16  # how many runs, of all bridges, may go on in one project
SANDBOX = ".stryker-tmp"
MODULES = "node_modules"
UNSEARCHED = {MODULES, SANDBOX, ".git", ".hg", ".svn"}
WRITTEN = re.compile(r"\.(cache|vite|vite-temp|vitest|tmp|stryker-tmp)$")  # what tools make in node_modules
# what each installation writes
INSTALLED = (".package-lock.json", ".modules.yaml", ".yarn-state.yml", ".yarn-integrity")
RESERVED = re.compile(r"copy-|manifest\.|msp-bridge-|\.git$|.*\.lock$")  # means something beside a copy
WORKSPACE = ("package.json", "pnpm-workspace.yaml", MODULES)  # in a directory through which packages are resolved


@define(eq=False)
class Copy:
    """One copy, ours until `close`. Every method blocks: call them in a thread."""

    source: Path  # links resolved
    _shadow: ShadowWorkspace
    _modules: dict[str, tuple[object, ...]] = field(factory=dict)  # directory of modules to what is installed in it

    @classmethod
    def claim(cls, project: Project) -> Self:
        """A copy that no other process uses; raises ToolError."""
        source = project.root.resolve()
        above = _workspace_above(source)
        home = project.cache.joinpath("copies", *["above"] * max(0, len(above) - 2))
        shadow = ShadowWorkspace.claim(home, project.root, limit=COPIES)
        shadow.overlaid.update(plug_n_play.MAPS)
        place = shadow.path.parent
        for directory, left in zip(above, (source, *above), strict=False):
            _link_all(directory, {left.name, shadow.path.name}, place)
            place = place.parent
        return cls(source, shadow)

    @property
    def path(self) -> Path:
        """Of the copy, links resolved, as Node sees it."""
        return Path(os.path.realpath(self._shadow.path))

    @property
    def places(self) -> Places:
        """Which file of the copy is which of the project's."""
        return Places(self.path, self.source)

    @property
    def digest(self) -> str:
        """A name for the content."""
        return self._shadow.digest

    @property
    def identity(self) -> tuple[int, int] | None:
        """Changes when it was made anew: a process stays in the directory that it was started in."""
        return self._shadow.identity

    @property
    def installed(self) -> tuple[object, ...]:
        """Equal as long as the same packages are installed."""
        return tuple(sorted(self._modules.items()))

    def refresh(self) -> None:
        """Make it equal to the project. No run may be going on."""
        self.clear()
        self._shadow.refresh()
        plug_n_play.write_maps(self.source, self.path)
        self._modules = {}
        for relative in _modules_below(self.source):
            modules = self.source / relative
            names = _link(modules, self._shadow.path / relative)
            self._modules[relative] = (names, *(_stamp(modules / name) for name in INSTALLED))

    def clear(self) -> None:
        """Delete what runs that were ended have left. None may be going on."""
        sandbox = self._shadow.path / SANDBOX
        if os.path.lexists(sandbox):
            erase(str(sandbox))

    def close(self) -> None:
        """Let other processes claim it."""
        self._shadow.close()


def _workspace_above(source: Path) -> tuple[Path, ...]:
    """The directories above, the nearest first, up to the last that packages might be resolved through."""
    above = [directory for directory in source.parents if directory not in (Path.home(), Path(directory.anchor))]
    last = max(
        (depth for depth, directory in enumerate(above, 1) if any((directory / name).exists() for name in WORKSPACE)),
        default=0,
    )
    return tuple(above[:last])


def _modules_below(source: Path) -> Iterator[str]:
    """Every `node_modules` that isn't in another one, relative, with `/`."""
    for directory, names, _ in os.walk(source):
        if MODULES in names:
            yield (Path(directory).relative_to(source) / MODULES).as_posix()
        names[:] = [name for name in names if name not in UNSEARCHED]


def _link(modules: Path, place: Path) -> tuple[str, ...]:
    """Make `place` a directory of links to what is in `modules`, but for what tools make there; the names."""
    names = {name for name in os.listdir(modules) if not WRITTEN.match(name)}
    place.mkdir(parents=True, exist_ok=True)
    present = {entry.name: entry.is_symlink() for entry in os.scandir(place)}
    for name in present.keys() - names:
        if present[name]:
            (place / name).unlink()
    for name in names - present.keys():
        (place / name).symlink_to(modules / name)
    return tuple(sorted(names))


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _link_all(directory: Path, left_out: set[str], place: Path) -> None:
    """Links in `place` to what is in `directory`, where packages, tsconfig.base.json and the like are looked up.

    But for names that we, or whoever keeps the copies, would write to: that must never reach the user's files.
    """
    for name in os.listdir(directory):
        link = place / name
        if name not in left_out and not RESERVED.match(name) and not os.path.lexists(link):
            link.symlink_to(directory / name)

"""Copy: the private copy of the project that StrykerJS works in, with ways to the packages installed around it.

StrykerJS tests in a sandbox below the directory that it runs in, but it, its plugins and the tests write beside that,
too: reports, the file of incremental mode, `node_modules/.vite`; with `inPlace` it edits the sources. So it is run in a
copy. `node_modules` there is a directory of links, so that what is made in it stays there.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from attrs import define, field

from msp_bridge.adapter import Project
from msp_bridge.shadow import ShadowWorkspace, erase, unwritable

from . import plug_n_play
from .places import Places

COPIES = 16  # how many runs, of all bridges, may go on in one project
SANDBOX = ".stryker-tmp"
MODULES = "node_modules"
UNSEARCHED = {MODULES, SANDBOX, ".git", ".hg", ".svn"}
KEPT = {".bin", ".pnpm", ".store", ".prisma"}  # hidden in node_modules and installed; what else is so, tools make
# what each installation writes
INSTALLED = (".package-lock.json", ".modules.yaml", ".yarn-state.yml", ".yarn-integrity")
RESERVED = re.compile(r"copy-|manifest\.|msp-bridge-|\.git$|node_modules$|.*\.lock$")  # not to be linked beside a copy
WORKSPACE = ("package.json", "pnpm-workspace.yaml", MODULES)  # in a directory through which packages are resolved


@define(eq=False)
class Copy:
    """One copy, ours until `close`. Every method blocks: call them in a thread."""

    source: Path  # links resolved
    _shadow: ShadowWorkspace
    _above: tuple[Path, ...]  # directories through which packages are resolved, the nearest first
    _modules: dict[str, tuple[object, ...]] = field(factory=dict)  # directory of modules to what is installed in it

    @classmethod
    def claim(cls, project: Project) -> Self:
        """A copy that no other process uses; raises ToolError."""
        source = project.root.resolve()
        above = _workspace_above(source)
        home = project.cache.joinpath("copies", *["above"] * max(0, len(above) - 2))
        shadow = ShadowWorkspace.claim(home, project.root, limit=COPIES)
        shadow.overlaid.update(plug_n_play.MAPS)
        return cls(source, shadow, above)

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
        """Make it equal to the project. No run may be going on. Raises ToolError."""
        self.clear()
        self._shadow.refresh()
        try:
            plug_n_play.write_maps(self.source, self.path)
            self._link_above()
            self._link_modules()
        except OSError as error:
            raise unwritable(self._shadow.path, error) from error

    def clear(self) -> None:
        """Delete what runs that were ended have left. None may be going on. Raises ToolError."""
        sandbox = self._shadow.path / SANDBOX
        try:
            if os.path.lexists(sandbox):
                erase(str(sandbox))
        except OSError as error:
            raise unwritable(sandbox, error) from error

    def close(self) -> None:
        """Let other processes claim it."""
        self._shadow.close()

    def _link_above(self) -> None:
        for directory, left, place in zip(self._above, (self.source, *self._above), self._beside, strict=False):
            _link_all(directory, {left.name, self._shadow.path.name}, place)

    def _link_modules(self) -> None:
        below = {self.source / relative: self._shadow.path / relative for relative in _modules_below(self.source)}
        above = {
            directory / MODULES: place / MODULES for directory, place in zip(self._above, self._beside, strict=True)
        }
        self._modules = {}
        for modules, place in {**below, **above}.items():
            if modules.is_dir():
                names = _link(modules, place)
                self._modules[str(modules)] = (names, *(_stamp(modules / name) for name in INSTALLED))

    @property
    def _beside(self) -> Sequence[Path]:
        """What stands for each directory above."""
        return self._shadow.path.parents[: len(self._above)]


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
    """Make `place` a directory of links to what is in `modules`, but for what tools make there; the names.

    Other copies may share `place`, and do the same meanwhile.
    """
    with os.scandir(modules) as entries:
        names = {entry.name for entry in entries if entry.name in KEPT or not _is_hidden_directory(entry)}
    if place.is_symlink():  # what is written there must never reach the user's files
        place.unlink()
    place.mkdir(parents=True, exist_ok=True)
    with os.scandir(place) as entries:
        present = {entry.name: entry.is_symlink() for entry in entries}
    for name in present.keys() - names:
        if present[name]:
            (place / name).unlink(missing_ok=True)
    for name in names - present.keys():
        _make_link(place / name, modules / name)
    return tuple(sorted(names))


def _is_hidden_directory(entry: os.DirEntry[str]) -> bool:
    return entry.name.startswith(".") and entry.is_dir()


def _make_link(link: Path, target: Path) -> None:
    with contextlib.suppress(FileExistsError):
        link.symlink_to(target)


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _link_all(directory: Path, left_out: set[str], place: Path) -> None:
    """Links in `place` to what is in `directory`, where packages, tsconfig.base.json and the like are looked up.

    But for what we, whoever keeps the copies, or a tool would write to: that must never reach the user's files.
    """
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name not in left_out and not RESERVED.match(entry.name) and not _is_hidden_directory(entry):
                _make_link(place / entry.name, directory / entry.name)

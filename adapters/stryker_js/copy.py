"""Copy: the private copy of the project that StrykerJS works in, with ways to the packages installed around it.

StrykerJS tests in a sandbox below the directory that it runs in, but it, its plugins and the tests write beside that,
too: reports, the file of incremental mode, `node_modules/.vite`; with `inPlace` it edits the sources. So it is run in a
copy. `node_modules` there is a directory of links, so that what is made in it stays there. Of a workspace, the packages
that the project depends on are copied, too: what they write beside themselves stays in their copies.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from attrs import define, field

from msp_bridge.adapter import Project
from msp_bridge.shadow import ShadowWorkspace, erase, unwritable

from . import plug_n_play
from .links import MODULES, link_beside, link_modules, make_link
from .members import members_of
from .places import Places

COPIES = 16  # how many runs, of all bridges, may go on in one project
SANDBOX = ".stryker-tmp"
UNSEARCHED = {MODULES, SANDBOX, ".git", ".hg", ".svn"}
# what each installation writes
INSTALLED = (".package-lock.json", ".modules.yaml", ".yarn-state.yml", ".yarn-integrity")
WORKSPACE = ("package.json", "pnpm-workspace.yaml", MODULES)  # in a directory through which packages are resolved


@define(eq=False)
class Copy:
    """One copy, ours until `close`. Every method blocks: call them in a thread."""

    source: Path  # links resolved
    _shadow: ShadowWorkspace
    _above: tuple[Path, ...]  # directories through which packages are resolved, the nearest first
    _members: dict[Path, ShadowWorkspace] = field(factory=dict)  # of the workspace; ours with the copy
    _modules: dict[str, tuple[object, ...]] = field(factory=dict)  # directory of modules to what is installed in it
    _looked_at: str = ""  # the digest of the content whose names are known
    _nameless: tuple[str, ...] = ()
    _mapped: object = None  # what Yarn's maps in the copies were made of

    @classmethod
    def claim(cls, project: Project) -> Self:
        """A copy that no other process uses; raises ToolError."""
        source = project.root.resolve()
        above = _workspace_above(source)
        shadow = ShadowWorkspace.claim(project.cache / "copies", project.root, limit=COPIES)
        if above:
            shadow.path = shadow.path.parent.joinpath("workspace", source.relative_to(above[-1]))
        shadow.overlaid.update(plug_n_play.OURS)
        return cls(source, shadow, above)

    @property
    def path(self) -> Path:
        """Of the copy, links resolved, as Node sees it."""
        return Path(os.path.realpath(self._shadow.path))

    @property
    def places(self) -> Places:
        """Which file of the copy is which of the project's."""
        (source, copy), *members = self._moved.items()
        return Places(copy, source, tuple(members))

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
        return tuple(sorted(self._modules.items())), *(shadow.digest for shadow in self._members.values())

    @property
    def state(self) -> object:
        """Equal as long as content and packages are the same."""
        return self.digest, self.installed

    def refresh(self) -> None:
        """Make it equal to the project. No run may be going on. Raises ToolError."""
        self._shadow.refresh()
        self._members = {member: self._copy_of(member) for member in members_of(self.source, self._above)}
        try:
            for member in self._members.values():
                member.refresh()
            self._leave_out_nameless()
            self._link_around()
            self._write_maps()
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

    def _leave_out_nameless(self) -> None:
        """What Node can't name would end StrykerJS, which reads every file."""
        if self._looked_at != self.digest:
            self._looked_at, self._nameless = self.digest, tuple(_nameless_below(self.source))
        for path in self._nameless:
            self._shadow.complain(path, "Node.js can't name it, for its name is no UTF-8 text")
            if os.path.lexists(self._shadow.path / path):  # else it went with its directory
                erase(str(self._shadow.path / path))

    def _copy_of(self, member: Path) -> ShadowWorkspace:
        if member in self._members:
            return self._members[member]
        relative = member.relative_to(self._above[-1])
        home = self._top.with_name("members") / "+".join(relative.parts)
        return ShadowWorkspace(member, home / relative, overlaid={*plug_n_play.OURS})

    def _link_around(self) -> None:
        moved = self._moved
        for directory, left, place in zip(self._above, (self.source, *self._above), self._beside, strict=False):
            link_beside(directory, left.name, place, moved)
        self._modules = {}
        for modules, place in self._places_of_modules():
            if modules.is_dir():
                names = link_modules(modules, place, moved)
                self._modules[str(modules)] = (names, *(_stamp(modules / name) for name in INSTALLED))
        for member, shadow in self._members.items():
            self._link_around_member(member, shadow.path)

    def _write_maps(self) -> None:
        root = plug_n_play.root_of((self.source, *self._above))
        if root is None:
            return
        moved = self._moved
        self._modules[str(root)] = tuple(_stamp(root / name) for name in plug_n_play.OURS)
        if self._mapped != (self._modules[str(root)], moved) or not all(map(plug_n_play.is_used, moved.values())):
            for copy in moved.values():
                plug_n_play.write_maps(root, copy, moved)
            self._mapped = self._modules[str(root)], moved

    def _link_around_member(self, member: Path, copy: Path) -> None:
        """Around the copy of a member is what is around ours."""
        for directory, left, place in zip(member.parents, (copy, *copy.parents), copy.parents, strict=False):
            ours = self._top / directory.relative_to(self._above[-1])
            link_beside(ours, left.name, place, {})
            if (ours / MODULES).is_dir():
                make_link(f"{place}/{MODULES}", f"{ours}/{MODULES}")
            if directory == self._above[-1]:
                break

    def _places_of_modules(self) -> Iterator[tuple[Path, Path]]:
        """Every `node_modules` around and in what is copied, and where it is to be."""
        for source, copy in self._moved.items():
            yield from ((source / relative, copy / relative) for relative in _modules_below(source))
        yield from ((above / MODULES, place / MODULES) for above, place in zip(self._above, self._beside, strict=True))

    @property
    def _moved(self) -> dict[Path, Path]:
        """What is copied, and where to, links resolved."""
        members = {member: Path(os.path.realpath(shadow.path)) for member, shadow in self._members.items()}
        return {self.source: self.path, **members}

    @property
    def _beside(self) -> Sequence[Path]:
        """What stands for each directory above."""
        return self._shadow.path.parents[: len(self._above)]

    @property
    def _top(self) -> Path:
        """What stands for the root of the workspace."""
        return self._beside[-1]


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
    for directory, names, _ in _walk(source):
        if MODULES in names:
            yield (Path(directory).relative_to(source) / MODULES).as_posix()


def _nameless_below(source: Path) -> Iterator[str]:
    """Every file and directory whose name is no UTF-8 text, relative, with `/`."""
    for directory, names, files in _walk(source):
        for name in (*names, *files):
            if not name.isascii() and name != os.fsencode(name).decode("utf-8", "replace"):
                yield (Path(directory).relative_to(source) / name).as_posix()


def _walk(source: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """As `os.walk`, without what is installed and what tools keep."""
    for directory, names, files in os.walk(source):
        yield directory, names, files
        names[:] = [name for name in names if name not in UNSEARCHED]


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size

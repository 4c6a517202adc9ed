"""ProjectSandbox: the private copy of the project that StrykerJS runs in, with links to the packages around it.

StrykerJS tests in a sandbox below the directory that it runs in, but it, its plugins and the tests write beside that,
too: reports, the file of incremental mode, `node_modules/.vite`; with `inPlace` it edits the sources. So it is run in a
copy. Of a workspace, the packages that the project depends on are copied, too (`members`): what they write beside
themselves stays in their copies.

A sandbox is laid out in one of two ways. *Isolated*: each copy stands at its project's own path while StrykerJS runs,
and what is around it is what the user has there, under layers (`around`). Otherwise the copies are used where they lie:
`node_modules` is a directory of links, so that what is made in it stays there, and links stand beside the copies.
"""

import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from threading import Event
from typing import Self

from attrs import define, field, frozen

from msp_bridge.adapter import Project
from msp_bridge.toolkit import Around, Sandbox, erase, walk, writes_in

from . import plug_n_play
from .node_modules import (
    MODULES,
    Installed,
    link_beside,
    link_modules,
    look,
    make_copy,
    make_directory,
    make_link,
    stamp,
    stamps_of,
)
from .workspace import directories_above, files_above, members_of, modules_below

MAX_SANDBOXES = 16  # how many runs, of all bridges, may go on in one project
TEMPORARY = ".stryker-tmp"  # StrykerJS's own directory


@frozen
class PathMap:
    """Which of the user's files is meant where StrykerJS and its tests name one in the sandbox.

    All directories are absolute, without links. Isolated, the sandbox and the copies are seen at the user's own paths.
    """

    sandbox: Path
    root: Path
    members: tuple[tuple[Path, Path], ...] = ()  # of other packages of the workspace: the user's, the copy

    @property
    def isolated(self) -> bool:
        """Whether StrykerJS sees the copies there."""
        return self.sandbox == self.root

    def to_user(self, text: str) -> str:
        """`text` with the user's paths in place of those in the copies, and in StrykerJS's own sandboxes in it."""
        text = self._in_sandbox.sub(lambda _: str(self.root), text)
        for root, copy in self.members:
            text = text.replace(str(copy), str(root))
        return text

    @cached_property
    def _in_sandbox(self) -> re.Pattern[str]:
        return re.compile(rf"{re.escape(str(self.sandbox))}(?:[/\\]\.stryker-tmp[/\\]sandbox-?\w+)?")


@define(eq=False)
class ProjectSandbox:
    """One private copy, ours until `close`. Every method blocks: call them in a thread."""

    source: Path  # links resolved
    _sandbox: Sandbox
    _above: tuple[Path, ...]  # directories through which packages are resolved, the nearest first
    isolated: bool = False  # how the next `refresh` lays it out
    _members: dict[Path, Sandbox] = field(factory=dict)  # of the workspace; ours with the copy
    _installed: Installed = field(factory=dict)
    _made: object = None  # the copies, at the last refresh
    _looked_at: str = ""  # the digest of the content whose names are known
    _nameless: tuple[str, ...] = ()
    _linked: tuple[object, tuple[Path, ...]] | None = None  # Yarn's maps, and what they link to
    _mapped: object = None  # what Yarn's maps in the copies were made of

    @classmethod
    def claim(cls, project: Project) -> Self:
        """A copy that no other process uses; raises ToolError."""
        source = project.root.resolve()
        above = directories_above(source)
        sandbox = Sandbox.claim(project.cache / "copies", project.root, limit=MAX_SANDBOXES)
        if above:
            sandbox.path = sandbox.path.parent.joinpath("workspace", source.relative_to(above[-1]))
        sandbox.overlaid.update(plug_n_play.OURS)
        return cls(source, sandbox, above)

    @property
    def path(self) -> Path:
        """The path of the copy, links resolved, as Node sees it."""
        return Path(os.path.realpath(self._sandbox.path))

    @property
    def paths(self) -> PathMap:
        """Which file that StrykerJS names is which of the project's."""
        (source, copy), *members = self._moved.items()
        if self.isolated:
            return PathMap(source, source, tuple((member, member) for member, _ in members))
        return PathMap(copy, source, tuple(members))

    @property
    def home(self) -> Path:
        """The directory that is ours, with all that is in it."""
        return self._sandbox.path.parents[len(self._above)]

    @property
    def maps(self) -> Path | None:
        """Where StrykerJS finds the maps of Plug'n'Play, if there are any."""
        return plug_n_play.root_of((self.source, *self._above) if self.isolated else (self.path,))

    def around(self) -> Around:
        """Everything that StrykerJS sees beside the copy of the project when it is isolated. Blocks.

        Nothing can be written into packages, nor into the workspace or what is linked to outside of it.
        """
        members = dict(list(self._moved.items())[1:])
        keep = [str(modules) for modules, _ in self._modules_inside() if not modules.is_symlink()]
        outside = {os.path.realpath(place) for place in self._installed if os.path.isdir(place)}
        return Around(keep, members, [*map(Path, sorted(outside)), *self._above[-1:]])

    @property
    def digest(self) -> str:
        """A name for the content."""
        return self._sandbox.digest

    @property
    def identity(self) -> tuple[int, int] | None:
        """Changes when it was made anew: a process stays in the directory that it was started in."""
        return self._sandbox.identity

    @property
    def installed(self) -> tuple[object, ...]:
        """Equal as long as the same packages are installed, and linked or copied packages are unchanged."""
        return tuple(sorted(self._installed.items())), *(member.digest for member in self._members.values())

    @property
    def state(self) -> object:
        """Equal as long as content and packages are the same."""
        return self.digest, self.installed

    def refresh(self, stop: Event | None = None) -> frozenset[str]:
        """Make it equal to the project. No run may be going on. Raises ToolError, and `sync.Stopped` after `stop`.

        Returns what `Sandbox.refresh` returns.
        """
        self._make_way(self._sandbox)
        changed = self._sandbox.refresh(stop)
        self._members = {member: self._copy_of(member) for member in members_of(self.source, self._above)}
        with writes_in(self._sandbox.path):
            for member in self._members.values():
                self._make_way(member)
                member.refresh(stop)
            self._erase_unneeded()
            self._leave_out_nameless()
            self._installed = self._look_around()
            if self.isolated:
                self._stand_in()
            else:
                self._link_around()
                self._write_maps()
            self._made = self._identities
            self._sandbox.note_size(sum(member.size for member in (self._sandbox, *self._members.values())))
        return changed

    def is_current(self) -> bool:
        """Whether nothing of the project, of the members of its workspace, or of what is installed has changed.

        Since `refresh`, by a look that writes nothing, so tests may be running. Nor is it when a copy was deleted.
        """
        try:
            return (
                self._made == self._identities
                and self._sandbox.is_current()
                and members_of(self.source, self._above) == tuple(self._members)
                and all(member.is_current() for member in self._members.values())
                and self._look_around() == self._installed
            )
        except OSError:  # something vanished meanwhile
            return False

    def clear(self) -> None:
        """Delete what runs that were ended have left. None may be going on. Raises ToolError."""
        temporary = self._sandbox.path / TEMPORARY
        self._make_way(self._sandbox)
        with writes_in(temporary):
            if os.path.lexists(temporary):
                erase(str(temporary))

    def close(self) -> None:
        """Delete what runs have left, and let other processes claim it."""
        try:
            self.clear()
        finally:
            self._sandbox.close()

    def _make_way(self, copy: Sandbox) -> None:
        """Remove links where directories of ours belong: what we write or delete there would be the user's.

        There is one when the root of the workspace is another than the last time, or a tool has made it.
        """
        below = copy.path.relative_to(self.home)
        with writes_in(copy.path):
            for place in (*reversed(below.parents[:-1]), below):
                make_directory(str(self.home / place))

    def _leave_out_nameless(self) -> None:
        """Leave out files that Node can't name: they would end StrykerJS, which reads every file."""
        if self._looked_at != self.digest:
            self._looked_at, self._nameless = self.digest, tuple(_nameless_below(self.source))
        for path in self._nameless:
            self._sandbox.warn(path, "Node.js can't name it: its name is no UTF-8 text")
            if os.path.lexists(self._sandbox.path / path):  # else it went with its directory
                erase(str(self._sandbox.path / path))

    def _copy_of(self, member: Path) -> Sandbox:
        if member in self._members:
            return self._members[member]
        relative = member.relative_to(self._above[-1])
        home = blake2b(os.fsencode(relative), digest_size=8).hexdigest()
        return Sandbox(member, self._homes / home / relative, overlaid={*plug_n_play.OURS})

    def _erase_unneeded(self) -> None:
        """Copies of packages that the project doesn't depend on any more."""
        if not self._above or not os.path.lexists(self._homes):
            return
        make_directory(str(self._homes))  # never a link: what is in it is erased
        needed = {member.path.relative_to(self._homes).parts[0] for member in self._members.values()}
        for home in set(os.listdir(self._homes)) - needed:
            erase(str(self._homes / home))

    def _stand_in(self) -> None:
        """Make the copies what may stand at their projects' own paths."""
        for modules, place in self._modules_inside():
            if modules.is_symlink():
                make_link(str(place), os.readlink(modules))
            else:
                make_directory(str(place))  # the real one is mounted there
        for source, copy in self._moved.items():
            for name in plug_n_play.OURS:
                make_copy(str(source / name), str(copy / name))
        self._mapped = None

    def _link_around(self) -> None:
        moved = self._moved
        for directory, left, place in zip(self._above, (self.source, *self._above), self._beside, strict=False):
            link_beside(directory, left.name, place, moved)
        for modules, place in self._places_of_modules():
            if os.path.isdir(modules):
                link_modules(modules, place, moved)
            elif os.path.lexists(place):
                erase(str(place))
        for member, copy in self._members.items():
            self._link_around_member(member, copy.path)

    def _look_around(self) -> Installed:
        top = self._above[-1] if self._above else self.source
        modules = (modules for modules, _ in self._places_of_modules())
        around: Installed = {f"{top}/*": stamps_of(files_above(self.source, self._above))}
        root = plug_n_play.root_of((self.source, *self._above))
        if root is None:
            return {**around, **look(modules, (), top)}
        maps = tuple(stamp(root / name) for name in plug_n_play.OURS)
        if self._linked is None or self._linked[0] != maps:
            self._linked = maps, plug_n_play.linked_from(root)
        return {**around, str(root): maps, **look(modules, self._linked[1], top)}

    def _write_maps(self) -> None:
        root = plug_n_play.root_of((self.source, *self._above))
        if root is None:
            return
        moved = self._moved
        if self._mapped != (self._installed[str(root)], moved) or not all(map(plug_n_play.is_used, moved.values())):
            for copy in moved.values():
                plug_n_play.write_maps(root, copy, moved)
            self._mapped = self._installed[str(root)], moved

    def _link_around_member(self, member: Path, copy: Path) -> None:
        """Around the copy of a member is what is around ours."""
        for directory, left, place in zip(member.parents, (copy, *copy.parents), copy.parents, strict=False):
            ours = self._top / directory.relative_to(self._above[-1])
            link_beside(ours, left.name, place, {}, ours=True)
            if os.path.isdir(ours / MODULES):
                make_link(f"{place}/{MODULES}", f"{ours}/{MODULES}")
            elif os.path.lexists(place / MODULES):
                erase(str(place / MODULES))
            if directory == self._above[-1]:
                break

    def _places_of_modules(self) -> Iterator[tuple[Path, Path]]:
        """Every `node_modules` around and in what is copied, and where it is to be."""
        yield from self._modules_inside()
        for above in dict.fromkeys((*self._above, *self._above_members())):
            yield above / MODULES, self._top / above.relative_to(self._above[-1]) / MODULES

    def _modules_inside(self) -> Iterator[tuple[Path, Path]]:
        """The `node_modules` in what is copied."""
        for source, copy in self._moved.items():
            yield from ((source / relative, copy / relative) for relative in modules_below(source))

    def _above_members(self) -> Iterator[Path]:
        for member in self._members:
            yield from (above for above in member.parents if self._above[-1] in above.parents)

    @property
    def _moved(self) -> dict[Path, Path]:
        """Copied directories, and where to, links resolved."""
        members = {member: Path(os.path.realpath(copy.path)) for member, copy in self._members.items()}
        return {self.source: self.path, **members}

    @property
    def _identities(self) -> object:
        """The identities of all copies, which change when one was deleted or made anew."""
        return self.identity, *(member.identity for member in self._members.values())

    @property
    def _beside(self) -> Sequence[Path]:
        """The stand-in for each directory above."""
        return self._sandbox.path.parents[: len(self._above)]

    @property
    def _top(self) -> Path:
        """The stand-in for the root of the workspace."""
        return self._beside[-1]

    @property
    def _homes(self) -> Path:
        """Where the copies of the workspace's packages are, each in a directory of its own."""
        return self._top.with_name("members")


def _nameless_below(source: Path) -> Iterator[str]:
    """Every file and directory whose name is no UTF-8 text, relative, with `/`."""
    for directory, names, files in walk(source):
        for name in (*names, *files):
            if not name.isascii() and name != os.fsencode(name).decode("utf-8", "replace"):
                yield (Path(directory).relative_to(source) / name).as_posix()

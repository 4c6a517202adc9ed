"""CargoListing: the mutants that cargo-mutants lists, each at its exact place in a file.

The last listing is kept for as long as no source, manifest or configuration changes: making one takes as long as a
small build.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from attrs import define, evolve, field, frozen

from msp_bridge import reading
from msp_bridge.adapter import Location, Mutant, ToolError
from msp_bridge.concurrency import in_thread
from msp_bridge.source import BOM, SourceText
from msp_bridge.toolkit.tree import Stamp, stamps

from .cargo import CargoCommand
from .installation import search_path

TRIES = 3  # when files are saved while cargo-mutants reads them

Key = tuple[str, str, str, tuple[int, ...]]


@frozen
class Listed:
    """The handle of a mutant: what a run needs, and finds in its outcomes.

    cargo-mutants lists it once for each module that the file is: of several packages, or of a library and a program.
    """

    names: tuple[str, ...]  # which select it
    keys: tuple[Key, ...]
    digest: str  # of the file's content
    packages: tuple[str, ...]

    def __add__(self, other: Self) -> Self:
        return evolve(
            self, names=self.names + other.names, keys=self.keys + other.keys, packages=self.packages + other.packages
        )


def key_of(fields: Mapping[str, Any]) -> Key:
    """Identify a mutant in a listing and in outcomes; the name is missing in both before version 26.1."""
    start, end = fields["span"]["start"], fields["span"]["end"]
    place = (start["line"], start["column"], end["line"], end["column"])
    return fields["file"], fields["genre"], fields["replacement"], place


class CargoListing:
    """Lists the mutants of the package or workspace at `root`."""

    def __init__(self, root: Path, command: CargoCommand) -> None:
        self._root, self._command = root.resolve(), command
        self._kept: tuple[Mapping[str, Stamp], list[Mutant]] = {}, []  # the state of the files, and their mutants

    async def mutants(self) -> list[Mutant]:
        """All mutants, in cargo-mutants' order, which is file by file; raises `ToolError`."""
        state = await self._state()
        if state == self._kept[0]:
            return self._kept[1]
        for _ in range(TRIES):
            entries = await self._json()
            names = await self._names(entries)
            sources = Sources(self._root, await self._command.workspace_root())
            mutants = await in_thread(self._parsed, sources, entries, names)
            before, state = state, await self._state()
            if state == before and len(names) == len(entries):
                self._kept = (state if sources.files <= state.keys() else {}), mutants
                return mutants
        raise ToolError("the sources change while cargo-mutants reads them", "try again")

    async def _state(self) -> Mapping[str, Stamp]:
        """Return the stamps of all that a listing depends on."""
        tool = shutil.which("cargo-mutants", path=search_path())
        places = [await self._command.workspace_root(), tool, self._command.config_file]
        return await in_thread(stamps, [place for place in places if place is not None], (".rs", ".toml"))

    async def options(self) -> list[str]:
        """The options that select all packages in a workspace's root: any of their files may be open in the editor."""
        return ["--workspace"] if await self._command.workspace_root() == self._root else []

    def _parsed(self, sources: Sources, entries: Sequence[dict[str, Any]], names: Sequence[str]) -> list[Mutant]:
        try:
            found = [sources.mutant(entry, name) for entry, name in zip(entries, names, strict=False)]
        except KeyError as error:
            raise self._unreadable(f"it lacks {error}") from None
        except (TypeError, ValueError) as error:
            raise self._unreadable(str(error)) from None
        listed: dict[Mutant, Mutant] = {}
        for mutant in found:
            if mutant is not None:
                same = listed.get(mutant)
                listed[mutant] = mutant if same is None else evolve(same, handle=same.handle + mutant.handle)
        return list(listed.values())

    async def _json(self) -> list[dict[str, Any]]:
        try:
            entries = json.loads(await self._list("--json") or "[]")
        except ValueError as error:
            raise self._unreadable(str(error)) from None
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise self._unreadable("it is no list of objects")
        return entries

    async def _names(self, entries: Sequence[Mapping[str, Any]]) -> Sequence[str]:
        """One name for each entry. Before version 26.1 by a second listing: the sources may have changed meanwhile."""
        if all("name" in entry for entry in entries):
            return [str(entry["name"]) for entry in entries]
        return [name for name in (await self._list()).split("\n") if name]

    async def _list(self, *how: str) -> str:
        return await self._command.output("--list", *how, *await self.options())

    def _unreadable(self, why: str) -> ToolError:
        return ToolError(
            f"the list of mutants of cargo-mutants in {self._root} can't be read: {why}",
            "look at what `cargo mutants --list --json` prints",
        )


@define
class Sources:
    """The files that mutants are of, each read once.

    cargo-mutants counts lines and columns from 1, columns in characters (Unicode scalar values), a byte order mark
    included. The text that it inserts is `replacement` and a comment that marks the change.
    """

    root: Path  # of the project
    workspace: Path  # what cargo-mutants' paths are relative to
    _lines: dict[str, _Lines | None] = field(factory=dict, init=False)

    @property
    def files(self) -> set[str]:
        """Their paths, absolute."""
        return {str(self.root / path) for path in self._lines}

    def mutant(self, fields: Mapping[str, Any], name: str) -> Mutant | None:
        """The mutant called `name`; None when it is outside the project, or not of the file as it is."""
        path, lines = self._file(fields["file"])
        if lines is None:
            return None
        location = lines.location(fields["span"])
        if location is None:
            return None
        description = name.partition(": ")[2] or None
        handle = Listed((name,), (key_of(fields),), lines.digest, (fields["package"],))
        return Mutant(path, fields["genre"], location, fields["replacement"], description, handle)

    def _file(self, name: str) -> tuple[str, _Lines | None]:
        file = self.workspace / name
        if ".." in file.parts:  # `#[path = "../shared.rs"]`
            file = file.parent.resolve() / file.name
        if not file.is_relative_to(self.root):
            return name, None
        path = file.relative_to(self.root).as_posix()
        if path not in self._lines:
            self._lines[path] = _Lines.read(file)
        return path, self._lines[path]


@define
class _Lines:
    """A file's text by its lines, for places that are counted in characters."""

    source: SourceText
    mark: int  # how many characters the byte order mark adds to the first line
    digest: str

    @classmethod
    def read(cls, file: Path) -> _Lines | None:
        """Read `file`; None when it is gone or no UTF-8, as it can have no mutants then."""
        try:
            content = reading.content(file)
            text = content.decode()
        except (OSError, UnicodeDecodeError):
            return None
        source = SourceText(text.removeprefix(BOM))
        return cls(source, len(text) - len(source.text), reading.digest_of(content))

    def location(self, span: Mapping[str, Any]) -> Location | None:
        """The place of the JSON's span; None when the text has no such place."""
        start, end = self._offset(**span["start"]), self._offset(**span["end"])
        return None if start is None or end is None or end < start else self.source.location(start, end)

    def _offset(self, line: int, column: int) -> int | None:
        if not 1 <= line <= self.source.line_count:
            return None
        start, end = self.source.line_offsets(line)
        offset = start + column - 1 - (self.mark if line == 1 else 0)
        return offset if start <= offset <= end else None

"""Folders: what the client has open, as workspaces of ours; documents by their URIs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import define, field

from msp_bridge.dialects.dialect import path_of
from msp_bridge.dialects.lsp.documents import Document
from msp_bridge.dialects.lsp.findings import FileFindings
from msp_bridge.errors import ConfigurationError
from msp_bridge.session import Session
from msp_bridge.source import SourceText
from msp_bridge.workspace.selection import Selection, relative_path

if TYPE_CHECKING:
    from msp_bridge.workspace.versions import FileVersions


@define(eq=False)
class Folder:
    """A folder of the client, with the session at its root, and what is known of its files."""

    root: Path
    session: Session
    findings: dict[str, FileFindings] = field(factory=dict)  # by path
    tools: dict[str, str] = field(factory=dict)  # by path, of files with findings
    outdated: dict[int, str] = field(factory=dict)  # see `Outdated`

    @cached_property
    def versions(self) -> FileVersions:
        """The versions of the folder's files."""
        from msp_bridge.workspace.versions import FileVersions  # here: an editor waits for the rest

        return FileVersions(self.root)

    async def outdate(self) -> list[str]:
        """Look which findings are doubtful by now. Returns the files whose findings have become so, or are no longer.

        Only files that no tool mutates count, such as tests. An edit of a mutated file drops the lines that it touches.
        """
        await self.versions.look(self.findings)
        used = {path: findings.versions for path, findings in self.findings.items()}
        now: dict[int, str] = {}
        for version in set[int]().union(*used.values()):
            edited = self.versions.changed(version)
            mutated = await self.session.tools(edited)
            if (file := next((path for path in edited if path not in mutated), None)) is not None:
                now[version] = file
        other = {
            version for version in now.keys() | self.outdated.keys() if now.get(version) != self.outdated.get(version)
        }
        self.outdated.clear()
        self.outdated.update(now)
        return [path for path, versions in used.items() if versions & other]

    def tool(self, path: str) -> str:
        """The name of the tool that has tested the file `path`, for diagnostics."""
        return self.tools.get(path, "msp-bridge")

    def known(self, path: str) -> FileFindings:
        """The findings of the file `path`."""
        return self.findings.setdefault(path, FileFindings(self.outdated))


class Folders:
    """The folders and documents that the client has open. Documents outside of all folders are not ours."""

    def __init__(self) -> None:
        self._folders: list[Folder] = []
        self.documents: dict[str, Document] = {}  # by URI

    def add(self, session: Session) -> bool:
        """The folder at the root of `session`; False when there is one already."""
        if any(folder.root == session.root for folder in self._folders):
            return False
        self._folders.append(Folder(session.root, session))
        self._folders.sort(key=lambda folder: len(folder.root.parts), reverse=True)  # the innermost first
        return True

    def remove(self, root: Path) -> Folder | None:
        """The folder at `root`, which the client has closed; None when there is none."""
        gone = next((folder for folder in self._folders if folder.root == root), None)
        if gone is not None:
            self._folders.remove(gone)
        return gone

    def __len__(self) -> int:
        """How many are open."""
        return len(self._folders)

    def __iter__(self) -> Iterator[Folder]:
        """The innermost first."""
        return iter(self._folders)

    def locate(self, uri: str) -> tuple[Folder, str] | None:
        """The folder that the document lies in, and its path there."""
        file = path_of(uri)
        if file is None:
            return None
        for folder in self._folders:
            if (path := relative_path(folder.root, file)) is not None:
                return folder, path
        return None

    def place(self, uri: str) -> tuple[Folder, str]:
        """The folder that the document lies in, and its path there. Raises ConfigurationError when there is none."""
        if (place := self.locate(uri)) is None:
            raise ConfigurationError(f"{uri} is in no folder that is open here")
        return place

    async def source(self, uri: str) -> SourceText | None:
        """The client's text, or the file's when it isn't open."""
        if (document := self.documents.get(uri)) is not None:
            return document.source
        place = self.locate(uri)
        return None if place is None else await place[0].session.source(place[1])

    def open_in(self, folder: Folder, selection: Selection) -> Iterable[Document]:
        """The open documents of `folder` that `selection` is about."""
        scope = selection.within(folder.root).scope
        for document in self.documents.values():
            if scope.covers(document.path) and self._is_in(folder, document):
                yield document

    def opened(self, folder: Folder, path: str) -> Document | None:
        """The open document of the file `path`."""
        own = (folder.root / path).as_uri()
        if own in self.documents:
            return self.documents[own]
        same = (document for document in self.documents.values() if document.path == path)  # an URI may be odd
        return next((document for document in same if self._is_in(folder, document)), None)

    def uri(self, folder: Folder, path: str) -> str:
        """The URI by which the client knows the file `path`."""
        document = self.opened(folder, path)
        return (folder.root / path).as_uri() if document is None else document.uri

    def _is_in(self, folder: Folder, document: Document) -> bool:
        place = self.locate(document.uri)
        return place is not None and place[0] is folder

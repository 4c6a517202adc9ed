"""Folders: what the client has open, as workspaces of ours; documents by their URIs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import define, field

from msp_bridge.dialects.dialect import path_of
from msp_bridge.dialects.lsp.documents import Document
from msp_bridge.dialects.lsp.findings import FileFindings
from msp_bridge.errors import ConfigurationError
from msp_bridge.session import Session
from msp_bridge.source import SourceText
from msp_bridge.workspace.selection import Selection, relative_path


@define(eq=False)
class Folder:
    """A folder of the client, with the session at its root, and what is known of its files."""

    root: Path
    session: Session
    findings: dict[str, FileFindings] = field(factory=dict)  # by path
    tools: dict[str, str] = field(factory=dict)  # by path, of files with findings

    async def read(self, path: str) -> SourceText | None:
        """The text that tools see; None when there is none."""
        try:
            return await self.session.source(path)
        except (OSError, UnicodeDecodeError):
            return None

    def tool(self, path: str) -> str:
        """The name of the tool that has tested the file `path`, for diagnostics."""
        return self.tools.get(path, "msp-bridge")

    def known(self, path: str) -> FileFindings:
        """What is known of the file `path`."""
        return self.findings.setdefault(path, FileFindings())


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
        return None if place is None else await place[0].read(place[1])

    def open_in(self, folder: Folder, selection: Selection) -> Iterable[Document]:
        """The open documents of `folder` that `selection` is about."""
        scope = selection.within(folder.root).scope
        for uri, document in self.documents.items():
            place = self.locate(uri)
            if place is not None and place[0] is folder and scope.covers(document.path):
                yield document

    def opened(self, folder: Folder, path: str) -> Document | None:
        """The open document of the file `path`."""
        own = (folder.root / path).as_uri()
        if own in self.documents:
            return self.documents[own]
        same = (document for document in self.documents.values() if document.path == path)  # an URI may be odd
        return next((document for document in same if self._folder(document) is folder), None)

    def _folder(self, document: Document) -> Folder | None:
        place = self.locate(document.uri)
        return None if place is None else place[0]

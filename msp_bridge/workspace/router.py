"""Router: which tool a file belongs to, and what of a request is each tool's part."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from msp_bridge.model import Scope
from msp_bridge.workspace.tool import Tool


@frozen(eq=False)
class Place:
    """The workspace's root, or a folder in it, with the tools that are at home there, the first choice first."""

    folder: str  # relative to the workspace's root, with a `/` at the end; "" for the root itself
    tools: tuple[Tool, ...] = ()
    exclusive: bool = False  # the user chose the tools: no other gets a file of this folder


@frozen(eq=False)
class Part:
    """What of a request is one tool's."""

    tool: Tool
    scope: Scope
    named: bool  # the request named something of this part, rather than all that there is


class Router:
    """A file belongs to the nearest place around it with a tool that claims it, and there to the first such tool."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._outermost_first = sorted(places, key=lambda place: (place.folder.count("/"), place.folder))
        self._innermost_first = self._outermost_first[::-1]

    @property
    def tools(self) -> list[Tool]:
        """All of them, the root's first."""
        return [tool for place in self._outermost_first for tool in place.tools]

    def owner(self, path: str) -> Tool | None:
        """Whose the file `path` is."""
        for place in self._innermost_first:
            if path.startswith(place.folder):
                for tool in place.tools:
                    if tool.claims(path):
                        return tool
                if place.exclusive:
                    return None
        return None

    def parts(self, scope: Scope) -> list[Part]:
        """The parts of a request, those that are not asked left out; the root's first."""
        if scope.paths is None or "/" in scope.paths:
            return [Part(tool, Scope(), named=False) for tool in self.tools]
        files = {path: self.owner(path) for path in scope.paths if not path.endswith("/")}
        directories = {path: self._nearest(path) for path in scope.paths if path.endswith("/")}
        found = []
        for place in self._outermost_first:
            inside = {path for path, nearest in directories.items() if nearest is place}
            around = {path for path in directories if place.folder.startswith(path)}
            others = {
                path
                for path, nearest in directories.items()
                if path.startswith(place.folder) and not (nearest and nearest.exclusive)
            }
            for tool in place.tools:
                own = {path for path, owner in files.items() if owner is tool}
                if paths := own | inside | around | others:
                    found.append(Part(tool, Scope(frozenset(paths)), named=bool(own or inside or around)))
        return found

    def _nearest(self, directory: str) -> Place | None:
        return next((place for place in self._innermost_first if directory.startswith(place.folder)), None)

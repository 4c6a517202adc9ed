"""Scope: which files a request is about."""

from __future__ import annotations

from attrs import frozen


@frozen
class Scope:
    """Files and directories (which end in `/`) relative to the project's root, or everything.

    Ranges within a file are the front end's business: an adapter discovers whole files.
    """

    paths: frozenset[str] | None = None  # None: the whole project

    @property
    def everything(self) -> bool:
        """Whether the scope is the whole project."""
        return self.paths is None

    def covers(self, path: str) -> bool:
        """Whether the file `path` (relative to the root, with `/`) is in scope."""
        if self.paths is None or path in self.paths:
            return True
        at = path.rfind("/")
        while at >= 0:
            if path[: at + 1] in self.paths:
                return True
            at = path.rfind("/", 0, at)
        return "/" in self.paths

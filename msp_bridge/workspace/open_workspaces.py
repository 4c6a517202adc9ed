"""OpenWorkspaces: clients with the same configuration share one workspace, and so its warm tools."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from attrs import define

from msp_bridge.concurrency import in_thread, shielded
from msp_bridge.errors import ConfigurationError
from msp_bridge.workspace.configuration import Configuration, check_named
from msp_bridge.workspace.detection import detect_projects
from msp_bridge.workspace.workspace import Workspace

MAX_IDLE = 2  # workspaces that are kept warm without a request: each may hold a loaded test suite
MAX_LOOKS = 3  # at a tree whose configuration changes meanwhile; the next request looks again


@define(eq=False)
class _Entry:
    workspace: Workspace
    users: int = 0


class OpenWorkspaces:
    """The workspaces of one server, at one root, by the configuration file that was named for them.

    `named` is the file that the server was started with; clients may name those of the project. `acquire` has other
    roots.

    A workspace is opened anew when a file that its configuration was read from has changed, and, at the next `check`,
    when other tools are set up, or in other folders: looking for those takes its time in a large tree.
    Concurrency: one is opened at a time, in a thread; requests to open ones don't wait for that.
    Resource handling: one that isn't in use stays warm, up to `MAX_IDLE` of them; `aclose` ends all.
    """

    def __init__(self, root: Path, options: Configuration, named: str | None = None, *, anywhere: bool = False) -> None:
        self.root, self._options, self._named, self._anywhere = root, options, named, anywhere
        self._others: dict[Path, OpenWorkspaces] = {}  # by their roots
        self._clients = 0  # of one of `_others`: who has acquired it, and not released it
        self._left = False  # nobody has these any more
        self._entries: dict[str | None, _Entry] = {}
        self._outdated: list[_Entry] = []  # no new request gets them
        self._opening = asyncio.Lock()

    def acquire(self, root: Path) -> OpenWorkspaces:
        """The workspaces at another `root`, for a client that has to `release` them; with the same options.

        Raises ConfigurationError when it lies outside of ours, unless clients may open `anywhere`, as one may that has
        started the server.
        """
        root = root.resolve()
        if root == self.root.resolve():
            return self
        if not root.is_dir():
            raise ConfigurationError(f"there is no directory {root}")
        if not (self._anywhere or root.is_relative_to(self.root.resolve())):
            raise ConfigurationError(
                f"{root} lies outside of {self.root}, which this server is for", "start a server there"
            )
        if root not in self._others:
            self._others[root] = OpenWorkspaces(root, self._options)
        self._others[root]._clients += 1
        return self._others[root]

    async def release(self, other: OpenWorkspaces) -> None:
        """A client that has acquired `other` has no further request: what only it kept warm ends."""
        other._clients -= 1
        if other is not self and other._clients <= 0:
            self._others.pop(other.root, None)
            other._left = True
            await other._end_idle()

    async def check(self, named: str | None) -> None:
        """Raises ConfigurationError when the configuration (perhaps of the file `named`) can't be used."""
        async with self.use(named, look_again=True):
            return

    @contextlib.asynccontextmanager
    async def use(self, named: str | None, *, look_again: bool = False) -> AsyncIterator[Workspace]:
        """The workspace with the configuration of the file `named`, or the default one; raises ConfigurationError."""
        if named:
            check_named(self.root, named, self._named)
        entry = await self._entry(named or self._named, look_again)
        entry.users += 1  # nothing was awaited since it was found: it hasn't ended meanwhile
        try:
            await self._end_idle()
            yield entry.workspace
        finally:
            entry.users -= 1
            await self._end_idle()

    async def aclose(self) -> None:
        """End the tools' warm processes."""
        for other in self._others.values():
            await other.aclose()
        entries = [*self._entries.values(), *self._outdated]
        self._entries, self._outdated = {}, []
        await _close(entries)

    async def _entry(self, named: str | None, look_again: bool) -> _Entry:
        if look_again or not self._is_current(named):
            async with self._opening:
                if look_again or not self._is_current(named):  # another client may have opened it meanwhile
                    self._keep(named, await in_thread(self._open, named))
        entry = self._entries.pop(named)
        self._entries[named] = entry  # at the end: the most recently used
        return entry

    def _open(self, named: str | None) -> _Entry:
        """A file that is saved meanwhile may have been read before: then once more."""
        for _ in range(MAX_LOOKS):
            projects = detect_projects(self.root, self._options, named)
            if projects.is_current:
                break
        return _Entry(Workspace.of(projects))

    def _keep(self, named: str | None, opened: _Entry) -> None:
        """Put `opened` in the place of the one before, unless that is just like it: then its tools are warm."""
        before = self._entries.get(named)
        if before is not None:
            old, new = before.workspace.projects, opened.workspace.projects
            if old.fingerprints == new.fingerprints and new.is_like(old):
                return
            self._outdated.append(before)
        self._entries[named] = opened

    def _is_current(self, named: str | None) -> bool:
        entry = self._entries.get(named)
        return entry is not None and entry.workspace.projects.is_current

    async def _end_idle(self) -> None:
        idle = [named for named, entry in self._entries.items() if not entry.users]
        ended = len(idle) if self._left else max(0, len(idle) - MAX_IDLE)
        self._outdated += [self._entries.pop(named) for named in idle[:ended]]
        ending = [entry for entry in self._outdated if not entry.users]
        self._outdated = [entry for entry in self._outdated if entry.users]
        await _close(ending)


async def _close(entries: Sequence[_Entry]) -> None:
    if entries:  # a cancel must not lose workspaces that are in no list any more
        await shielded(asyncio.gather(*(entry.workspace.aclose() for entry in entries)))

"""OpenWorkspaces: clients with the same configuration share one workspace, and so its warm tools."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from attrs import define

from msp_bridge.concurrency import in_thread, wait_shielded
from msp_bridge.workspace.configuration import Configuration, check_named
from msp_bridge.workspace.fingerprint import fingerprint
from msp_bridge.workspace.workspace import Workspace

MAX_IDLE = 2  # workspaces that are kept warm without a request: each may hold a loaded test suite
MAX_LOOKS = 3  # at a tree whose configuration changes meanwhile; the next request looks again


@define(eq=False)
class _Entry:
    workspace: Workspace
    fingerprints: tuple[str, str]  # before anything was read, of the root; before the tools were looked for, of all
    users: int = 0


class OpenWorkspaces:
    """The workspaces of one server, at one root, by the configuration file that was named for them.

    `named` is the file that the server was started with; clients may name those of the project.

    A workspace is opened anew when a file that its configuration was read from has changed, and, at the next `check`,
    when other tools are set up, or in other folders: looking for those takes its time in a large tree.
    Concurrency: one is opened at a time, in a thread; requests to those that are open don't wait for that.
    Resource handling: one that isn't in use stays warm, up to `MAX_IDLE` of them; `aclose` ends all.
    """

    def __init__(self, root: Path, options: Configuration, named: str | None = None) -> None:
        self._root, self._options, self._named = root, options, named
        self._entries: dict[str | None, _Entry] = {}
        self._outdated: list[_Entry] = []  # no new request gets them
        self._opening = asyncio.Lock()

    async def check(self, named: str | None) -> None:
        """Raises ConfigurationError when the configuration (perhaps of the file `named`) can't be used."""
        async with self._use(named, survey=True):
            return

    @contextlib.asynccontextmanager
    async def use(self, named: str | None) -> AsyncIterator[Workspace]:
        """The workspace with the configuration of the file `named`, or the default one; raises ConfigurationError."""
        async with self._use(named, survey=False) as workspace:
            yield workspace

    @contextlib.asynccontextmanager
    async def _use(self, named: str | None, *, survey: bool) -> AsyncIterator[Workspace]:
        if named:
            check_named(self._root, named, self._named)
        entry = await self._entry(named or self._named, survey)
        entry.users += 1  # nothing was awaited since it was found: it hasn't ended meanwhile
        try:
            await self._end_idle()
            yield entry.workspace
        finally:
            entry.users -= 1
            await self._end_idle()

    async def aclose(self) -> None:
        """End the tools' warm processes."""
        entries = [*self._entries.values(), *self._outdated]
        self._entries, self._outdated = {}, []
        await _close(entries)

    async def _entry(self, named: str | None, survey: bool) -> _Entry:
        if survey or not self._is_current(named):
            async with self._opening:
                if survey or not self._is_current(named):  # another client may have opened it meanwhile
                    self._keep(named, await in_thread(self._open, named))
        entry = self._entries.pop(named)
        self._entries[named] = entry  # at the end: the most recently used
        return entry

    def _open(self, named: str | None) -> _Entry:
        """A file that is saved meanwhile may have been read before: then once more."""
        for _ in range(MAX_LOOKS):
            at_root = fingerprint(self._root, named)
            survey = Workspace.survey(self._root, self._options, named)
            everywhere = fingerprint(self._root, named, survey.folders)  # finding the folders takes the longest
            opened = _Entry(Workspace.of(self._root, survey), (at_root, everywhere))
            if self._is_up_to_date(opened, named):
                break
        return opened

    def _keep(self, named: str | None, opened: _Entry) -> None:
        """In the place of the one before, unless that is just like it: then its tools are warm."""
        before = self._entries.get(named)
        if before is not None:
            if before.fingerprints == opened.fingerprints and opened.workspace.is_like(before.workspace):
                return
            self._outdated.append(before)
        self._entries[named] = opened

    def _is_current(self, named: str | None) -> bool:
        entry = self._entries.get(named)
        return entry is not None and self._is_up_to_date(entry, named)

    def _is_up_to_date(self, entry: _Entry, named: str | None) -> bool:
        folders = entry.workspace.folders
        return entry.fingerprints == (fingerprint(self._root, named), fingerprint(self._root, named, folders))

    async def _end_idle(self) -> None:
        idle = [named for named, entry in self._entries.items() if not entry.users]
        self._outdated += [self._entries.pop(named) for named in idle[:-MAX_IDLE]]
        ending = [entry for entry in self._outdated if not entry.users]
        self._outdated = [entry for entry in self._outdated if entry.users]
        await _close(ending)


async def _close(entries: Sequence[_Entry]) -> None:
    if entries:  # a cancel must not lose those that nobody else knows any more
        closing = asyncio.gather(*(entry.workspace.aclose() for entry in entries))
        await wait_shielded(closing)
        closing.result()

"""Workspace: the tools of one project behind two questions: which mutants are there, and what becomes of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from functools import cache
from pathlib import Path

from msp_bridge.adapter import Adapter
from msp_bridge.model import Mutant, Result, Status
from msp_bridge.workspace.adapters import detect, installed
from msp_bridge.workspace.configuration import Configuration, load_configuration
from msp_bridge.workspace.precedence import Precedence, Turn
from msp_bridge.workspace.selection import Selection

log = logging.getLogger(__name__)

PAUSE_AFTER = 500  # mutants that came without a wait: other requests, and a cancel, must get in between


class Workspace:
    """What is the same for every tool, done once: selecting, de-duplicating, reporting each mutant exactly once.

    Cancelling: close the generator; when that returns, its processes have ended.
    Ordering: `test` of a newer request goes before older ones (`Precedence`); `discover` waits for nobody.
    Resource handling: `aclose` ends the tools' warm processes.
    """

    def __init__(self, root: Path, adapters: Sequence[Adapter]) -> None:
        self.root, self.adapters = root, adapters
        self._precedence = Precedence()

    @classmethod
    def open(cls, root: Path, options: Configuration | None = None, named: str | None = None) -> Workspace:
        """The workspace at `root`; `options` go over what its configuration (perhaps the file `named`) says.

        Raises ConfigurationError. Starts no process.
        """
        known = installed()
        configuration = (options or Configuration()).over(load_configuration(root, named, known))
        return cls(root, detect(root, configuration, known))

    async def discover(self, selection: Selection) -> AsyncGenerator[Mutant, None]:
        """Every selected mutant once, file by file."""
        selection = selection.within(self.root)
        if selection.empty:
            return
        seen: set[Mutant] = set()
        owner = cache(self._owner)  # asked once for each file, not for each mutant
        for adapter in self.adapters:
            async with contextlib.aclosing(adapter.discover(selection.scope)) as mutants:
                looked_at = 0
                async for mutant in mutants:
                    looked_at += 1
                    if looked_at % PAUSE_AFTER == 0:
                        await asyncio.sleep(0)
                    if owner(mutant.path) is adapter and selection.takes(mutant) and mutant not in seen:
                        seen.add(mutant)
                        yield mutant

    async def test(self, selection: Selection) -> AsyncGenerator[Result, None]:
        """Exactly one result for each selected mutant, as soon as it is known."""
        with self._precedence.turn() as turn:
            selected = await self._selected(selection)
            for adapter, mutants in selected:
                async with contextlib.aclosing(self._test(adapter, mutants, turn)) as results:
                    async for result in results:
                        yield result

    def named_files(self, selection: Selection) -> list[str]:
        """The files that were asked for by name and may have mutants: an answer mentions them even without any."""
        named = selection.within(self.root).named_files
        return [path for path in named if self._owner(path) is not None and (self.root / path).is_file()]

    async def aclose(self) -> None:
        """End the tools' warm processes."""
        closing = [adapter.aclose() for adapter in self.adapters]
        for failure in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(failure, Exception):  # one tool's fault keeps no other from ending
                log.error("a tool could not be closed", exc_info=failure)

    def _owner(self, path: str) -> Adapter | None:
        return next((adapter for adapter in self.adapters if adapter.claims(path)), None)

    async def _selected(self, selection: Selection) -> list[tuple[Adapter, list[Mutant]]]:
        selected: dict[str, list[Mutant]] = {}
        owner_of = cache(self._owner)
        async with contextlib.aclosing(self.discover(selection)) as mutants:
            async for mutant in mutants:
                owner = owner_of(mutant.path)
                assert owner is not None
                selected.setdefault(owner.name, []).append(mutant)
        return [(adapter, selected[adapter.name]) for adapter in self.adapters if adapter.name in selected]

    async def _test(self, adapter: Adapter, mutants: list[Mutant], turn: Turn) -> AsyncGenerator[Result, None]:
        due = dict.fromkeys(mutants, True)
        async with contextlib.aclosing(adapter.test(mutants)) as results:
            while True:
                await turn.wait()
                try:
                    result = await anext(results)
                except StopAsyncIteration:
                    break
                if due.pop(result.mutant, False):
                    with turn.rest():
                        yield result
                else:
                    log.warning("%s gave a result that is not due: %s", adapter.name, result)
        for result in _untested(due, adapter.name):
            yield result


def _untested(mutants: Iterable[Mutant], tool: str) -> Iterable[Result]:
    """A selected mutant that is never reported would spin in the editor for ever."""
    reason = f"not tested: {tool} gave no result for it, as when its file has changed since; discover again"
    return (Result(mutant, Status.IGNORED, status_reason=reason) for mutant in mutants)

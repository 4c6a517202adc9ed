"""Place: where a worker of the cluster tests the mutants of one snapshot with one adapter, and what is warm there.

`worker` has the theory of operation: who may use a place, and when it is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import define, field

from msp_bridge.adapter import Adapter, Mutant, Notice, Project, ReportsSurroundings, Scope
from msp_bridge.cluster.snapshot import ContentStore, SnapshotTree
from msp_bridge.cluster.wire import Order, SnapshotEntry, differences
from msp_bridge.concurrency import in_thread
from msp_bridge.environment.interpreter import find_interpreter
from msp_bridge.environment.plugins import installed, load
from msp_bridge.errors import ToolError
from msp_bridge.text import enumerated
from msp_bridge.toolkit.slot import Slot, size_of

LINKED_VARIABLE = "MSP_BRIDGE_CLUSTER_LINKED"  # a directory whose entries, such as node_modules, are linked into trees
SHOWN = 3  # differences in one sentence


@define(eq=False)
class WorkerPlace:
    """A slot of the cache with a snapshot, and the adapter that is open on it."""

    slot: Slot
    key: tuple[str, str, str]
    client: str
    wanted: str  # the snapshot that it is for
    adapter: Adapter | None = None
    snapshot: str = ""  # that is in its tree
    users: int = 0  # chunks, and preparations
    used: float = field(factory=time.monotonic)
    _known: dict[str, dict[Mutant, Mutant]] = field(factory=dict)  # by file: the mutants with the handles of here
    _turn: asyncio.Lock = field(factory=asyncio.Lock)

    async def set_up(
        self, order: Order, entries: Mapping[str, SnapshotEntry], store: ContentStore, threads: int
    ) -> None:
        """The snapshot in its tree, and the adapter on it. Raises BridgeError."""
        async with self._turn:
            if self.snapshot == order.snapshot and self.adapter is not None:
                return
            self._known.clear()
            self.snapshot = ""
            linked = os.environ.get(LINKED_VARIABLE)
            tree = SnapshotTree(self.slot.directory / "tree" / order.tree, store, Path(linked) if linked else None)
            await in_thread(tree.materialise, entries)
            await in_thread(self._measure)
            if self.adapter is None:
                self.adapter = await in_thread(_opened, order.adapter, self._project(order, threads))
            self.snapshot = order.snapshot

    async def check(self, order: Order) -> None:
        """Raises ToolError unless verdicts depend on the same things here as at the client."""
        if order.surroundings is None or not isinstance(self.adapter, ReportsSurroundings):
            return
        here = await self.adapter.surroundings()
        if here is None:
            return
        found = differences(order.surroundings, here.values)
        if found:
            telling = (f"{order.adapter} ", "python ")  # of which one explains many others
            found.sort(key=lambda difference: not difference.startswith(telling))
            raise ToolError(
                enumerated(found, SHOWN, between="; "),
                "give workers and client the same interpreter, tool and packages",
            )

    async def matched(self, mutants: Sequence[Mutant]) -> tuple[dict[Mutant, int], list[int]]:
        """The mutants as discovered here, each with its place in `mutants`; and the places of those not found."""
        async with self._turn:
            new = frozenset(mutant.path for mutant in mutants) - self._known.keys()
            if new:
                assert self.adapter is not None
                found: dict[str, dict[Mutant, Mutant]] = {path: {} for path in new}
                async with contextlib.aclosing(self.adapter.discover(Scope(new))) as discovered:
                    async for mutant in discovered:
                        if isinstance(mutant, Notice):  # the client has listed the file, and was told
                            continue
                        found.setdefault(mutant.path, {})[mutant] = mutant
                self._known.update(found)
        matched, unmatched = {}, []
        for number, mutant in enumerate(mutants):
            known = self._known[mutant.path].get(mutant)
            if known is None:
                unmatched.append(number)
            else:
                matched[known] = number
        return matched, unmatched

    async def close(self) -> None:
        """End its processes, and let others have the slot."""
        async with self._turn:
            try:
                if self.adapter is not None:
                    await self.adapter.aclose()
            finally:
                await in_thread(self._measure)
                self.slot.release()

    def _measure(self) -> None:
        """Measure the slot, so that it counts when room is made, also when this worker is killed."""
        with contextlib.suppress(OSError):
            self.slot.note_size(size_of(self.slot.directory))

    def _project(self, order: Order, threads: int) -> Project:
        tree = self.slot.directory / "tree" / order.tree
        root = tree / order.folder
        return Project(
            root=root,
            cache=self.slot.directory / "cache" / order.adapter,
            config_file=None if order.config_file is None else tree / order.config_file,
            settings=order.settings,
            python=find_interpreter(root, opened=tree),
            jobs=threads,
            nested=order.nested,
            opened=tree,
            environment=order.environment,
        )


def _opened(name: str, project: Project) -> Adapter:
    """Raises BridgeError."""
    entry = installed().get(name)
    if entry is None:
        raise ToolError(f"there is no adapter {name}", "install the same there as here")
    adapter_class = load(entry)
    found = adapter_class.detect(project)
    if found is None:
        absent = adapter_class.absent(project)
        raise ToolError(f"{name} is not set up: {absent.text}", absent.remedy)
    return found

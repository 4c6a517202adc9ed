"""A project of the scripted adapter on a cluster, and what the tests ask of it."""

import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from msp_bridge.adapter import Adapter, Mutant, Project, Result
from msp_bridge.cluster import behind_cluster
from msp_bridge.cluster.connection import Bounds
from support.clusters import Cluster
from support.scripted.scripted_adapter import Scripted
from support.servers import ScriptedProject

BOUNDS = Bounds(answer=20, ask=2, lease=20, join=30, end=20)
PLUS = {"mutator": "plus", "find": "+", "replacement": "-", "status": "Survived"}
DIGIT = {"mutator": "digit", "find": "1", "replacement": "2"}
GATED = DIGIT | {"after": "gate"}


class ScriptedTree(ScriptedProject):
    """A project of the scripted adapter. What its copies on the workers do is written to one log."""

    def files(self, count: int, text: str) -> None:
        for number in range(count):
            (self.root / f"f{number}.py").write_text(text)

    @contextlib.asynccontextmanager
    async def adapter(self, cluster: Cluster, bounds: Bounds = BOUNDS, **fields: Any) -> AsyncIterator[Adapter]:
        adapter_class = behind_cluster(Scripted, cluster.address, local=0, bounds=bounds)
        adapter = adapter_class.detect(Project(root=self.root, cache=self.root.parent / "cache", **fields))
        assert adapter is not None
        async with contextlib.aclosing(adapter):
            yield adapter


def once_each(results: list[Result], mutants: list[Mutant]) -> bool:
    return Counter(result.mutant for result in results) == Counter(mutants)

"""A project of the scripted adapter on a cluster, and what the tests ask of it."""

import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from msp_bridge.adapter import Adapter, Mutant, Project, Result
from msp_bridge.cluster import behind_cluster
from msp_bridge.cluster.connection import Bounds
from support.clusters import Cluster
from support.scripted.scripted_adapter import Scripted

BOUNDS = Bounds(answer=20, ask=2, lease=20, join=30, end=20)
PLUS = {"mutator": "plus", "find": "+", "replacement": "-", "status": "Survived"}
DIGIT = {"mutator": "digit", "find": "1", "replacement": "2"}
GATED = DIGIT | {"after": "gate"}


class ScriptedTree:
    """A project of the scripted adapter. What its copies on the workers do is written to one log."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "project"
        self.root.mkdir()
        self.events = directory / "events"
        self.events.mkdir()
        self._cache = directory / "cache"

    def script(self, *mutations: dict[str, Any], **entries: Any) -> None:
        (self.root / "scripted.json").write_text(
            json.dumps({"mutations": mutations, "events": str(self.events), **entries})
        )

    def files(self, count: int, text: str) -> None:
        for number in range(count):
            (self.root / f"f{number}.py").write_text(text)

    @contextlib.asynccontextmanager
    async def adapter(self, cluster: Cluster, bounds: Bounds = BOUNDS, **fields: Any) -> AsyncIterator[Adapter]:
        adapter_class = behind_cluster(Scripted, cluster.address, local=0, bounds=bounds)
        adapter = adapter_class.detect(Project(root=self.root, cache=self._cache, **fields))
        assert adapter is not None
        async with contextlib.aclosing(adapter):
            yield adapter

    def log(self) -> list[str]:
        file = self.events / "log"
        return file.read_text().splitlines() if file.exists() else []

    def open_gate(self) -> None:
        (self.events / "gate").touch()


def once_each(results: list[Result], mutants: list[Mutant]) -> bool:
    return Counter(result.mutant for result in results) == Counter(mutants)

"""The adapter keeps the promises of the conformance suite, and a bridge that is killed leaves nothing behind."""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path

import pytest
from msp_bridge.adapters.cosmic_ray import CosmicRay
from support.cosmic_ray_trees import adapter_on, contents, copied, discovered, results_of
from support.killed_bridges import killed_bridge

from msp_bridge.adapter import Project, Status
from msp_bridge.testing import check_adapter

BRIDGE = """
import asyncio, sys
from pathlib import Path
from msp_bridge.adapter import Project, Scope
from msp_bridge.adapters.cosmic_ray import CosmicRay

async def main() -> None:
    root = Path(sys.argv[1])
    adapter = CosmicRay(Project(root=root, cache=root.parent / "cache", python=Path(sys.executable), jobs=2))
    while True:
        async for result in adapter.test([mutant async for mutant in adapter.discover(Scope())]):
            print(result.status.value, flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("tree", ["cr_flat", "cr_src"])
async def test_the_adapter_keeps_its_promises(tree: str, tmp_path: Path) -> None:
    root = copied(tree, tmp_path)
    project = Project(root=root, cache=tmp_path / "cache", python=Path(sys.executable), jobs=2)
    await check_adapter(CosmicRay, project, sample=4)


@pytest.mark.parametrize("tree", ["cr_flat", "cr_src"])
@pytest.mark.parametrize("seed", range(2))
async def test_a_killed_bridge_leaves_the_tree_as_it_was_and_no_process(tmp_path: Path, seed: int, tree: str) -> None:
    root = copied(tree, tmp_path)
    async with killed_bridge(BRIDGE, root) as bridge:
        while seed and await bridge.line() != "Killed":
            pass
        await asyncio.sleep(random.Random(seed).uniform(0, 0.4))
    saved = contents(root)
    async with adapter_on(root) as adapter:  # which finds the sandbox that the other one left in disorder
        found = await discovered(adapter)
        noticed = [mutant for mutant in found if mutant.mutator.startswith("AddNot") or tree == "cr_src"]
        results = await results_of(adapter, noticed[:3])
    assert {result.status for result in results} == {Status.KILLED}
    assert contents(root) == saved

"""The adapters keep their promises when their mutants are tested by a worker: the conformance suite, through a cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msp_bridge.adapters.cosmic_ray import CosmicRay
from msp_bridge.adapters.mutmut import Mutmut
from support.clusters import Cluster
from support.cosmic_ray_trees import copied

from msp_bridge.adapter import Adapter, Project
from msp_bridge.cluster import behind_cluster
from msp_bridge.testing import check_adapter


@pytest.mark.parametrize(("adapter", "tree"), [(Mutmut, "py_calc"), (CosmicRay, "cr_flat")])
async def test_the_adapter_keeps_its_promises_on_a_cluster(adapter: type[Adapter], tree: str, tmp_path: Path) -> None:
    root = copied(tree, tmp_path)
    project = Project(root=root, cache=tmp_path / "cache", python=Path(sys.executable), jobs=1)
    async with Cluster.running(tmp_path / "cluster", 2, path="") as cluster:
        await check_adapter(behind_cluster(adapter, cluster.address, local=0), project, sample=4)

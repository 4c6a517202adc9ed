"""The adapters keep their promises when their mutants are tested by a worker: the conformance suite, through a cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import field, frozen
from msp_bridge.adapters.cargo_mutants import CargoMutants
from msp_bridge.adapters.cosmic_ray import CosmicRay
from msp_bridge.adapters.mutmut import Mutmut
from msp_bridge.adapters.stryker_js import StrykerJs
from support import cosmic_ray_trees, rust_trees, stryker_js_trees
from support.clusters import Cluster

from msp_bridge.adapter import Adapter, Project
from msp_bridge.cluster import behind_cluster
from msp_bridge.testing import check_adapter


@frozen
class Trial:
    """An adapter on a copy of a project."""

    adapter: type[Adapter]
    copied: Callable[[Path], Path]
    stand_in: Callable[[Path, pytest.MonkeyPatch], Any] | None = None  # for a tool that may be missing
    worker: dict[str, str] = field(factory=dict)  # variables of the worker
    sample: int = 4


TRIALS = [
    Trial(Mutmut, lambda to: cosmic_ray_trees.copied("py_calc", to)),
    Trial(CosmicRay, lambda to: cosmic_ray_trees.copied("cr_flat", to)),
    Trial(
        StrykerJs,
        lambda to: stryker_js_trees.copied("js_mocha", to),
        sample=2,
        worker={"MSP_BRIDGE_CLUSTER_LINKED": str(stryker_js_trees.CORE9.parent)},
    ),
    Trial(CargoMutants, lambda to: rust_trees.copied("rust_stand_in", to), rust_trees.stand_in),
]


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.adapter.name)
async def test_the_adapter_keeps_its_promises_on_a_cluster(
    trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if trial.stand_in is not None:
        trial.stand_in(tmp_path, monkeypatch)
    root = trial.copied(tmp_path)
    python = Path(sys.executable)
    project = Project(root=root, cache=tmp_path / "cache", python=python, jobs=1)
    async with Cluster.running(tmp_path / "cluster", 2, path="", **trial.worker) as cluster:
        await check_adapter(behind_cluster(trial.adapter, cluster.address, local=0), project, sample=trial.sample)

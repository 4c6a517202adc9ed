"""The adapters keep their promises when their mutants are tested by a worker: the conformance suite, through a cluster."""

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import field, frozen
from msp_bridge.adapters.cargo_mutants import CargoMutants
from msp_bridge.adapters.cosmic_ray import CosmicRay
from msp_bridge.adapters.generic import Generic
from msp_bridge.adapters.gremlins import Gremlins
from msp_bridge.adapters.mutmut import Mutmut
from msp_bridge.adapters.pit import Pit
from msp_bridge.adapters.stryker_js import StrykerJs
from msp_bridge.adapters.stryker_net import StrykerNet
from support import (
    cosmic_ray_trees,
    generic_trees,
    go_trees,
    java_trees,
    net_projects,
    net_trees,
    rust_trees,
    stryker_js_trees,
)
from support.clusters import Cluster

from msp_bridge.adapter import Adapter, Project
from msp_bridge.cluster import behind_cluster
from msp_bridge.testing import check_adapter
from msp_bridge.testing.conformance import check_discovery, check_results


@frozen
class Trial:
    """An adapter on a copy of a project."""

    adapter: type[Adapter]
    copied: Callable[[Path], Path]
    stand_in: Callable[[Path, pytest.MonkeyPatch], Any] | None = None  # for a tool that may be missing
    worker: dict[str, str] = field(factory=dict)  # variables of the worker
    settings: Callable[[Path], dict[str, Any]] = lambda _: {}
    sample: int = 4
    workers: int = 2


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
    Trial(Generic, generic_trees.copied, settings=generic_trees.settings, sample=2, workers=1),
    Trial(StrykerNet, lambda to: net_trees.copied("net_calc", to), net_trees.scripted_dotnet, sample=2, workers=1),
]


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.adapter.name)
async def test_the_adapter_keeps_its_promises_on_a_cluster(
    trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if trial.stand_in is not None:
        trial.stand_in(tmp_path, monkeypatch)
    await check(trial, tmp_path)


def a_pair_in_csharp(to: Path) -> Path:
    return net_projects.laid_out(to / "project", {"Pair": net_projects.PAIR}, {"xunit": net_projects.PAIR_TESTS})


def a_class_in_java(to: Path) -> Path:
    """A script is in the place of Maven; the worker finds PIT as the client has resolved and compiled it."""
    (to / "cluster" / "w0" / "cache").mkdir(parents=True)
    (to / "cluster" / "w0" / "cache" / "pit").symlink_to(to / "cache" / "pit")
    (to / "cache" / "pit").mkdir(parents=True)
    return java_trees.smallest(to)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("adapter", "copied", "path"),
    [
        pytest.param(StrykerNet, a_pair_in_csharp, "", marks=net_projects.REAL),
        pytest.param(Gremlins, go_trees.copied, go_trees.PROGRAMS, marks=go_trees.needs_gremlins),
        pytest.param(Pit, a_class_in_java, "", marks=java_trees.needs_pit),
    ],
)
async def test_a_real_tool_gives_each_mutant_one_result_on_a_cluster(
    adapter: type[Adapter], copied: Callable[[Path], Path], path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path:
        monkeypatch.setenv("PATH", path)
    project = Project(root=copied(tmp_path), cache=tmp_path / "cache", jobs=1)
    async with Cluster.running(tmp_path / "cluster", 1, path="") as cluster:
        remote = behind_cluster(adapter, cluster.address, local=0).detect(project)
        assert remote is not None
        async with contextlib.aclosing(remote):
            mutants = await check_discovery(remote, project)
            await check_results(remote, [mutants[0], mutants[-1]])


async def check(trial: Trial, tmp_path: Path) -> None:
    root = trial.copied(tmp_path)
    python = Path(sys.executable)
    settings = trial.settings(root)
    project = Project(root=root, cache=tmp_path / "cache", python=python, settings=settings, jobs=1)
    async with Cluster.running(tmp_path / "cluster", trial.workers, path="", **trial.worker) as cluster:
        adapter = behind_cluster(trial.adapter, cluster.address, local=0)
        await check_adapter(adapter, project, sample=trial.sample, workers=trial.workers)

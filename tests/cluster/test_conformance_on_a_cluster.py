"""The adapters keep their promises when their mutants are tested by a worker.

The code of the cluster is the same for every tool: the whole conformance suite is run with three, results with the others.
"""

import contextlib
from pathlib import Path

import pytest
from attrs import evolve
from support.clusters import Cluster
from support.every_adapter import CASES, PYTHON, cases
from support.stryker_js_trees import CORE9

from msp_bridge.cluster import behind_cluster
from msp_bridge.testing import check_adapter
from msp_bridge.testing.conformance import check_discovery, check_results

OWN = {"StrykerJS, served": {"MSP_BRIDGE_CLUSTER_LINKED": str(CORE9.parent)}}  # variables of the worker


@cases("mutmut", "a stand-in for cargo", "net_calc")
async def test_the_adapter_keeps_its_promises_on_a_cluster(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, workers = CASES[name], 1 if name == "net_calc" else 2
    project = evolve(case.made(tmp_path, monkeypatch), jobs=1, python=PYTHON)
    async with Cluster.running(tmp_path / "cluster", workers, path="") as cluster:
        adapter = behind_cluster(case.adapter, cluster.address, local=0)
        await check_adapter(adapter, project, sample=min(case.sample, 4), workers=workers)


@cases("generic", "gremlins", "PIT", "StrykerJS, served")
async def test_a_real_tool_gives_each_mutant_one_result_on_a_cluster(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker finds PIT as the client has resolved and compiled it."""
    (tmp_path / "cluster/w0/cache").mkdir(parents=True)
    (tmp_path / "cache/pit").mkdir(parents=True)
    (tmp_path / "cluster/w0/cache/pit").symlink_to(tmp_path / "cache/pit")
    project = evolve(CASES[name].made(tmp_path, monkeypatch), jobs=1, python=PYTHON)
    async with Cluster.running(tmp_path / "cluster", 1, path="", **OWN.get(name, {})) as cluster:
        remote = behind_cluster(CASES[name].adapter, cluster.address, local=0).detect(project)
        assert remote is not None
        async with contextlib.aclosing(remote):
            mutants = await check_discovery(remote, project)
            await check_results(remote, [mutants[0], mutants[-1]])

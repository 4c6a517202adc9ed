"""A server that has a cluster: a small request is tested here, without it; a large one by its workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.clusters import Cluster
from support.servers import DIGIT, mutants_of, over_memory, scripted_project

from msp_bridge.cluster.choice import LOCAL_MUTANTS


async def test_a_small_request_stays_here_and_a_large_one_goes_to_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    async with scripted_project(tmp_path) as project, Cluster.running(tmp_path / "cluster", 1) as cluster:
        project.script(DIGIT)
        few = project.write("few.py", "1\n" * LOCAL_MUTANTS)
        project.write("many.py", "1\n" * (LOCAL_MUTANTS + 1))
        project.write("msp-bridge.toml", f'adapter = "scripted"\njobs = 1\ncluster = "{cluster.address}"\n')
        async with over_memory(project) as client:
            await client.request("configure")
            await client.request("mutationTest", {"files": [{"path": few}]})
            assert len(client.take_results()) == LOCAL_MUTANTS
            assert not cluster.cache("w0").exists(), "the worker was asked for nothing"
            found = mutants_of(await client.request("discover"))
            await client.request("mutationTest")
            results = client.take_results()
            assert sorted(map(repr, results)) == sorted(
                repr((path, mutant | {"status": "Killed"})) for path, mutant in found
            )
            assert any(cluster.cache("w0").glob("project-*/tree/project/many.py"))

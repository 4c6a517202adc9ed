"""A worker whose interpreter, tool or packages are missing or others is not used, and says why: with a real tool."""

import logging
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from msp_bridge.adapters.mutmut import Mutmut
from support.adapters import discovered, results_of
from support.clusters import Cluster
from support.environments import environment, program
from support.projects import copied

from msp_bridge.adapter import Mutant, Project, Status
from msp_bridge.cluster import behind_cluster
from msp_bridge.testing import TreeState


async def test_a_worker_that_lacks_the_tool_or_a_python_is_not_used(
    every_case: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`test_failures.py` has one with another version of the tool."""
    root = copied("py_calc", tmp_path)
    tree = TreeState.of(root)
    environments = {name: tmp_path / name for name in ("bare", "broken")}
    environment(environments["bare"])
    program(environments["broken"] / "bin" / "python", "exit 3")
    async with Cluster.running(tmp_path / "cluster", 1, path="") as cluster:
        for name, directory in environments.items():
            cluster.start_worker(name, VIRTUAL_ENV=str(directory))
        await cluster.joined(1 + len(environments))
        with caplog.at_level(logging.WARNING):
            tested = await verdicts(root, tmp_path / "cache", cluster.address)
        assert not any(cluster.below(name) for name in cluster.workers)
    assert {Status.SURVIVED, Status.NO_COVERAGE} < set(tested.values())
    if every_case:
        assert tested == await verdicts(root, tmp_path / "cache", None)
    assert tree.differences(TreeState.of(root)) == []
    said = [record.getMessage() for record in caplog.records if "is not used" in record.getMessage()]
    assert len(said) == len(environments)
    assert any("mutmut is missing there" in text for text in said), said
    assert any("ended (exit code 3)" in text for text in said), said


async def verdicts(root: Path, cache: Path, address: str | None) -> Mapping[Mutant, Status]:
    """Of some mutants, by the workers of a cluster or by this machine; each mutant has one result."""
    adapter_class = Mutmut if address is None else behind_cluster(Mutmut, address, local=0)
    adapter = adapter_class.detect(Project(root=root, cache=cache, python=Path(sys.executable), jobs=1))
    assert adapter is not None
    try:
        mutants = (await discovered(adapter))[:6]
        results = await results_of(adapter, mutants)
    finally:
        await adapter.aclose()
    assert len(results) == len(mutants)
    return {result.mutant: result.status for result in results}

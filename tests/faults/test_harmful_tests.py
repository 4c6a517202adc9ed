"""Tests that do harm, with a mutant or without any: each mutant gets its true status, and the others theirs."""

import contextlib
import re
import sys
from pathlib import Path

import pytest
from support.faulty_servers import served
from support.kits import KITS, PYTHON_KITS, Kit, each_kit

from msp_bridge.errors import ToolError
from msp_bridge.testing import RunningProcesses, TreeState
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.selection import Selection
from msp_bridge.workspace.workspace import Workspace

ENDLESS = [
    *(("at import", kit) for kit in PYTHON_KITS),
    *(("in a test", kit) for kit in KITS),  # StrykerJS, which has one limit for both, is asked once
]


@each_kit
async def test_no_harm_that_a_mutant_does_reaches_another_mutant_or_the_tree(kit: Kit, tmp_path: Path) -> None:
    root = kit.lay_out(tmp_path / "project", *kit.harms)
    tree = TreeState.of(root)
    async with served(kit, root, "--jobs", "2") as there:
        assert await there.statuses() == {harm: kit.status(harm) for harm in kit.harms}
        assert await there.statuses("steady") == {"steady": "Killed"}
    assert tree.differences(TreeState.of(root)) == []


@pytest.mark.parametrize(("where", "kit"), ENDLESS, ids=lambda value: getattr(value, "adapter", value))
async def test_tests_that_never_end_without_a_mutant_are_reported(
    where: str, kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    if kit.limit_constant:
        monkeypatch.setattr(kit.limit_constant, 8.0)  # time enough to come to the test on a busy machine
    root = kit.lay_out(tmp_path / "project", "steady", "slow")  # an editor's single mutant does not wait for all tests
    configuration, tests = root / kit.configuration, root / kit.tests
    configuration.write_text(configuration.read_text().replace(*kit.limit))
    tests.write_text(tests.read_text() + kit.endless[where == "at import"])
    tree, running = TreeState.of(root), RunningProcesses()
    workspace = Workspace.open(root, Configuration(adapters=(kit.adapter,), python=Path(sys.executable)))
    async with contextlib.aclosing(workspace):
        async with contextlib.aclosing(workspace.test(Selection())) as results:
            with pytest.raises(ToolError) as caught:
                async for _ in results:  # mutants are tested meanwhile
                    pass
    assert re.search(kit.timeless, str(caught.value))
    if kit.limit_constant and where != "at import":
        assert "; tests/test_ops.py::test_endless was running" in str(caught.value)
    assert await running.settled(0) == []
    assert tree.differences(TreeState.of(root)) == []

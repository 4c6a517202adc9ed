"""The adapter keeps the promises of the conformance suite, against the scripted dotnet."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msp_bridge.adapters.stryker_net import StrykerNet
from support.net_trees import SDK, copied, scripted_dotnet

from msp_bridge.adapter import Project
from msp_bridge.testing import check_adapter


@pytest.mark.parametrize("tree", ["net_calc", "net_repo"])
async def test_the_adapter_keeps_its_promises(tree: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted_dotnet(tmp_path, monkeypatch)
    if tree == "net_repo":
        monkeypatch.setenv("PATH", str(SDK / "tools"), prepend=os.pathsep)
    root = copied(tree, tmp_path)
    await check_adapter(StrykerNet, Project(root=root, cache=tmp_path / "cache", jobs=2), sample=6)

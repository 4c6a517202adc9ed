"""The adapter keeps the promises of the conformance suite, with a tool that edits the files that it mutates."""

from __future__ import annotations

from pathlib import Path

import pytest
from msp_bridge.adapters.generic import Generic
from support.generic_trees import copied, settings

from msp_bridge.adapter import Project
from msp_bridge.testing import check_adapter


@pytest.mark.parametrize("chosen", [["prices", "texts"], ["prices"]], ids=" and ".join)
async def test_the_adapter_keeps_its_promises(chosen: list[str], tmp_path: Path) -> None:
    root = copied(tmp_path)
    tables = {name: settings(root)[name] for name in chosen}
    await check_adapter(Generic, Project(root=root, cache=tmp_path / "cache", settings=tables, jobs=2), sample=5)

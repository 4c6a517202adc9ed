"""Every adapter that ships with the bridge passes the conformance suite that any adapter can run."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from msp_bridge.adapters.mutmut import Mutmut

from msp_bridge.adapter import Adapter, Project
from msp_bridge.testing import check_adapter

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(("adapter", "tree"), [(Mutmut, EXAMPLES / "shop")])
async def test_the_adapter_keeps_its_promises(adapter: type[Adapter], tree: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(tree, tmp_path / tree.name))
    await check_adapter(adapter, Project(root=root, cache=tmp_path / "cache", python=Path(sys.executable), jobs=2))

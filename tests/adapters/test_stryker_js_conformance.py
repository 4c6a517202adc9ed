"""The adapter keeps the promises of the conformance suite: served, isolated and not, and by the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from msp_bridge.adapters.stryker_js import StrykerJs
from support.stryker_js_trees import CORE8, CORE9, copied, project_at

from msp_bridge.testing import check_adapter


@pytest.mark.usefixtures("isolated")
async def test_the_served_adapter_keeps_its_promises(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path, CORE9)
    await check_adapter(StrykerJs, project_at(root), sample=3)


async def test_the_adapter_by_the_command_line_keeps_its_promises(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path, CORE8)
    await check_adapter(StrykerJs, project_at(root, jobs=1), sample=3)

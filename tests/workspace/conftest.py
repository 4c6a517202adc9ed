"""What the tests of the workspace share."""

from pathlib import Path

import pytest
from support.scripted_trees import Tree


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "tree").mkdir()
    return Tree(tmp_path / "tree")

"""What the tests of the cluster share."""

from pathlib import Path

import pytest
from support.cluster_trees import ScriptedTree


@pytest.fixture
def tree(tmp_path: Path) -> ScriptedTree:
    """A project with neither script nor file yet."""
    return ScriptedTree(tmp_path)

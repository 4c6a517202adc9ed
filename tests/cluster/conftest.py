"""What the tests of the cluster share."""

from pathlib import Path

import pytest
from support.clusters import ScriptedTree


@pytest.fixture
def tree(tmp_path: Path) -> ScriptedTree:
    """A project without a file yet."""
    return ScriptedTree.made(tmp_path)

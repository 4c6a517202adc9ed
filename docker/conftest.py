"""What the tests of this folder begin with: an engine that runs containers, and a project."""

# ruff: noqa: D103
from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from engine import Engine, Unavailable

ROOT = Path(__file__).parents[1]
UNKNOWN_USER = 4711  # a user without an entry in the image's /etc/passwd


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    try:
        return Engine.find(tmp_path_factory.mktemp("engine"))
    except Unavailable as reason:
        pytest.exit(str(reason), returncode=1)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A real project, which belongs to another user when we may give it away, else to us."""
    root = tmp_path / "shop"
    shutil.copytree(ROOT / "examples/shop", root, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    if os.getuid() == 0:
        for path in [root, *root.rglob("*")]:
            os.chown(path, UNKNOWN_USER, UNKNOWN_USER)
    return root

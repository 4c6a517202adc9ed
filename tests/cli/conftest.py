"""What the tests of the command line share."""

from pathlib import Path

import pytest
from support.command_line import make_project, script


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of the scripted adapter, with four mutants; not that of a CI's job."""
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    root = make_project(tmp_path / "project")
    script(root)
    return root

"""What the tests of the command line share."""

from pathlib import Path

import pytest
from support.command_line import make_project, script
from support.kept import KeptProject


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of the scripted adapter, with four mutants; not that of a CI's job."""
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    root = make_project(tmp_path / "project")
    script(root)
    return root


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeptProject:
    """A project of two files, in which the test is; no run of it is kept yet."""
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    made = KeptProject(tmp_path / "kept")
    made.write("a.py", "def f(x):\n    return x + 1\n\n\ndef g(x):\n    return x * 2\n")
    made.write("b.py", "limit = 3\n")
    monkeypatch.chdir(made.root)
    return made

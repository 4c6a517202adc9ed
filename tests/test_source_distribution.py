"""The source distribution has every file of the repository: its tests run from it."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGED = {
    "msp_bridge",
    "adapters",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
    "pyproject.toml",
    "setup.py",
}  # by pyproject.toml


def test_every_file_of_the_repository_is_in_it() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("it is no repository")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line.split() for line in (ROOT / "MANIFEST.in").read_text().splitlines()]
    named = PACKAGED | {name for command, *names in lines if command in ("graft", "include") for name in names}
    files = [file for file in done.stdout.split("\0") if file]
    assert [file for file in files if file not in named and file.split("/")[0] not in named] == []

"""Repositories of git for tests, which the configuration of this machine doesn't change."""

import os
import subprocess
from pathlib import Path

import pytest

IDENTITY = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"} | {
    f"GIT_{who}_{what}": "shop@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


def git(root: Path, *arguments: str) -> str:
    argv = ["git", *arguments]
    done = subprocess.run(argv, cwd=root, env={**os.environ, **IDENTITY}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def commit(root: Path, **files: str) -> None:
    for name, text in files.items():
        (root / f"{name}.py").write_text(text)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "change")


def isolate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let git, whoever runs it, see no configuration or repository but the test's."""
    for name in os.environ:
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)

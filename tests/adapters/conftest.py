"""Fixtures of the adapters' tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the tests of the project js_command write a line when they start."""
    file = tmp_path / "starts"
    monkeypatch.setenv("JS_COMMAND_LOG", str(file))
    return file

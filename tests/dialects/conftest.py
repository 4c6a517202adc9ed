"""What the tests of the dialects share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.dialects import Speech, Talker, opened, spoken_to
from support.servers import ScriptedProject, scripted_project


@pytest.fixture
async def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ScriptedProject]:
    """A project with a script and no file yet."""
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    async with scripted_project(tmp_path) as project:
        yield project


@pytest.fixture
async def client(project: ScriptedProject, speech: Speech) -> AsyncIterator[Talker]:
    """A client of a server in this process, in the dialect of the test's module; it has sent nothing yet."""
    async with opened(project) as workspaces, spoken_to(speech, workspaces) as client:
        yield client

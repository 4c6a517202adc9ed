"""What the tests of the server share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.msp_client import Client
from support.servers import ScriptedProject, Serve, over_memory, scripted_project


@pytest.fixture
async def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ScriptedProject]:
    """A project with a script and no file yet."""
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    async with scripted_project(tmp_path) as project:
        yield project


@pytest.fixture
def serve(request: pytest.FixtureRequest) -> Serve:
    """Starts a server and gives its client: over memory, or over what `transports` names."""
    chosen: Serve = getattr(request, "param", over_memory)
    return chosen


@pytest.fixture
async def client(project: ScriptedProject, serve: Serve) -> AsyncIterator[Client]:
    """The client of a server on the project."""
    async with serve(project) as client:
        yield client

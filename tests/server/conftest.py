"""What the tests of the server share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.msp_client import Client
from support.servers import ScriptedProject, Serve, over_memory, over_stdio, over_tcp

from msp_bridge.testing import Running


@pytest.fixture
async def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ScriptedProject]:
    """A project with a script and no file yet. Afterwards none of its tools runs, nor anything else that was started."""
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    project = ScriptedProject(tmp_path / "project", tmp_path / "events")
    project.root.mkdir()
    project.events.mkdir()
    project.script()
    running = Running()
    yield project
    assert project.alive() == []
    assert await running.settled(0) == []


@pytest.fixture(params=[over_memory, over_stdio, over_tcp], ids=["memory", "stdio", "tcp"])
def serve(request: pytest.FixtureRequest) -> Serve:
    """Starts a server and gives its client."""
    chosen: Serve = request.param
    return chosen


@pytest.fixture
async def client(project: ScriptedProject, serve: Serve) -> AsyncIterator[Client]:
    """The client of a server on the project."""
    async with serve(project) as client:
        yield client

"""What the tests of the server share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.mcp_http import HttpServer, http_server
from support.msp_client import Client
from support.servers import ScriptedProject, Serve, over_memory


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


@pytest.fixture
async def server(project: ScriptedProject, tmp_path: Path) -> AsyncIterator[HttpServer]:
    """`serve mcp --port` on a project with a mutant."""
    project.write("a.py", "1")
    async with http_server(project, tmp_path) as server:
        yield server

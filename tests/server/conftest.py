"""What the tests of the server share."""

from collections.abc import AsyncIterator

import pytest
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

"""What the tests of the dialects share."""

from collections.abc import AsyncIterator

import pytest
from support.dialects import Speech, Talker, opened, spoken_to
from support.servers import ScriptedProject


@pytest.fixture
async def client(project: ScriptedProject, speech: Speech) -> AsyncIterator[Talker]:
    """A client of a server in this process, in the dialect of the test's module; it has sent nothing yet."""
    async with opened(project) as workspaces, spoken_to(speech, workspaces) as client:
        yield client

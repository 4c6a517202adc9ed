"""The connection to a scheduler: what a cancel does to a question."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from msp_bridge.cluster.connection import SchedulerConnection


@pytest.mark.parametrize("turns", range(6), ids="{} turns of the loop later".format)
async def test_a_cancel_that_comes_with_the_answer_is_not_lost(turns: int) -> None:
    answered = asyncio.get_running_loop().create_future()

    async def run(*_: Any, **__: Any) -> Any:
        return await answered

    connection = SchedulerConnection("tcp://127.0.0.1:1")
    connection._client = SimpleNamespace(run=run, status="running")
    asking = asyncio.create_task(connection.call("worker", print, within=60))
    await asyncio.sleep(0.01)
    answered.set_result({"worker": "done"})
    for _ in range(turns):
        await asyncio.sleep(0)
    if asking.cancel():
        with pytest.raises(asyncio.CancelledError):
            await asking
    else:
        assert await asking == "done"

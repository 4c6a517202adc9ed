"""A tool's process that is stopped (SIGSTOP), at any moment: a cancel and the end of the client are still answered."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from pathlib import Path

import psutil
import pytest
from support.faulty_servers import Served, served
from support.kits import KITS, Kit
from support.msp_client import Refused

each_kit = pytest.mark.parametrize("kit", KITS, ids=lambda kit: kit.adapter)
FULL_FLIGHT_S = 2.0  # in which a tool has begun to test; if it hasn't, it is stopped while it starts


def signal_tools(there: Served, number: int) -> int:
    """A signal for all that the bridge's own guard and supervisors look after; how many there were."""
    found = 0
    for guard in psutil.Process(there.server.process.pid).children():
        for supervisor in guard.children():
            for tool in supervisor.children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    tool.send_signal(number)
                    found += 1
    return found


async def in_full_flight(there: Served) -> int:
    """The id of a request whose mutant never ends, and whose tool is stopped."""
    mutants = await there.mutants()
    chosen = {there.kit.source: {"mutants": [mutants["hang"]]}}
    request = await there.client.ask("mutationTest", {"mutants": chosen})
    await asyncio.sleep(FULL_FLIGHT_S)
    assert signal_tools(there, signal.SIGSTOP)
    return request


@each_kit
async def test_a_cancel_is_answered_though_the_tool_is_stopped(kit: Kit, tmp_path: Path) -> None:
    root = kit.lay_out(tmp_path / "project", "steady", "hang")
    async with served(kit, root, "--jobs", "1") as there:
        assert await there.statuses("steady") == {"steady": "Killed"}
        request = await in_full_flight(there)
        await there.client.cancel(request)
        with pytest.raises(Refused) as refusal:
            await there.client.result(request)
        assert refusal.value.code == -32800
        signal_tools(there, signal.SIGCONT)  # those that had nothing to do with the request still wait
        assert await there.statuses("steady") == {"steady": "Killed"}


@each_kit
async def test_another_request_gets_its_verdicts_though_the_tool_was_stopped(kit: Kit, tmp_path: Path) -> None:
    root = kit.lay_out(tmp_path / "project", "steady", "hang")
    async with served(kit, root, "--jobs", "2") as there:
        steady = (await there.mutants())["steady"]
        request = await in_full_flight(there)
        other = await there.client.ask("mutationTest", {"mutants": {kit.source: {"mutants": [steady]}}})
        await there.client.cancel(request)
        with pytest.raises(Refused):
            await there.client.result(request)
        signal_tools(there, signal.SIGCONT)
        assert await there.client.result(other) == {"files": {}}
        assert [mutant["status"] for _, mutant in there.client.take_results() if mutant["id"] == steady["id"]] == [
            "Killed"
        ]


@each_kit
async def test_the_end_of_the_client_ends_a_server_whose_tool_is_stopped(kit: Kit, tmp_path: Path) -> None:
    root = kit.lay_out(tmp_path / "project", "steady", "hang")
    async with served(kit, root, "--jobs", "1") as there:
        await in_full_flight(there)

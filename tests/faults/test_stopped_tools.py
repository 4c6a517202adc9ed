"""A tool's process that is stopped (SIGSTOP), at any moment: a cancel and the end of the client are still answered."""

import asyncio
import contextlib
import signal
from pathlib import Path

import psutil
from support.faulty_servers import Served, served
from support.kits import NICE, Kit, each_engine
from support.msp_client import LONG
from support.servers import LOOK


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


def is_hanging(process: psutil.Process) -> bool:
    """Whether it tests the mutant that never ends."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.nice() == NICE
    return False


async def in_full_flight(there: Served) -> int:
    """The id of a request whose mutant never ends, and whose tool is stopped."""
    mutants = await there.mutants()
    chosen = {there.kit.source: {"mutants": [mutants["hang"]]}}
    request = await there.client.ask("mutationTest", {"mutants": chosen})
    async with asyncio.timeout(LONG):
        while not any(is_hanging(process) for process in there.processes()):
            await asyncio.sleep(LOOK)
    assert signal_tools(there, signal.SIGSTOP)
    return request


@each_engine
async def test_a_cancel_another_request_and_the_end_of_the_client_are_answered_though_the_tool_is_stopped(
    kit: Kit, tmp_path: Path
) -> None:
    root = kit.lay_out(tmp_path / "project", "steady", "hang")
    async with served(kit, root, "--jobs", "2") as there:
        assert await there.statuses("steady") == {"steady": "Killed"}
        request = await in_full_flight(there)
        await there.client.cancelled(request)
        signal_tools(there, signal.SIGCONT)  # those that had nothing to do with the request still wait
        assert await there.statuses("steady") == {"steady": "Killed"}
        steady = (await there.mutants())["steady"]
        request = await in_full_flight(there)
        other = await there.client.ask("mutationTest", {"mutants": {kit.source: {"mutants": [steady]}}})
        await there.client.cancelled(request)
        signal_tools(there, signal.SIGCONT)
        assert await there.client.result(other) == {"files": {}}
        assert [mutant["status"] for _, mutant in there.client.take_results() if mutant["id"] == steady["id"]] == [
            "Killed"
        ]
        await in_full_flight(there)  # and the client ends
